"""One host's file: its sockets, and their samples as the kernel gave them in struct tcp_info of linux/tcp.h.

The structure grows at its end. A kernel that is older than a field gives fewer bytes, and the field is null. The comments give
the version of Linux whose structure first ended with or after the field.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from ipaddress import ip_address
from pathlib import Path

import numpy as np
import numpy.typing as npt

from twinbed.model.json import Document, document, integer, loads

MICROSECOND_S = 1e-6
BITS = 8
INFINITE_SSTHRESH = 0x7FFFFFFF
"""TCP_INFINITE_SSTHRESH of include/net/tcp.h: no loss was seen yet."""
NO_RTT = 0
NO_MIN_RTT = 0xFFFFFFFF
UNLIMITED = 0xFFFFFFFFFFFFFFFF
NO_RATE = 0
"""tcp_compute_delivery_rate of net/ipv4/tcp.c: there is no estimate."""

STATES = {1: "established", 4: "fin_wait1", 5: "fin_wait2", 8: "close_wait", 9: "last_ack", 11: "closing"}
"""include/net/tcp_states.h"""
CA_STATES = {0: "open", 1: "disorder", 2: "cwr", 3: "recovery", 4: "loss"}
"""enum tcp_ca_state"""

Numbers = npt.NDArray[np.float64]
Bytes = npt.NDArray[np.uint8]


@dataclass(frozen=True, slots=True)
class Field:
    """An unsigned number."""

    offset: int
    bytes: int
    scale: float | None = None
    """Factor to our unit; None for a count."""
    unknown: int | None = None
    """The value, or the least value, that means none."""
    end: int | None = None
    """The end that the structure must have for the field to be known, where that is not its own end."""

    def read(self, infos: Bytes) -> tuple[npt.NDArray[np.uint64], npt.NDArray[np.bool_]]:
        """Return raw values, and whether each is known, of a matrix with a row a tcp_info."""
        count, length = infos.shape
        if length < (self.end or self.offset + self.bytes):
            return np.zeros(count, np.uint64), np.zeros(count, np.bool_)
        raw = np.ascontiguousarray(infos[:, self.offset : self.offset + self.bytes])
        values = raw.view(f"<u{self.bytes}").reshape(count).astype(np.uint64)
        if self.unknown is None:
            return values, np.ones(count, np.bool_)
        known = values != self.unknown if self.unknown == 0 else values < self.unknown
        return values, known


STATE = Field(0, 1)
CA_STATE = Field(1, 1)
FLAGS = Field(7, 1, end=168)
"""Its lowest bit is delivery_rate_app_limited, which came with delivery_rate into a byte that was there."""
APP_LIMITED = 0x01

FIELDS: Mapping[str, Field] = {
    "cwnd": Field(80, 4),
    "ssthresh": Field(76, 4, unknown=INFINITE_SSTHRESH),
    "srtt_s": Field(68, 4, MICROSECOND_S, NO_RTT),
    "rttvar_s": Field(72, 4, MICROSECOND_S),
    "rto_s": Field(8, 4, MICROSECOND_S),
    "unacked": Field(24, 4),
    "sacked": Field(28, 4),
    "lost": Field(32, 4),
    "retrans": Field(36, 4),
    "snd_mss_bytes": Field(16, 4),
    "advmss_bytes": Field(84, 4),
    "pmtu_bytes": Field(60, 4),
    "reordering": Field(88, 4),
    "rcv_space_bytes": Field(96, 4),
    "total_retrans": Field(100, 4),
    "pacing_rate": Field(104, 8, BITS, UNLIMITED),  # 3.15
    "bytes_acked": Field(120, 8),  # 4.1
    "bytes_received": Field(128, 8),
    "segs_out": Field(136, 4),  # 4.2
    "segs_in": Field(140, 4),
    "notsent_bytes": Field(144, 4),  # 4.6
    "min_rtt_s": Field(148, 4, MICROSECOND_S, NO_MIN_RTT),
    "data_segs_in": Field(152, 4),
    "data_segs_out": Field(156, 4),
    "delivery_rate": Field(160, 8, BITS, NO_RATE),  # 4.9
    "busy_s": Field(168, 8, MICROSECOND_S),  # 4.10
    "rwnd_limited_s": Field(176, 8, MICROSECOND_S),
    "sndbuf_limited_s": Field(184, 8, MICROSECOND_S),
    "delivered": Field(192, 4),  # 4.18
    "delivered_ce": Field(196, 4),
    "bytes_sent": Field(200, 8),  # 4.19
    "bytes_retrans": Field(208, 8),
    "dsack_dups": Field(216, 4),
    "reord_seen": Field(220, 4),
    "rcv_ooopack": Field(224, 4),  # 5.4
    "snd_wnd_bytes": Field(228, 4),
}


def numbers(field: Field, infos: Bytes) -> Numbers:
    """Return values in our units; NaN where unknown."""
    values, known = field.read(infos)
    return np.where(known, values.astype(np.float64) * (field.scale or 1.0), np.nan)


FORMAT = "twinbed-sockets 1"
NANOSECOND_S = 1e-9
_HEAD = struct.Struct("<II")
_SOCKET, _SAMPLES, _INTERVAL, _END = 1, 2, 3, 4
_SOCKET_HEAD = struct.Struct("<IBBHHH16s16sQ")
_SAMPLES_HEAD = struct.Struct("<qII")
_INTERVAL_BODY = struct.Struct("<qq")
_OPENED = ("active", "passive")


@dataclass(frozen=True, slots=True)
class Socket:
    """One end of a connection."""

    local_address: str
    local_port: int
    remote_address: str
    remote_port: int
    congestion: str
    at_start: bool
    """True if it was there before the first sample, so that its counts until then are not the run's."""


@dataclass(frozen=True, slots=True)
class Samples:
    """Samples in the order of sockets, then of time. Sockets are indexes of ``sockets``."""

    host: str
    sockets: tuple[Socket, ...]
    socket: npt.NDArray[np.int64]
    time_s: npt.NDArray[np.float64]
    """Since 1970, by the host's clock at the start, and the monotonic clock from there."""
    infos: Bytes
    """A row a sample: struct tcp_info."""
    opened: int
    """Ends of connections that were opened on the host while it was sampled, without those that are not the workload's."""
    skipped: int
    """Moments at which no sample was taken, since one takes too long."""
    dropped: int
    """Samples for which there was no room."""
    intervals_s: tuple[float, ...]
    """The interval asked for, then each later one."""


def read(file: Path) -> Samples:
    """Read a file. Raises OSError, or ValueError where it is not whole or no such file."""
    try:
        return _read(file)
    except (struct.error, TypeError, KeyError) as error:
        raise ValueError(f"{file.name} cannot be read: {error}") from error


def _read(file: Path) -> Samples:
    line, _, rest = file.read_bytes().partition(b"\n")
    head = document(loads(line)) if line.startswith(b"{") else {}
    if head.get("format") != FORMAT:
        raise ValueError(f"{file.name} is not whole: its first line does not say {FORMAT!r}")
    sockets: dict[int, Socket] = {}
    moments: list[tuple[int, int, bytes]] = []
    intervals = [integer(head["interval_ns"])]
    end: Document | None = None
    for kind, body in _records(rest):
        if kind == _SAMPLES:
            asked_ns, count, info_bytes = _SAMPLES_HEAD.unpack_from(body)
            moments.append((asked_ns, info_bytes, body[_SAMPLES_HEAD.size :]))
            if len(body) != _SAMPLES_HEAD.size + count * (4 + info_bytes):
                raise ValueError(f"{file.name}: {count} samples of {info_bytes} bytes do not fill a record of {len(body)}")
        elif kind == _SOCKET:
            number, socket = _socket(body)
            sockets[number] = socket
        elif kind == _INTERVAL:
            intervals.append(_INTERVAL_BODY.unpack(body)[1])
        elif kind == _END:
            end = document(loads(body))
        else:
            raise ValueError(f"{file.name}: a record of kind {kind}, which format 1 does not have")
    if end is None:
        raise ValueError(f"{file.name} is not whole: it has no end")
    start = document(head["start"])
    offset_ns = integer(start["realtime_ns"]) - integer(start["monotonic_ns"])
    numbers, asked, infos = _joined(moments, file)
    order = np.lexsort((asked, numbers))
    if unknown := set(np.unique(numbers).tolist()) - set(sockets):
        raise ValueError(f"{file.name}: samples of sockets that it does not describe, such as {min(unknown)}")
    return Samples(
        host=file.parent.name,
        sockets=tuple(sockets[number] for number in range(len(sockets))),
        socket=numbers[order],
        time_s=np.asarray((asked[order] + offset_ns) * NANOSECOND_S, np.float64),
        infos=infos[order],
        opened=_opened(end) - _opened(head) - integer(end["left_out"]),
        skipped=integer(end["skipped"]),
        dropped=integer(end["dropped"]),
        intervals_s=tuple(interval * NANOSECOND_S for interval in intervals),
    )


def _records(content: bytes) -> Iterator[tuple[int, bytes]]:
    """Yield whole records; the reader that misses the end reports a cut."""
    at = 0
    while at + _HEAD.size <= len(content):
        length, kind = _HEAD.unpack_from(content, at)
        at += _HEAD.size
        if at + length > len(content):
            return
        yield kind, content[at : at + length]
        at += length


def _socket(body: bytes) -> tuple[int, Socket]:
    number, family, at_start, local_port, remote_port, _zero, local, remote, _cookie = _SOCKET_HEAD.unpack_from(body)
    size = 4 if family == 4 else 16
    congestion = body[_SOCKET_HEAD.size :].decode("ascii", "replace")
    addresses = (str(ip_address(address[:size])) for address in (local, remote))
    return number, Socket(next(addresses), local_port, next(addresses), remote_port, congestion, bool(at_start))


def _joined(moments: list[tuple[int, int, bytes]], file: Path) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.int64], Bytes]:
    """Return socket, time and tcp_info of every sample. One kernel gives one length."""
    lengths = {info_bytes for _, info_bytes, _ in moments}
    if len(lengths) > 1:
        raise ValueError(f"{file.name}: tcp_info has {' and '.join(map(str, sorted(lengths)))} bytes in one file")
    if not moments:
        return np.empty(0, np.int64), np.empty(0, np.int64), np.empty((0, 0), np.uint8)
    row = 4 + lengths.pop()
    table = np.frombuffer(b"".join(body for _, _, body in moments), np.uint8).reshape(-1, row)
    numbers = np.ascontiguousarray(table[:, :4]).view("<u4").reshape(-1).astype(np.int64)
    times = np.array([asked for asked, _, _ in moments], np.int64)
    asked = np.repeat(times, [len(body) // row for _, _, body in moments])
    return numbers, asked, table[:, 4:]


def _opened(part: Document) -> int:
    opened = document(part["opened"])
    return sum(integer(opened[way]) for way in _OPENED)
