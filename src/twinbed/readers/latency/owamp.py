"""The records of each packet that owping and owstats print.

A record is a line of ``owping -R`` or ``owstats -R``: SEQNO SENDTIME SSYNC SERR RECVTIME RSYNC RERR TTL, with times as 64 bits:
seconds since 1900 and 2^-32 of one; a packet that was lost has a receive time of 0 (owping(1), "Output Options").
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np

from twinbed.readers.latency.files import CLIENT_TO_SERVER, SERVER_TO_CLIENT, of_owping
from twinbed.readers.latency.probes import (
    ABSENT,
    ARRIVED,
    LOST,
    MISSING,
    Integers,
    Pair,
    Stamps,
)

_FIELDS = 8
_S_FROM_1900_TO_1970 = 2_208_988_800


def read(file: Path) -> Pair:
    """Read the client-to-server file and the other direction's. Raises OSError or ValueError where one cannot be read."""
    server = file.name.removeprefix("owping-").removesuffix(f".{CLIENT_TO_SERVER}.txt")
    went, twice = _records(file)
    came, again = _records(file.with_name(of_owping(server, SERVER_TO_CLIENT)))
    missing = np.full(len(went), MISSING), np.full(len(came), MISSING)
    absent = np.full(len(went), ABSENT), np.full(len(came), ABSENT)
    return Pair(
        client=file.parent.name,
        server=server,
        sequence=np.concatenate([went[:, 0], came[:, 0]]),
        wall=Stamps(
            client_sent=np.concatenate([went[:, 1], missing[1]]),
            server_received=np.concatenate([went[:, 2], missing[1]]),
            server_sent=np.concatenate([missing[0], came[:, 1]]),
            client_received=np.concatenate([missing[0], came[:, 2]]),
        ),
        monotonic=None,
        fate={
            CLIENT_TO_SERVER: np.concatenate([_fate(went), absent[1]]),
            SERVER_TO_CLIENT: np.concatenate([absent[0], _fate(came)]),
        },
        settled=np.full(len(went) + len(came), True),
        duplicates=twice + again,
    )


def _fate(records: Integers) -> Integers:
    return np.where(records[:, 2] == MISSING, LOST, ARRIVED)


def _records(file: Path) -> tuple[Integers, int]:
    """Return (sequence, sent, received) of each packet in the order sent, and how many packets came twice."""
    where = f"{file.name} of {file.parent.name}"
    first_of: dict[int, tuple[int, int, int]] = {}
    lines = [line.split() for line in file.read_text(errors="replace").splitlines() if line.strip()]
    if not lines:
        raise ValueError(f"{where}: has no records; owping prints none where it fails")
    for number, line in enumerate(lines, start=1):
        read = record(line)
        if read is None:
            raise ValueError(f"{where}: line {number} is no record of owping -R: {' '.join(line)}")
        first_of.setdefault(read[0], read)
    records = np.array(sorted(first_of.values(), key=lambda sent: sent[1]), dtype=np.int64)
    return records, len(lines) - len(first_of)


def record(words: Sequence[str]) -> tuple[int, int, int] | None:
    """Return (sequence, sent, received) of a line of ``owping -R``, in nanoseconds since 1970; None for any other line."""
    if len(words) != _FIELDS or not all(words[at].isdecimal() for at in (0, 1, 4)):
        return None
    sent, received = int(words[1]), int(words[4])
    return int(words[0]), _since_1970(sent), _since_1970(received) if received else MISSING


def _since_1970(time: int) -> int:
    """Return nanoseconds, rounded."""
    return (time * 10**9 + 2**31 >> 32) - _S_FROM_1900_TO_1970 * 10**9
