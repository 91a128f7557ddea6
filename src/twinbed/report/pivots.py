"""Make the tables that a study file asks for: rows and columns as it says, a number a cell, with the marks of its cautions.

They are other views of what ``compare`` found, and decide nothing. A missing value is empty.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from pydantic import ValidationError

from twinbed.analyses.compare.levels import level_ratio
from twinbed.model.caution import Kind
from twinbed.model.comparison import Comparison, Comparisons, Estimated
from twinbed.model.error import TwinbedError
from twinbed.model.json import Document
from twinbed.model.record import refused
from twinbed.model.run import Level, level_text
from twinbed.model.tables import TESTBED, Outline, Tables
from twinbed.render.spreadsheet import csv_text
from twinbed.render.tabular import Tabular
from twinbed.show.quantities import UnitScale, plus_minus, share, unit_scale
from twinbed.show.words import heading, metric_title
from twinbed.study.pivot import UNITS, Pivot

MARKS = "ᵃᵇᶜᵈᵉᶠᵍʰⁱʲᵏˡᵐⁿᵒᵖʳˢᵗᵘᵛʷˣʸᶻ"
"""The marks of footnotes: small letters, since a small number would be an exponent."""

Levels = Mapping[str, Level]
Printed = Callable[[str, Levels, str], str | None]
"""(printed table, levels, metric) -> what is printed there; None where nothing is."""


@dataclass(frozen=True, slots=True)
class Entry:
    """One cell of a table, in the metric's own unit. Everything is None where there is nothing."""

    n: int
    mean: float | None = None
    stdev: float | None = None
    low: float | None = None
    high: float | None = None
    change: float | None = None
    """A share: -0.13 is 13 % less."""
    change_low: float | None = None
    change_high: float | None = None
    cautions: tuple[Kind, ...] = ()
    printed: str | None = None


@dataclass(frozen=True, slots=True)
class Table:
    """A table of the study, filled in: ``rows`` are the levels of each row and its entries, one for each of ``columns``."""

    asked: Pivot
    unit: str
    confidence: float
    """The level of the intervals of means."""
    change_confidence: float | None
    """The level of the intervals of changes; None where there are none."""
    columns: tuple[Level, ...]
    rows: tuple[tuple[tuple[Level, ...], tuple[Entry, ...]], ...]

    @property
    def entries(self) -> Iterator[Entry]:
        return itertools.chain.from_iterable(entries for _, entries in self.rows)

    @property
    def cautions(self) -> Mapping[Kind, None]:
        """Cautions of its cells, in the order in which they come."""
        return dict.fromkeys(kind for entry in self.entries for kind in entry.cautions)


def marks(tables: Sequence[Table]) -> Mapping[Kind, str]:
    """Return a mark for each caution, the same in all of the tables."""
    kinds = dict.fromkeys(kind for table in tables for kind in table.cautions)
    return {kind: MARKS[at % len(MARKS)] * (at // len(MARKS) + 1) for at, kind in enumerate(kinds)}


def study_tables(tables: Tables, result: Comparisons, printed: Printed | None = None) -> tuple[Table, ...]:
    """Return what the study file lists under ``tables``, in its order."""
    outline = tables.outline
    asked = [_asked(number, entry) for number, entry in enumerate(outline.data.get("tables") or (), start=1)]
    factors = {TESTBED: list(outline.testbeds), **(outline.data.get("factors") or {})}
    return tuple(_table(table, factors, outline, result, printed) for table in asked)


def _asked(number: int, given: Document) -> Pivot:
    try:
        return Pivot.model_validate(given)
    except ValidationError as error:
        raise TwinbedError(
            f"study.json: table {number}: {refused(error)}", advice="read the results with the twinbed that made them"
        ) from error


def _table(
    asked: Pivot, factors: Mapping[str, Sequence[Level]], outline: Outline, result: Comparisons, printed: Printed | None
) -> Table:
    key = (asked.metric, asked.host, asked.direction)
    estimates = {
        _name({**estimate.cell, TESTBED: estimate.testbed}): estimate
        for estimate in result.estimates
        if (estimate.metric, estimate.host, estimate.direction) == key
    }
    cautions = {_name({**cell.cell, TESTBED: cell.testbed}): cell.cautions for cell in result.cell_cautions}
    compared = {
        _name({**comparison.cell, TESTBED: comparison.testbed}): comparison
        for comparison in result.comparisons
        if (comparison.metric, comparison.host, comparison.direction) == key
    }
    levels_of = {name: [level for level in levels if _kept(level, asked.where.get(name))] for name, levels in factors.items()}
    fixed = {name: levels[0] for name, levels in levels_of.items() if name not in (*asked.rows, asked.columns)}

    def entry(levels: Levels) -> Entry:
        name = _name(levels)
        kinds = dict.fromkeys(caution.kind for caution in cautions.get(name, ()))
        row = estimates.get(name)
        printed_value = printed(asked.published, levels, asked.metric) if printed and asked.published else None
        if row is None:
            return Entry(0, cautions=tuple(kinds), printed=printed_value)
        if row.few:
            kinds[Kind.FEW_REPLICATES] = None
        mean, interval = row.estimate, row.estimate.interval
        bounds = (interval.low, interval.high) if interval else (None, None)
        values = (mean.n, mean.mean, mean.stdev, bounds[0], bounds[1])
        base = estimates.get(_name({**levels, asked.columns: asked.against}))
        change = _change(row, base, compared.get(name), asked, outline) if asked.show == "change" else (None, None, None)
        return Entry(*values, *change, cautions=tuple(kinds), printed=printed_value)

    # What changes are from has none itself.
    columns = tuple(level for level in levels_of[asked.columns] if asked.show == "mean" or not _kept(level, [asked.against]))
    rows = []
    planned: set[Level] = set()
    for labels in itertools.product(*(levels_of[name] for name in asked.rows)):
        here = {**fixed, **dict(zip(asked.rows, labels, strict=True))}
        cells = [{**here, asked.columns: column} for column in columns]
        shown_levels = [levels[asked.columns] for levels in cells if _name(levels) in cautions]
        has_base = asked.show == "mean" or _name({**here, asked.columns: asked.against}) in cautions
        if shown_levels and has_base:
            planned.update(shown_levels)
            rows.append((labels, tuple(entry(levels) for levels in cells)))
    kept = tuple(at for at in range(len(columns)) if columns[at] in planned)
    levels_of_changes = (comparison.ratio_interval.level for comparison in compared.values() if comparison.ratio_interval)
    change_confidence = next(levels_of_changes, None) if asked.columns == TESTBED else 2 * outline.confidence - 1
    return Table(
        asked=asked,
        unit=next((estimate.unit for estimate in estimates.values()), ""),
        confidence=outline.confidence,
        change_confidence=change_confidence,
        columns=tuple(columns[at] for at in kept),
        rows=tuple((labels, tuple(entries[at] for at in kept)) for labels, entries in rows),
    )


def _change(
    row: Estimated, base: Estimated | None, compared: Comparison | None, asked: Pivot, outline: Outline
) -> tuple[float | None, float | None, float | None]:
    """Return the change as a share, with the bounds of ``compare`` against the reference testbed; of other levels with those of
    Welch's test on logarithms, of independent runs, at the same level."""
    if base is None or row is base or row.estimate.mean is None or not base.estimate.mean:
        return None, None, None
    if asked.columns == TESTBED and compared is not None and compared.reference == asked.against:
        ratio, interval = compared.ratio, compared.ratio_interval
    else:
        ratio, interval = level_ratio(row, base, outline) or (None, None)
    if ratio is None or interval is None:
        return row.estimate.mean / base.estimate.mean - 1, None, None
    return ratio - 1, interval.low - 1, interval.high - 1


def _kept(level: Level, held: Sequence[Level] | None) -> bool:
    return held is None or any(type(other) is type(level) and other == level for other in held)


def _name(levels: Levels) -> frozenset[tuple[str, str, Level]]:
    return frozenset((name, type(level).__name__, level) for name, level in levels.items())


def as_tabular(table: Table, notes: Mapping[Kind, str]) -> Tabular:
    """Return the texts of a table, marked, and the printed numbers in columns of their own."""
    asked = table.asked
    scale = _scale(table)
    has_printed = [any(entries[at].printed for _, entries in table.rows) for at in range(len(table.columns))]
    heads = [_label(name) for name in asked.rows]
    for at, column in enumerate(table.columns):
        # A testbed's name says what it is.
        head = level_text(column) if asked.columns == TESTBED else f"{_label(asked.columns)} {level_text(column)}"
        heads += [head, f"{head}, printed"] if has_printed[at] else [head]
    rows = []
    for labels, entries in table.rows:
        cells: list[str | None] = [level_text(label) for label in labels]
        for at, entry in enumerate(entries):
            marked = "".join(notes[kind] for kind in notes if kind in entry.cautions)
            cells.append(f"{_text(asked, entry, scale)}{marked}" or None)
            if has_printed[at]:
                cells.append(entry.printed)
        rows.append(tuple(cells))
    return Tabular(asked.title, _caption(table, scale), tuple(heads), tuple(rows), texts=len(asked.rows))


def footnotes(notes: Mapping[Kind, str], *, advice: bool = True) -> list[str]:
    """``ᵃ Some requests failed: look at ...``; each caution once."""
    return [f"{mark} {heading(kind.meaning)}{f': {kind.advice}' if advice else ''}." for kind, mark in notes.items()]


def _scale(table: Table) -> UnitScale:
    if table.asked.unit is not None:
        return UnitScale(UNITS[table.asked.unit][1], table.asked.unit)
    # The smallest keeps its digits; larger ones only grow longer.
    means = [abs(entry.mean) for entry in table.entries if entry.mean]
    return unit_scale(table.unit, [min(means, default=None)])


def _text(asked: Pivot, entry: Entry, scale: UnitScale) -> str:
    if asked.show == "change":
        return _change_text(entry)
    if entry.mean is None:
        return ""
    half = None
    if asked.spread == "interval" and entry.low is not None and entry.high is not None:
        half = (entry.high - entry.low) / 2 / scale.factor
    elif asked.spread == "stdev" and entry.stdev is not None:
        half = entry.stdev / scale.factor
    return plus_minus(entry.mean / scale.factor, half)


def _change_text(entry: Entry) -> str:
    """``-13.1 % [-15.0, -11.2]``."""
    if entry.change is None:
        return ""
    if entry.change_low is None or entry.change_high is None:
        return f"{_percent(entry.change)} %"
    return f"{_percent(entry.change)} % [{_percent(entry.change_low)}, {_percent(entry.change_high)}]"


def _percent(share_of_mean: float) -> str:
    """``-13.1``, ``+2,203``."""
    percent = 100 * share_of_mean
    return f"{percent:+.1f}" if abs(percent) < 1000 else f"{percent:+,.0f}"


def _caption(table: Table, scale: UnitScale) -> str:
    asked = table.asked
    title = heading(metric_title(asked.metric, asked.host, asked.direction))
    if asked.show == "change":
        bounded = table.change_confidence is not None and any(entry.change_low is not None for entry in table.entries)
        bounds = f", and its {share(round(table.change_confidence or 0.0, 4))} CI" if bounded else ""
        means = " (of geometric means where all values are positive)" if bounded else ""
        what = f"{title}: difference from {level_text(asked.against)} as a share of it{means}{bounds}"
    else:
        level = share(round(table.confidence, 4))
        spreads = {"interval": f" ± half the {level} CI", "stdev": " ± standard deviation", "none": ""}
        # The name of a rate says so.
        unit = f" ({scale.unit})" if scale.unit not in ("", "/s") else ""
        what = f"{title}{unit}: mean{spreads[asked.spread]}"
    counts = sorted({entry.n for entry in table.entries if entry.n})
    runs = f"; {' to '.join(dict.fromkeys((str(counts[0]), str(counts[-1]))))} runs a cell" if counts else "; no run has it"
    where = ", ".join(f"{_label(name)} {level_text(held[0])}" for name, held in asked.where.items() if len(held) == 1)
    printed = f"; printed: {asked.published}" if any(entry.printed for entry in table.entries) else ""
    return f"{what}{runs}{f'; {where}' if where else ''}{printed}."


def _label(factor: str) -> str:
    """Return a factor's own name, without the path to it."""
    return factor.rpartition(".")[2]


def as_csv(tables: Sequence[Table]) -> str:
    """Return a row a cell, in base units; an empty field is a missing value."""
    heads = "table metric host direction unit levels n mean stdev low high change change_low change_high cautions printed"
    rows = []
    for table in tables:
        asked = table.asked
        for labels, entries in table.rows:
            for column, entry in zip(table.columns, entries, strict=True):
                named = zip((*asked.rows, asked.columns), (*labels, column), strict=True)
                values = (entry.n, entry.mean, entry.stdev, entry.low, entry.high, entry.change, entry.change_low)
                row = (
                    *(asked.title, asked.metric, asked.host, asked.direction, table.unit),
                    "; ".join(f"{name}={level_text(level)}" for name, level in named),
                    *(*values, entry.change_high),
                    " ".join(kind.name.lower() for kind in entry.cautions),
                    entry.printed,
                )
                rows.append(row)
    return csv_text(heads.split(), rows)
