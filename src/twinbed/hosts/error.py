"""Errors of hosts. In a run each of them fails the run; elsewhere its text is shown."""

from __future__ import annotations

from collections.abc import Sequence

from twinbed.model.error import TwinbedError


class HostError(TwinbedError):
    """A host refused something: names the host, what was tried, and why it failed."""


class HostLost(HostError):
    """The connection to a host's agent ended: the host died, or was ended."""


class LimitExceeded(HostError):
    """Something took longer than its limit."""


class ProgramFailed(HostError):
    """A program on a host ended with another code than 0, or by a signal."""

    def __init__(self, host: str, argv: Sequence[str], why: str, stderr: bytes = b"") -> None:
        tail = stderr.decode(errors="replace").strip().splitlines()[-8:]
        super().__init__(f"{host}: {' '.join(argv)}: {why}" + "".join(f"\n    {line}" for line in tail))
