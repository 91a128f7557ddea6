"""A testbed that is up, and the settings that were applied to it and read back."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TypeAlias

from twinbed.contracts.host import Host
from twinbed.contracts.place import Target
from twinbed.model.caution import Caution
from twinbed.model.json import Json

Fact: TypeAlias = Json
"""One value of a host's passport; None if the host does not report it."""
Facts: TypeAlias = Mapping[str, Fact]


@dataclass(frozen=True, slots=True)
class Applied:
    """One setting, as asked and as read back from the system after it was set."""

    subject: str
    setting: str
    asked: object
    found: object
    source: str
    """The command or file that gave the value found."""
    tolerance: float = 0.0
    """The relative difference that is only the system's granularity."""

    @property
    def agrees(self) -> bool:
        if self.asked is None or self.asked == self.found:
            return True
        if not isinstance(self.asked, int | float) or not isinstance(self.found, int | float):
            return False
        return abs(self.found - self.asked) <= self.tolerance * abs(self.asked)


def differences(applied: Iterable[Applied]) -> str:
    """Return the settings that were not found as asked, for an error; empty where all agree."""
    return "; ".join(
        f"{item.subject}: {item.setting} should be {item.asked!r} but `{item.source}` shows {item.found!r}"
        for item in applied
        if not item.agrees
    )


@dataclass(frozen=True, slots=True)
class WakeUp:
    """The time to wake a program on the CPUs that a run uses, measured before its workload."""

    cpus: tuple[int, ...]
    kept_awake: bool
    """Threads of the idle class keep all of them awake."""
    apart_s: float
    """From waking a thread on the server's CPUs until it runs, seen from the client's CPUs."""
    together_s: float
    """The same for two threads on one CPU: the part that idle CPUs do not cause."""


@dataclass(frozen=True, slots=True)
class Bed:
    """A testbed that is up: its hosts (and MACHINE if it has one), the targets of instruments, the settings read back, and the
    passport (place to fact to value)."""

    hosts: Mapping[str, Host]
    addresses: Mapping[str, str]
    targets: Sequence[Target]
    applied: Sequence[Applied]
    passport: Mapping[str, Facts]
    cautions: Sequence[Caution] = ()
    lab: str = ""
    """The id of its lab."""
    troubles: Callable[[], Sequence[str]] = tuple
    """Returns faults of hosts that spoil a run even if its programs did not notice: a guest that ended, memory that ran out.
    Call it at any time."""
    at_end: Callable[[], Sequence[Caution]] = tuple
    """Returns cautions that are known only after the workload: links that went down, clocks that were stepped."""
    wake_up: WakeUp | None = None
    """For hosts that share this machine's CPUs; None if hosts are elsewhere."""
