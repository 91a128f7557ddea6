"""OWAMP's tools: how owampd and owping are started.

There is one owping a direction, each with packets of its own (RFC 4656), so there is no round-trip time. Ended by SIGINT it
prints what it has. It prints nothing before, so there is nothing to wait for. Where it cannot reach owampd it ends, and the
run fails and names it. Its packets have ports of their own choice, so captures hold them.
"""

from __future__ import annotations

from twinbed.contracts.command import Command, Ready
from twinbed.readers.latency.files import CLIENT_TO_SERVER, SERVER_TO_CLIENT, WAYS, of_owping

SIGINT = 2
PORT = 861
PROGRAMS = ("owampd", "owping")
_OPTIONS = {CLIENT_TO_SERVER: "-t", SERVER_TO_CLIENT: "-f"}


def server(host: str) -> Command:
    """In the foreground, as root, with its data and its own files in the artifacts."""
    argv = ("owampd", "-Z", "-f", "-a", "O", *(word for option in "cdR" for word in (f"-{option}", "{artifacts}")))
    return Command(host, argv, "owampd.out", Ready(listening=PORT))


def clients(host: str, server: str, address: str, *, interval_s: float, most: int, padding: int) -> list[Command]:
    """One a direction. ``-i f``: at a fixed interval, not an exponential one."""
    common = ("-R", "-A", "O", "-c", str(most), "-i", f"{interval_s:g}f", "-s", str(padding), address)
    return [
        Command(
            *(host, ("owping", _OPTIONS[way], *common), of_owping(server, way)),
            Ready(says=b""),
            stop=SIGINT,
            round=1,
        )
        for way in WAYS
    ]
