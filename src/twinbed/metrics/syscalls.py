"""The metrics of system calls, and the calls that each counts."""

from __future__ import annotations

from collections.abc import Mapping

from twinbed.metrics.metric import Layer, Metric

KINDS: Mapping[str, tuple[str, ...]] = {
    "read": ("read", "pread64", "readv", "preadv", "preadv2", "recv", "recvfrom", "recvmsg", "recvmmsg", "recvmmsg_time64"),
    "write": ("write", "pwrite64", "writev", "pwritev", "pwritev2", "send", "sendto", "sendmsg", "sendmmsg"),
    "sendfile": ("sendfile", "sendfile64", "splice", "tee", "vmsplice", "copy_file_range"),
    "wait": (
        *("epoll_wait", "epoll_pwait", "epoll_pwait2", "epoll_wait_old", "poll", "ppoll", "select", "pselect6"),
        *("nanosleep", "clock_nanosleep", "pause", "rt_sigsuspend", "rt_sigtimedwait", "futex", "wait4", "waitid"),
        *("_newselect", "pselect6_time64", "ppoll_time64", "clock_nanosleep_time64", "rt_sigtimedwait_time64", "futex_time64"),
        "waitpid",
    ),
    "epoll_ctl": ("epoll_ctl", "epoll_ctl_old", "epoll_create", "epoll_create1"),
    "accept": ("accept", "accept4"),
    "connect": ("connect",),
    "socket": ("socket", "socketpair", "bind", "listen", "shutdown", "getsockname", "getpeername", "setsockopt", "getsockopt"),
    "open": ("open", "openat", "openat2", "creat"),
    "close": ("close", "close_range"),
    "stat": (
        *("stat", "lstat", "fstat", "newfstatat", "statx", "access", "faccessat", "faccessat2"),
        *("stat64", "lstat64", "fstat64", "fstatat64"),
    ),
    "fcntl": ("fcntl", "fcntl64", "ioctl"),
}
"""Kinds of calls; ``<kind>_calls`` counts them. A call in none of them is ``other``. Names that end in 64 or time64, and a few
others, belong to 32-bit programs."""

_MEANT: Mapping[str, str] = {
    "read": "calls that read or receive (read, recvfrom and similar)",
    "write": "calls that write or send (write, sendto and similar)",
    "sendfile": "calls that move bytes inside the kernel (sendfile, splice and similar)",
    "wait": "calls that wait (epoll_wait, poll, select, futex, sleeps and similar)",
    "epoll_ctl": "calls that set what epoll waits for",
    "accept": "calls that accept a connection",
    "connect": "calls that open a connection",
    "socket": "other calls about sockets (socket, setsockopt, shutdown and similar)",
    "open": "calls that open a file",
    "close": "calls that close a file or socket",
    "stat": "calls that ask about a file",
    "fcntl": "calls that query or set an open file (fcntl, ioctl)",
    "other": "all other calls; the table system_calls has each",
}
BYTES = ("read", "write", "sendfile")
"""Kinds whose calls return how many bytes they moved."""

_ESTIMATE = "with times sampled an estimate, from one call in 16 (the table system_calls has its standard error)"


def _counted(name: str, description: str, unit: str = "1", *, headline: bool = False) -> Metric:
    return Metric(name, unit, Layer.OS, description, extensive=True, headline=headline)


METRICS = (
    _counted("system_calls", "system calls of any kind", headline=True),
    *(_counted(f"{kind}_calls", meant, headline=kind == "read") for kind, meant in _MEANT.items()),
    *(_counted(f"{kind}_bytes", f"bytes that {_MEANT[kind]} moved", "bytes") for kind in BYTES),
    *(
        Metric(
            f"{kind}_bytes_per_call", "bytes", Layer.OS, f"bytes of one of the {_MEANT[kind]}, mean; those that failed count 0"
        )
        for kind in BYTES
    ),
    _counted("system_call_errors", "system calls that returned an error (EAGAIN too)"),
    _counted("system_call_seconds", f"time from entry to exit of the calls that do not wait; {_ESTIMATE}", "s"),
    _counted("wait_seconds", f"time from entry to exit of the calls that wait, of all threads; {_ESTIMATE}", "s"),
    Metric("system_calls_lost", "1", Layer.OS, "system calls that the probe saw and could not count"),
)
"""Metrics of any trace."""
INSTRUMENT_CALLS = _counted(
    "instrument_calls", "system calls of instruments' programs on the host (irtt, owping, tcpdump): in none of the other counts"
)
_UNITS = {metric.name: metric.unit for metric in (*METRICS, INSTRUMENT_CALLS)}
_KIND = {call: kind for kind, calls in KINDS.items() for call in calls}


def kind_of(call: str) -> str:
    """Return the kind of a call by its name."""
    return _KIND.get(call, "other")


def unit(metric: str) -> str:
    """Return a metric's unit."""
    return _UNITS[metric]
