"""Runs that a study leaves out of its main result for a caution, as its file says (``exclude: [stall]``)."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from twinbed.model.comparison import Excluded
from twinbed.model.run import Status
from twinbed.model.tables import Tables


def excluded(tables: Tables, asked: Sequence[str] = ()) -> Excluded | None:
    """Return the runs that the study leaves out, or those with the ``asked`` cautions instead; None if there are neither."""
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
