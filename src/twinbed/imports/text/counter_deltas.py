"""Counters that a file has once or several times: what they come to between the first and the last, and never since boot."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import TYPE_CHECKING

from twinbed.contracts.format import Diagnostic
from twinbed.metrics.metric import Metric, Value

if TYPE_CHECKING:
    import pyarrow as pa

Totals = Mapping[str, int]
"""Key -> value at one time."""


@dataclass(frozen=True, slots=True)
class CounterDelta:
    """The difference of one key. ``note`` says why there is none, in the words of the instrument ``counters``."""

    key: str
    first: int | None
    last: int | None
    difference: int | None
    note: str | None


def counter_deltas(snapshots: Sequence[Totals]) -> dict[str, CounterDelta]:
    """The difference of every key that is in any of them."""
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


def diagnostics(deltas: Mapping[str, CounterDelta]) -> list[Diagnostic]:
    """Counters that were reset between two snapshots."""
    backwards = [key for key, each in deltas.items() if each.note == "went backwards"]
    more = f" (and {len(backwards) - 1} more)" if len(backwards) > 1 else ""
    return [Diagnostic(f"went backwards: {backwards[0]}{more}")] if backwards else []


def summed(deltas: Mapping[str, CounterDelta], metric: Metric, keys: Iterable[str]) -> Value:
    """The differences of these keys together; None where one is missing, or there is none."""
    parts = [deltas[key].difference if key in deltas else None for key in keys]
    present = [part for part in parts if part is not None]
    return Value(metric.name, sum(present) if present and len(present) == len(parts) else None, metric.unit)


def table(source: str, deltas: Mapping[str, CounterDelta]) -> pa.Table:
    """Rows of the table ``counters``, as the instrument of that name has it: without those that stood still."""
    import pyarrow as pa

    rows = [each for each in deltas.values() if each.difference != 0]
    texts: dict[str, list[str | None]] = {
        "host": [""] * len(rows),
        "source": [source] * len(rows),
        "key": [each.key for each in rows],
        "kind": ["counter"] * len(rows),
    }
    numbers: dict[str, list[int | None]] = {
        "first": [each.first for each in rows],
        "last": [each.last for each in rows],
        "difference": [each.difference for each in rows],
        "mean": [None] * len(rows),
        "seconds": [None] * len(rows),
    }
    nothing: list[str | None] = [None] * len(rows)
    after = {"first_text": nothing, "last_text": nothing, "note": [each.note for each in rows]}
    columns = {name: pa.array(column, pa.string()) for name, column in texts.items()}
    columns |= {name: pa.array(map(_float, column), pa.float64()) for name, column in numbers.items()}
    return pa.table(columns | {name: pa.array(column, pa.string()) for name, column in after.items()})


def joined(tables: Sequence[pa.Table]) -> pa.Table:
    """One table of several groups, which are not compared with each other."""
    import pyarrow as pa

    return pa.concat_tables(tables)


def _float(number: int | None) -> float | None:
    return None if number is None else float(number)
