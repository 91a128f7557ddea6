"""Where the servers of a workload listen, as their plans say how to know that they are ready."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from twinbed.contracts.command import Command


def listening(servers: Sequence[Command]) -> Mapping[str, Sequence[int]]:
    """Host -> the ports that the workload's programs there listen on, in their order."""
    ports: dict[str, list[int]] = {}
    for command in servers:
        if command.ready is not None and command.ready.listening is not None:
            ports.setdefault(command.host, []).append(command.ready.listening)
    return ports
