"""CPU time and context switches of programs in a run."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

from twinbed.model.json import Document, dataclass_of, text, value_of


@dataclass(frozen=True, slots=True)
class Usage:
    """The use by a program and all that it started."""

    cpu_s: float
    """CPU time in user mode and in the kernel."""
    voluntary_switches: int
    """Context switches in which it waited for something."""
    involuntary_switches: int
    """Context switches in which the kernel gave the CPU to others."""

    def since(self, before: Usage) -> Usage:
        return Usage(
            self.cpu_s - before.cpu_s,
            self.voluntary_switches - before.voluntary_switches,
            self.involuntary_switches - before.involuntary_switches,
        )


class Role(StrEnum):
    """The purpose of a program."""

    WORKLOAD = "workload"
    INSTRUMENT = "instrument"


@dataclass(frozen=True, slots=True)
class ProgramUsage:
    """The use by one program: a client or instrument in its life, a server from the start of the workload to its end."""

    host: str
    program: str
    role: Role
    usage: Usage

    def to_json(self) -> Document:
        used = self.usage
        return {
            "host": self.host,
            "program": self.program,
            "role": self.role,
            "cpu_s": round(used.cpu_s, 6),
            "voluntary_switches": used.voluntary_switches,
            "involuntary_switches": used.involuntary_switches,
        }

    @classmethod
    def from_json(cls, data: Document) -> ProgramUsage:
        """Read the usage. Raises KeyError, TypeError or ValueError for other data."""
        return cls(
            value_of(data, "host", text),
            value_of(data, "program", text),
            value_of(data, "role", lambda value: Role(text(value))),
            dataclass_of(Usage, data),
        )
