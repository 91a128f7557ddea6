"""irtt 0.9: how its server and client are started, and its JSON.

The client is started with a duration that is longer than any run and is interrupted: it then writes its results without waiting
for replies that are still on their way.  So probes sent less than three of the longest round trips before its end are not
judged lost; irtt itself waits as long where it is not interrupted.
Sources: irtt-client(1), "OUTPUT"; probes' results take 72 bytes of the client's memory each while it runs (Debian's 0.9.0), and
about 8 kB each while it writes.
"""

from __future__ import annotations

import errno
import json
import re
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from twinbed.contracts.command import Command, Ready
from twinbed.contracts.place import PROBE_PORT, Target
from twinbed.instruments.latency.probes import (
    ABSENT,
    ARRIVED,
    CLIENT_TO_SERVER,
    LOST,
    MISSING,
    SERVER_TO_CLIENT,
    UNKNOWN,
    Integers,
    Pair,
    Stamps,
)

SIGINT = 2
MOST_PROBES = 1_000_000
"""Of a run: the client makes room for all when it starts. At 100 a second, 2.8 hours."""
OPEN_TIMEOUTS = "5s,5s,5s"
"""Of the client's opening. The first is longer than the kernel tries to find an address (3 s): a second opening that is
answered too comes to the client as an error while it probes, and ends it."""
STOP_LIMIT_S = 120.0
"""Writing the results of 10 minutes takes an emulated CPU half a minute."""
_WAITED = 3
_FATES = {
    b"false": (ARRIVED, ARRIVED),
    b"true_up": (LOST, ABSENT),
    b"true_down": (ARRIVED, LOST),
    b"true": (UNKNOWN, UNKNOWN),
}
"""irtt's ``lost``, and what became of the probe there and back."""
_TIMES = rb'\{(?:\s*"wall":\s*(\d+),\s*"monotonic":\s*(\d+)\s*)?\}'
_BOTH = rb'\{\s*"receive":\s*' + _TIMES + rb',\s*"send":\s*' + _TIMES + rb"\s*\}"
_TRIP = re.compile(
    rb'"seqno":\s*(\d+),\s*"lost":\s*"(\w+)",\s*"timestamps":\s*\{\s*"client":\s*' + _BOTH + rb',\s*"server":\s*' + _BOTH
)
_WITHOUT_TRIPS = re.compile(rb'("round_trips":\s*)\[.*\](\s*\}\s*)\Z', re.DOTALL)
"""Probes are by far the most of it: read by an expression they take a third of the time that JSON takes. An expression that
does not fit is an error, never a probe less."""


def server(target: Target) -> Command:
    """Listens on the host's experiment interfaces only. 0: no limit, as clients are the run's own."""
    listen = ",".join(f"%{interface}:{PROBE_PORT}" for interface in sorted(target.interfaces))
    argv = ("irtt", "server", "-b", listen, "-i", "0", "--timeout=0")
    return Command(target.name, argv, "irtt-server.out", Ready(says=b"starting IPv4 listener"))


def client(host: str, server: str, address: str, *, interval_s: float, length: int) -> Command:
    argv = (
        *("irtt", "client"),
        *("-i", f"{round(interval_s * 1e9)}ns"),
        *("-d", f"{round(interval_s * MOST_PROBES)}s"),
        *("-l", str(length)),
        f"--timeouts={OPEN_TIMEOUTS}",
        "-q",
        *("-o", f"{{artifacts}}/{artifact(server)}"),
        f"{address}:{PROBE_PORT}",
    )
    ready = Ready(says=b"[Connected]")
    return Command(host, argv, f"{artifact(server)}.out", ready, stop=SIGINT, stop_limit_s=STOP_LIMIT_S, round=1)


def artifact(server: str) -> str:
    return f"irtt-{server}.json"


def read(file: Path) -> Pair:
    """Raises OSError, ValueError or LookupError where the file is not what irtt writes, or was cut off."""
    server = file.name.removeprefix("irtt-").removesuffix(".json")
    return parsed(file.read_bytes(), f"{file.name} of {file.parent.name}", file.parent.name, server)


def parsed(text: bytes, where: str, client: str, server: str) -> Pair:
    """``where`` is how messages name the text. Raises ValueError or LookupError, OverflowError for what no clock shows."""
    try:
        said = json.loads(_WITHOUT_TRIPS.sub(rb"\1[]\2", text))
    except ValueError as error:
        raise ValueError(f"{where}: not the JSON of a client that ended in order: {error}") from None
    broken = {name: cause for name in ("send_err", "receive_err") if (cause := _cause(said.get(name))) is not None}
    if broken:
        raise ValueError(f"{where}: the client broke off: {broken}")
    trips = _TRIP.findall(text)
    there = text.count(b'"seqno"')
    if not trips or len(trips) != there:
        raise ValueError(f"{where}: {len(trips)} of {there} probes could be read")
    columns = list(zip(*trips, strict=True))
    numbers = [np.array([int(each) if each else MISSING for each in column], dtype=np.int64) for column in columns[2:]]
    monotonic = _stamps(numbers[1::2])
    fates = np.array([_FATES[each] for each in columns[1]], dtype=np.int64)
    return Pair(
        client=client,
        server=server,
        sequence=np.array(columns[0], dtype=np.int64),
        wall=_stamps(numbers[0::2]),
        monotonic=monotonic,
        fate={CLIENT_TO_SERVER: fates[:, 0], SERVER_TO_CLIENT: fates[:, 1]},
        judged=_judged(monotonic, said["stats"]["duration"]),
        duplicates=said["stats"]["duplicates"],
    )


def _cause(error: Any) -> object:
    """irtt's own code, or the system's errno of a socket; None where there is no error, or the last probe met a server that had
    ended already: it was told to just after the client, and one that ends earlier fails the run."""
    if not error:
        return None
    inner = error.get("Err") if isinstance(error, dict) else None
    number = inner.get("Err") if isinstance(inner, dict) else None
    if number == errno.ECONNREFUSED:
        return None
    return error.get("Code", number or error) if isinstance(error, dict) else error


def _stamps(columns: Sequence[Integers]) -> Stamps:
    """In irtt's order."""
    client_received, client_sent, server_received, server_sent = columns
    return Stamps(client_sent, server_received, server_sent, client_received)


def _judged(stamps: Stamps, duration_ns: int) -> np.ndarray[Any, np.dtype[np.bool_]]:
    """Whether each had the time to come back before the client's end."""
    back = stamps.client_received != MISSING
    longest = int((stamps.client_received - stamps.client_sent)[back].max()) if back.any() else 0
    judged: np.ndarray[Any, np.dtype[np.bool_]] = stamps.client_sent <= stamps.client_sent[0] + duration_ns - _WAITED * longest
    return judged
