"""irtt 0.9: how its server and client are started, and its JSON.

The client is started with a duration that is longer than any run and is interrupted: it then writes its results without waiting
for replies that are still on their way.  So probes sent less than three of the longest round trips before its end are not
judged lost; irtt itself waits as long where it is not interrupted.
Sources: irtt-client(1), "OUTPUT"; probes' results take 72 bytes of the client's memory each while it runs (Debian's 0.9.0), and
about 8 kB each while it writes.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from twinbed.instruments.latency.probes import (
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
from twinbed.model.plugin import PROBE_PORT, Command, Ready, Target

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
    "false": (ARRIVED, ARRIVED),
    "true_up": (LOST, UNKNOWN),
    "true_down": (ARRIVED, LOST),
    "true": (UNKNOWN, UNKNOWN),
}
"""irtt's ``lost``, and what became of the probe there and back."""


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
    try:
        said = json.loads(file.read_bytes())
    except ValueError as error:
        raise ValueError(f"{file.name} of {file.parent.name}: not the JSON of a client that ended in order: {error}") from None
    if broken := {name: said[name]["Code"] for name in ("send_err", "receive_err") if said.get(name)}:
        raise ValueError(f"{file.name} of {file.parent.name}: the client broke off: {broken}")
    trips, stats = said["round_trips"], said["stats"]
    if not trips:
        raise ValueError(f"{file.name} of {file.parent.name}: no probe was sent")
    stamps = [trip["timestamps"] for trip in trips]
    monotonic = _stamps(stamps, "monotonic")
    fates = np.array([_FATES[trip["lost"]] for trip in trips], dtype=np.int64)
    return Pair(
        client=file.parent.name,
        server=server,
        sequence=np.array([trip["seqno"] for trip in trips], dtype=np.int64),
        wall=_stamps(stamps, "wall"),
        monotonic=monotonic,
        fate={CLIENT_TO_SERVER: fates[:, 0], SERVER_TO_CLIENT: fates[:, 1]},
        judged=_judged(monotonic, stats["duration"]),
        duplicates=stats["duplicates"],
    )


def _stamps(stamps: list[Mapping[str, Any]], clock: str) -> Stamps:
    def column(end: str, what: str) -> Integers:
        return np.array([stamp[end][what].get(clock, MISSING) for stamp in stamps], dtype=np.int64)

    return Stamps(
        client_sent=column("client", "send"),
        server_received=column("server", "receive"),
        server_sent=column("server", "send"),
        client_received=column("client", "receive"),
    )


def _judged(stamps: Stamps, duration_ns: int) -> np.ndarray[Any, np.dtype[np.bool_]]:
    """Whether each had the time to come back before the client's end."""
    back = stamps.client_received != MISSING
    longest = int((stamps.client_received - stamps.client_sent)[back].max()) if back.any() else 0
    judged: np.ndarray[Any, np.dtype[np.bool_]] = stamps.client_sent <= stamps.client_sent[0] + duration_ns - _WAITED * longest
    return judged
