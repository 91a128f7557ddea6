"""One host's file: its sockets, and their samples as the kernel gave them."""

from __future__ import annotations

import struct
from collections.abc import Iterator
from dataclasses import dataclass
from ipaddress import ip_address
from pathlib import Path

import numpy as np
import numpy.typing as npt

from twinbed.model.json import Document, document, integer, loads
from twinbed.readers.sockets.tcp_info import Bytes

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
    """It was there before the first sample, so that what it counted until then is not the run's."""


@dataclass(frozen=True, slots=True)
class Samples:
    """In the order of sockets, then of time. Sockets are indexes of ``sockets``."""

    host: str
    sockets: tuple[Socket, ...]
    socket: npt.NDArray[np.int64]
    time_s: npt.NDArray[np.float64]
    """Since 1970, by the host's clock at the start, and the monotonic clock from there."""
    infos: Bytes
    """A row a sample: struct tcp_info."""
    opened: int
    """Ends of connections that came into being on the host while it was sampled, but for those that were seen to be others'
    than the workload's."""
    skipped: int
    """Moments at which no sample was taken, since one takes too long."""
    dropped: int
    """Samples for which there was no room."""
    intervals_s: tuple[float, ...]
    """As asked, then each that it became."""


def read(file: Path) -> Samples:
    """Raises OSError, or ValueError where it is not whole or no such file."""
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
    """Whole ones; what was cut off at the end is left to who misses the end."""
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
    addresses = (str(ip_address(each[:size])) for each in (local, remote))
    return number, Socket(next(addresses), local_port, next(addresses), remote_port, congestion, bool(at_start))


def _joined(moments: list[tuple[int, int, bytes]], file: Path) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.int64], Bytes]:
    """Socket, time and tcp_info of every sample. One kernel gives one length."""
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
