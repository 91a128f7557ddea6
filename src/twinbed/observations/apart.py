"""Cautions for testbeds measured one after the other, which makes them and their times inseparable.

Any change between the two (a reboot, an update, the temperature, another tenant) then looks like a difference between testbeds,
and no number of runs separates them.  If no session (``units.by_time``: runs without a long pause between them) has runs of
both sides, there is no verdict.  If one session has both, but all runs of one side come before all of the other, there is a
caution, unless a random order of the whole study made it so.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from twinbed.model.caution import Caution, Kind
from twinbed.model.columns import Records
from twinbed.model.record import Record
from twinbed.model.tables import Tables
from twinbed.observations.units import by_time

RANDOM = "random"
"""The order of a study whose runs are all in one random order: if few runs of both sides do not mix, that is chance."""

Side = tuple[str, Sequence[str]]
"""A name, and the ids of its runs."""


class Times:
    """The times when runs of a study were made. With ``stated`` the user says that sessions do not matter: they then only give
    a caution."""

    def __init__(self, runs: Sequence[Record], order: str | None, *, stated: bool = False) -> None:
        records = Records.of(runs)
        self._started: Mapping[str, float] = dict(zip(records.ids, records.started_s.tolist(), strict=True))
        self._session = by_time(runs)
        self._random, self._stated = order == RANDOM, stated

    def sessions(self, runs: Iterable[str]) -> list[int | str]:
        """Return the session of each run."""
        return [self._session[run] for run in runs]

    def caution(self, one: Side, other: Side) -> Caution | None:
        """Return the caution of comparing these runs; None if they are mixed in time, or a side has fewer than two."""
        (name, own), (reference, theirs) = one, other
        if min(len(own), len(theirs)) < 2:
            return None
        sessions = [{self._session[run] for run in runs} for runs in (own, theirs)]
        if sessions[0].isdisjoint(sessions[1]):
            kind = Kind.SUCCESSION if self._stated else Kind.APART
            return Caution(kind, f"no session has runs of both {name} and {reference}", name)
        begun = [[self._started[run] for run in runs] for runs in (own, theirs)]
        if self._random or not (max(begun[0]) < min(begun[1]) or max(begun[1]) < min(begun[0])):
            return None
        first, second = (name, reference) if max(begun[0]) < min(begun[1]) else (reference, name)
        return Caution(Kind.SUCCESSION, f"all runs of {first} come before those of {second}", name)


def in_succession(tables: Tables, runs: Mapping[str, Sequence[str]]) -> tuple[Caution, ...]:
    """Return a caution for each testbed whose runs all came before or after the reference's. It is for analyses that show
    numbers of both anyway. ``runs`` are ids by testbed; without a reference the first testbed takes its place."""
    outline = tables.outline
    reference = next((name for name in runs if name == outline.reference), next(iter(runs), None))
    if reference is None:
        return ()
    times = Times(tables.records, outline.data.get("order"), stated=True)
    cautions = (times.caution((name, own), (reference, runs[reference])) for name, own in runs.items() if name != reference)
    return tuple(caution for caution in cautions if caution is not None)
