"""Runs that a study leaves out of its main result for a caution, as its file says (``exclude: [stall]``)."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from twinbed.model.caution import Caution, Kind
from twinbed.model.run import Status
from twinbed.model.tables import Tables


@dataclass(frozen=True, slots=True)
class Excluded:
    """``ids`` are complete runs with one of the cautions ``kinds``."""

    kinds: Sequence[str]
    ids: frozenset[str]
    runs: Mapping[str, tuple[int, int]]
    """Testbed -> complete runs that are left out, and how many there are."""
    decided_after: int = 0
    """How many runs there were when the study file came to say so."""

    @property
    def sentence(self) -> str:
        counts = ", ".join(f"{name} {out} of {of}" for name, (out, of) in self.runs.items())
        return f"Runs left out, as the study says (exclude: {', '.join(self.kinds)}): {counts}."

    def cautions(self) -> Iterator[Caution]:
        shares = {out / of for out, of in self.runs.values() if of}
        if len(shares) > 1:
            counts = ", ".join(f"{name} {out} of {of}" for name, (out, of) in self.runs.items())
            yield Caution(Kind.EXCLUDED_UNEQUALLY, f"{', '.join(self.kinds)}: {counts}")
        if self.decided_after:
            yield Caution(Kind.EXCLUDED_AFTERWARDS, f"{', '.join(self.kinds)}: after {self.decided_after} runs")


def excluded(tables: Tables) -> Excluded | None:
    """What the study leaves out; None where its file names no caution."""
    data = tables.outline.data
    kinds = tuple(data.get("exclude_cautions") or ())
    if not kinds:
        return None
    table = tables.table("cautions")
    rows = zip(table["run"].to_pylist(), table["kind"].to_pylist(), strict=True) if table.num_rows else ()
    marked = {run for run, kind in rows if kind in kinds}
    complete = {each.id: str(each.settings["testbed"]["name"]) for each in tables.records if each.status is Status.COMPLETE}
    ids = frozenset(marked & complete.keys())
    of, out = Counter(complete.values()), Counter(complete[run] for run in ids)
    runs = {name: (out[name], of[name]) for name in tables.outline.testbeds if of[name]}
    return Excluded(kinds, ids, runs, int(data.get("exclude_decided_after") or 0))
