"""Counters that a file has once or several times: their differences between the first and the last, never since boot."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import TYPE_CHECKING

from twinbed.contracts.format import Diagnostic
from twinbed.imports.text.figures import table
from twinbed.metrics.metric import Metric, Value

if TYPE_CHECKING:
    import pyarrow as pa

Totals = Mapping[str, int]
"""Key -> value at one time."""


@dataclass(frozen=True, slots=True)
class CounterDelta:
    """The difference of one key. ``note`` is the reason where there is none, in the words of the instrument ``counters``."""

    key: str
    first: int | None
    last: int | None
    difference: int | None
    note: str | None


def counter_deltas(snapshots: Sequence[Totals]) -> dict[str, CounterDelta]:
    """Return the difference of every key that is in any of them."""
    keys = dict.fromkeys(key for snapshot in snapshots for key in snapshot)
    return {key: _delta(key, [snapshot.get(key) for snapshot in snapshots]) for key in keys}


def _delta(key: str, values: Sequence[int | None]) -> CounterDelta:
    present = [value for value in values if value is not None]
    note = None
    if len(values) < 2:
        note = "one value only"
    elif values[0] is None:
        note = "not in the first snapshot"
    elif values[-1] is None:
        note = "not in the last snapshot"
    elif any(later < earlier for earlier, later in pairwise(present)):
        note = "went backwards"
    return CounterDelta(key, present[0], present[-1], None if note else present[-1] - present[0], note)


def resets(deltas: Mapping[str, CounterDelta]) -> list[Diagnostic]:
    """Return a diagnostic if counters were reset between two snapshots."""
    backwards = [key for key, delta in deltas.items() if delta.note == "went backwards"]
    more = f" (and {len(backwards) - 1} more)" if len(backwards) > 1 else ""
    return [Diagnostic(f"went backwards: {backwards[0]}{more}")] if backwards else []


def summed(deltas: Mapping[str, CounterDelta], metric: Metric, keys: Iterable[str]) -> Value:
    """Return the differences of these keys together; None where one is missing, or there is none."""
    parts = [deltas[key].difference if key in deltas else None for key in keys]
    present = [part for part in parts if part is not None]
    return Value(metric.name, sum(present) if present and len(present) == len(parts) else None, metric.unit)


def counter_table(source: str, deltas: Mapping[str, CounterDelta]) -> pa.Table:
    """Return rows of the table ``counters``, as the instrument of that name has it: without counters that did not change."""
    rows = [delta for delta in deltas.values() if delta.difference != 0]
    nothing = [None] * len(rows)
    return table(
        {
            "host": ("string", [""] * len(rows)),
            "source": ("string", [source] * len(rows)),
            "key": ("string", [delta.key for delta in rows]),
            "kind": ("string", ["counter"] * len(rows)),
            "first": ("float64", [delta.first for delta in rows]),
            "last": ("float64", [delta.last for delta in rows]),
            "difference": ("float64", [delta.difference for delta in rows]),
            "mean": ("float64", nothing),
            "seconds": ("float64", nothing),
            "first_text": ("string", nothing),
            "last_text": ("string", nothing),
            "note": ("string", [delta.note for delta in rows]),
        }
    )


def joined(tables: Sequence[pa.Table]) -> pa.Table:
    """Return one table of several groups, which are not compared with each other."""
    import pyarrow as pa

    return pa.concat_tables(tables)
