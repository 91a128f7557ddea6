"""A network namespace that a thread steps into; sockets and programs made meanwhile stay in it.

A namespace has no name: it lives as long as something holds it, so nothing is left when the process that made it ends.
Python 3.11 has no ``os.setns``, hence ctypes.
"""

from __future__ import annotations

import ctypes
import os
import socket
import subprocess
from pathlib import Path
from types import TracebackType

_NEW_NETWORK = 0x40000000  # CLONE_NEWNET
_THIS_THREAD = "/proc/thread-self/ns/net"
_libc = ctypes.CDLL(None, use_errno=True)

LISTENING, ESTABLISHED, FIN_WAIT_2, TIME_WAIT, CLOSED = 0x0A, 0x01, 0x05, 0x06, 0x07
"""States of a socket that wait for no packet, as /proc/net/tcp prints them."""


def _checked(result: int) -> None:
    if result != 0:
        number = ctypes.get_errno()
        raise OSError(number, os.strerror(number))


class Namespace:
    """Made by the thread that constructs it; ``with namespace:`` puts the calling thread into it."""

    def __init__(self, ipv4: str, ipv6: str) -> None:
        self.ipv4, self.ipv6 = ipv4, ipv6
        self._home = os.open(_THIS_THREAD, os.O_RDONLY | os.O_CLOEXEC)
        _checked(_libc.unshare(_NEW_NETWORK))
        self._there = os.open(_THIS_THREAD, os.O_RDONLY | os.O_CLOEXEC)
        _checked(_libc.setns(self._home, _NEW_NETWORK))

    def __enter__(self) -> Namespace:
        _checked(_libc.setns(self._there, _NEW_NETWORK))
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        _checked(_libc.setns(self._home, _NEW_NETWORK))

    def run(self, *command: str, text: str | None = None) -> None:
        with self:
            subprocess.run(command, input=text, text=True, check=True)

    def setting(self, name: str, value: object) -> None:
        """Write one of this namespace's /proc/sys/net settings and read it back."""
        path = Path("/proc/sys/net") / name
        with self:
            path.write_text(str(value))
            if path.read_text().split() != str(value).split():
                raise OSError(f"{path}: {value} was not taken")

    def socket(self, ipv6: bool = False) -> socket.socket:
        with self:
            made = socket.socket(socket.AF_INET6 if ipv6 else socket.AF_INET, socket.SOCK_STREAM)
        made.settimeout(30)
        made.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        return made

    def unfinished(self) -> int:
        """The TCP sockets of which a packet is still due: opening, closing, or with bytes not yet acknowledged."""
        count = 0
        for table in ("tcp", "tcp6"):
            with self:
                lines = Path(f"/proc/thread-self/net/{table}").read_text().splitlines()[1:]
            for line in lines:
                fields = line.split()
                state, queued = int(fields[3], 16), int(fields[4].split(":")[0], 16)
                rests = state in (LISTENING, FIN_WAIT_2, TIME_WAIT, CLOSED) or (state in (ESTABLISHED, 8) and queued == 0)
                count += not rests
        return count
