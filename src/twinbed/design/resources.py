"""Whether a run fits on a machine, and how many pairs of its kind would.  Pure: what is needed and what there is are given.

What a run takes grows by the same with every pair: hosts, links, and the programs on them.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from twinbed.contracts.resources import Need, Room


@dataclass(frozen=True, slots=True)
class Demand:
    """What runs that differ only in their number of pairs take."""

    one: Need
    """With one pair."""
    two: Need

    def at(self, pairs: int) -> Need:
        def grown(name: str) -> int:
            first: int = getattr(self.one, name)
            second: int = getattr(self.two, name)
            return first + (pairs - 1) * (second - first)

        return Need(**{name: grown(name) for name in Need.__dataclass_fields__})


@dataclass(frozen=True, slots=True)
class Shortage:
    """One thing that there is not enough of."""

    what: str
    """``memory``, ``processes``, ``file descriptors`` or ``address space``."""
    needed: int
    available: int
    most_pairs: int
    """That there would be enough for, of this thing; 0: not for one."""


def shortages(demand: Demand, pairs: int, room: Room) -> Iterator[Shortage]:
    """What a machine with ``room`` lacks for a run with ``pairs``."""
    need = demand.at(pairs)
    for what, name, available in (
        ("memory", "memory_bytes", room.memory_bytes),
        ("processes", "tasks", room.tasks),
        ("file descriptors", "descriptors", room.descriptors),
        ("address space", "address_space_bytes", room.address_space_bytes),
    ):
        needed: int = getattr(need, name)
        if available is not None and needed > available:
            fewer = (less for less in range(pairs - 1, 0, -1) if getattr(demand.at(less), name) <= available)
            yield Shortage(what, needed, available, next(fewer, 0))
