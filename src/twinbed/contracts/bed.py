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
"""What a host says of itself: one value of its passport. None is what it does not say."""
Facts: TypeAlias = Mapping[str, Fact]


@dataclass(frozen=True, slots=True)
class Applied:
    """One setting, as asked and as read back from the system after it was set."""

    subject: str
    setting: str
    asked: object
    found: object
    source: str
    """The command whose output said so."""
    tolerance: float = 0.0
    """Relative difference that is the system's own granularity, not a disagreement."""

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
    """What waking a program takes on the CPUs of this machine that a run uses, measured before its workload."""

    cpus: tuple[int, ...]
    kept_awake: bool
    """Whether threads of the idle class keep all of them from being idle."""
    apart_s: float
    """From waking a thread on the server's CPUs until it runs, for one on the client's."""
    together_s: float
    """The same of two threads on one CPU: the part that has nothing to do with idle CPUs."""


@dataclass(frozen=True, slots=True)
class Bed:
    """A testbed that is up: its hosts, with MACHINE where it has one; where instruments can be put; what was set and read
    back; and what it is made of (place -> fact -> value)."""

    hosts: Mapping[str, Host]
    addresses: Mapping[str, str]
    targets: Sequence[Target]
    applied: Sequence[Applied]
    passport: Mapping[str, Facts]
    cautions: Sequence[Caution] = ()
    lab: str = ""
    """The id of the lab it is in."""
    troubles: Callable[[], Sequence[str]] = tuple
    """What has befallen hosts that spoils a run whether or not its programs noticed: a guest that ended, memory that ran out.
    May be asked at any time."""
    at_end: Callable[[], Sequence[Caution]] = tuple
    """What can only be told once the workload is over: links that went down, clocks that were stepped."""
    wake_up: WakeUp | None = None
    """Of hosts that share this machine's CPUs; None where hosts are elsewhere."""
