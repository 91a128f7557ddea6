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
    asked_now: bool = False
    """Whether it was not the study that says so, but whoever asked for the result."""

    @property
    def sentence(self) -> str:
        counts = ", ".join(f"{name} {out} of {of}" for name, (out, of) in self.runs.items())
        whose = "as was asked for now, not by the study" if self.asked_now else "as the study says"
        return f"Runs left out, {whose} (exclude: {', '.join(self.kinds)}): {counts}."

    def cautions(self) -> Iterator[Caution]:
        shares = {out / of for out, of in self.runs.values() if of}
        if len(shares) > 1:
            counts = ", ".join(f"{name} {out} of {of}" for name, (out, of) in self.runs.items())
            yield Caution(Kind.EXCLUDED_UNEQUALLY, f"{', '.join(self.kinds)}: {counts}")
        if self.asked_now:
            yield Caution(Kind.EXCLUDED_AFTERWARDS, f"{', '.join(self.kinds)}: asked for with the results in hand")
        elif self.decided_after:
            yield Caution(Kind.EXCLUDED_AFTERWARDS, f"{', '.join(self.kinds)}: after {self.decided_after} runs")


def excluded(tables: Tables, asked: Sequence[str] = ()) -> Excluded | None:
    """What the study leaves out, or ``asked`` instead; None where there is neither."""
    data = tables.outline.data
    of_study = tuple(data.get("exclude_cautions") or ())
    kinds = tuple(asked) or of_study
    asked_now = set(kinds) != set(of_study)
    if not kinds:
        return None
    table = tables.table("cautions")
    rows = zip(table["run"].to_pylist(), table["kind"].to_pylist(), strict=True) if table.num_rows else ()
    marked = {run for run, kind in rows if kind in kinds}
    complete = {each.id: str(each.settings["testbed"]["name"]) for each in tables.records if each.status is Status.COMPLETE}
    ids = frozenset(marked & complete.keys())
    of, out = Counter(complete.values()), Counter(complete[run] for run in ids)
    runs = {name: (out[name], of[name]) for name in tables.outline.testbeds if of[name]}
    return Excluded(kinds, ids, runs, int(data.get("exclude_decided_after") or 0), asked_now)
