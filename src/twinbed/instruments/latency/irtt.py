"""irtt 0.9: how its server and client are started.

The client is started with a duration that is longer than any run and is interrupted at the end.
Sources: irtt-client(1); probes' results take 72 bytes of the client's memory each while it runs (Debian's 0.9.0), and about
8 kB each while it writes.
"""

from __future__ import annotations

from twinbed.contracts.command import Command, Ready
from twinbed.contracts.place import PROBE_PORT, Target
from twinbed.readers.latency.files import of_irtt

SIGINT = 2
MOST_PROBES = 1_000_000
"""The most probes of a run, for which the client makes room when it starts: 2.8 hours at 100 a second."""
OPEN_TIMEOUTS = "5s,5s,5s"
"""Timeouts of the client's attempts to open a session. The first is longer than the kernel's search for an address (3 s): if
a second attempt is answered too, its answer reaches the client while it probes, as an error that ends it."""
TASKS = 8
"""irtt has 6 or 7 threads."""
STOP_LIMIT_S = 120.0
"""Writing the results of 10 minutes takes an emulated CPU half a minute."""


def server(target: Target) -> Command:
    """Listens on the host's experiment interfaces only. 0: no limit, as clients are the run's own."""
    listen = ",".join(f"%{interface}:{PROBE_PORT}" for interface in sorted(target.interfaces))
    argv = ("irtt", "server", "-b", listen, "-i", "0", "--timeout=0")
    return Command(target.name, argv, "irtt-server.out", Ready(says=b"starting IPv4 listener"), tasks=TASKS)


def client(host: str, server: str, address: str, *, interval_s: float, length: int) -> Command:
    argv = (
        *("irtt", "client"),
        *("-i", f"{round(interval_s * 1e9)}ns"),
        *("-d", f"{round(interval_s * MOST_PROBES)}s"),
        *("-l", str(length)),
        f"--timeouts={OPEN_TIMEOUTS}",
        "-q",
        *("-o", f"{{artifacts}}/{of_irtt(server)}"),
        f"{address}:{PROBE_PORT}",
    )
    output, ready = f"{of_irtt(server)}.out", Ready(says=b"[Connected]")
    return Command(host, argv, output, ready, stop=SIGINT, stop_limit_s=STOP_LIMIT_S, round=1, tasks=TASKS)
