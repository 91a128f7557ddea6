"""The result of `twinbed import`, as text for people and as data."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import NotRequired, TypedDict

from twinbed.imports.layout.names import by_shape, natural, shown
from twinbed.imports.runs import CellCount, Outcome, State, apart, cell_counts, gaps, uneven
from twinbed.imports.study import ImportSettings
from twinbed.imports.survey import Survey
from twinbed.model.amount import amount
from twinbed.model.run import Level, level_text
from twinbed.render.rows import as_csv, as_text
from twinbed.terminal import say, say_text

MOST_LINES = 10
MOST_KEPT = 1000
"""Unread files that study.json names, each with the reason; it counts the others."""


class FileRow(TypedDict):
    path: str
    what: str
    format: str
    measurements: int | None
    testbed: str
    replicate: str | None
    host: str
    levels: dict[str, Level]
    runs: list[str]
    reason: str


class Cell(TypedDict):
    testbed: str
    levels: dict[str, Level]
    runs: int
    failed: int


class ImportData(TypedDict):
    """Holds what an import read, and in ``runs_...`` what it wrote."""

    testbeds: list[str]
    reference: str | None
    factors: dict[str, list[Level]]
    runs: int
    failed_runs: int
    files: dict[str, int]
    formats: dict[str, int]
    cells: list[Cell]
    gaps: list[dict[str, Level]] | None
    """Cells without any run; None where there are too many to check."""
    apart: list[str]
    """Testbeds without a cell in common with the reference."""
    stated: list[str]
    """Factors that files state themselves, with their levels."""
    numbered: list[str]
    conflicts: list[str]
    doubts: list[str]
    two_readings: list[str]
    not_read: list[dict[str, str]]
    outcomes: list[FileRow]
    left_out: list[dict[str, str]]
    runs_there: NotRequired[int]
    runs_added: NotRequired[int]
    runs_of_earlier_imports: NotRequired[int]
    runs_changed: NotRequired[list[str]]


def as_data(survey: Survey, settings: ImportSettings) -> ImportData:
    """Return everything, as JSON has it."""
    plan = survey.plan
    testbeds = [name for name in settings.testbeds if name in plan.testbeds()]
    testbeds += [name for name in plan.testbeds() if name not in testbeds]
    reference = settings.reference_of(testbeds)[0] if testbeds else None
    lacking = gaps(plan.runs, testbeds, plan.factors())
    counts = plan.counts()
    bad = [outcome for outcome in plan.outcomes if outcome.state in (State.REFUSED, State.PARTLY)]
    return {
        "testbeds": testbeds,
        "reference": reference,
        "factors": {name: list(levels) for name, levels in plan.factors().items()},
        "runs": len(plan.runs),
        "failed_runs": sum(run.reason is not None for run in plan.runs),
        "files": {**{str(state): count for state, count in counts.items()}, "left out": len(survey.left)},
        "formats": dict(Counter(_format(outcome) for outcome in plan.outcomes if outcome.candidate is not None)),
        "cells": [
            {"testbed": count.testbed, "levels": dict(count.levels), "runs": count.runs, "failed": count.failed}
            for count in cell_counts(plan.runs)
        ],
        "gaps": lacking,
        "apart": apart(plan.runs, reference) if reference is not None else [],
        "stated": [shown(level) for level in plan.stated],
        "numbered": [shown(group) for group in plan.numbered],
        "conflicts": [shown(conflict) for conflict in plan.conflicts],
        "doubts": [shown(caution) for caution in plan.cautions],
        "two_readings": [shown(path) for path in plan.otherwise],
        "not_read": [
            {"path": shown(outcome.path), "what": str(outcome.state), "reason": outcome.reason} for outcome in bad[:MOST_KEPT]
        ],
        "outcomes": [_row(outcome) for outcome in plan.outcomes],
        "left_out": [{"path": shown(file.path), "reason": file.reason} for file in survey.left],
    }


def print_csv(survey: Survey) -> None:
    """Print a row for each file."""
    factors = survey.plan.factors()
    rows = []
    for outcome in survey.plan.outcomes:
        row, levels = _row(outcome), outcome.candidate.file_key.levels if outcome.candidate is not None else {}
        flat = {name: value for name, value in row.items() if name != "levels"}
        rows.append({**flat, "runs": " ".join(row["runs"]), **{f"factor:{name}": levels.get(name) for name in factors}})
    left = [{"path": shown(file.path), "what": "left out", "reason": file.reason} for file in survey.left]
    names = list(rows[0]) if rows else []
    say_text(as_csv([*rows, *({name: row.get(name) for name in names} for row in left)]))


def print_text(survey: Survey, data: ImportData, output: Path | None, dry: bool) -> None:
    """Print the summary; a dry run prints the details before it."""
    for line in _lines(survey, data, dry):
        say(line)
    files = data["files"]
    say(
        f"{amount(files['read'], 'file')} read, {files['partly read']} partly read, {files['refused']} refused,"
        f" {files['copy']} copies of others, {files['ignored'] + files['left out']} ignored"
    )
    failed = f", {data['failed_runs']} of them failed" if data["failed_runs"] else ""
    if dry:
        say(f"{amount(data['runs'], 'run')}{failed}; nothing was written (--dry-run)")
        return
    known = f", {data['runs_there']} were imported before" if data["runs_there"] else ""
    others = data["runs_of_earlier_imports"]
    stay = f"; {others} runs of earlier imports are kept and compared too" if others else ""
    say(f"{amount(data['runs_added'], 'run')} added to {output}{failed}{known}{stay}")


def _lines(survey: Survey, data: ImportData, dry: bool) -> Iterator[str]:
    plan = survey.plan
    usual, short = uneven(cell_counts(plan.runs))
    if dry:
        yield from _files(plan.outcomes)
        yield f"testbeds   {', '.join(_marked(name, data['reference']) for name in data['testbeds'])}"
        for name, levels in data["factors"].items():
            yield f"factor     {name}: {_short([level_text(level) for level in levels], 12)}"
        yield f"formats    {', '.join(f'{count} {name}' for name, count in data['formats'].items())}"
        yield f"cells      {len(data['cells'])}; {len(data['cells']) - len(short)} of them have at least {usual} complete runs"
    yield from _some("cells with fewer complete runs", [_short_cell(count) for count in short])
    yield from _some(
        f"testbeds that share no cell with the reference {data['reference']}, so that they cannot be compared with it",
        [_apart(name, data) for name in data["apart"]],
    )
    if data["gaps"] is None:
        yield "cells without any run: not counted, as all combinations of levels are too many"
    else:
        yield from _some("cells without any run", [_levels(cell) for cell in data["gaps"]])
    yield from _some("paths that the pattern matches in two ways (the first is used)", data["two_readings"])
    yield from _some("conflicts", data["conflicts"])
    yield from _some("doubts", data["doubts"])
    yield from _some("factors that files state", data["stated"])
    yield from _some("numbered as replicates", data["numbered"])
    for state in (State.REFUSED, State.PARTLY, State.COPY):
        yield from _some(
            str(state),
            [f"{shown(outcome.path)}: {shown(outcome.reason)}" for outcome in plan.outcomes if outcome.state is state],
        )
    of_prefix = [outcome for outcome in plan.outcomes if outcome.candidate is not None and outcome.candidate.scanned.prefix]
    yield from _some(
        "read without a prefix", by_shape([(shown(outcome.path), f": {shown(outcome.reason)}") for outcome in of_prefix])
    )
    ignored = [(outcome.path, f": {outcome.reason}") for outcome in plan.outcomes if outcome.state is State.IGNORED]
    for title, files in (("ignored", ignored), ("left out", [(file.path, f" {file.reason}") for file in survey.left])):
        yield from _some(title, [shown(text) for text in by_shape(files)], len(files))
    yield from _some("changed", data.get("runs_changed", []))


def _files(outcomes: Sequence[Outcome]) -> Iterator[str]:
    rows = []
    for used in [outcome for outcome in outcomes if outcome.runs][:MOST_LINES]:
        row = _row(used)
        first = {"file": row["path"], "format": row["format"], "testbed": row["testbed"], **_texts(row["levels"])}
        rows.append({**first, "replicate": row["replicate"], "host": row["host"], "runs": " ".join(row["runs"])})
    if rows:
        columns = [name for name in rows[0] if any(row.get(name) for row in rows)]
        yield as_text([{name: row.get(name) for name in columns} for row in rows]).rstrip("\n")
    rest = sum(bool(outcome.runs) for outcome in outcomes) - len(rows)
    if rest > 0:
        yield f"... and {rest} more files (--format csv lists all)"
    yield ""


def _row(outcome: Outcome) -> FileRow:
    candidate = outcome.candidate
    return {
        "path": shown(outcome.path),
        "what": str(outcome.state),
        "format": _format(outcome) if candidate is not None else "",
        "measurements": len(candidate.scanned.pieces) if candidate is not None else None,
        "testbed": candidate.file_key.testbed if candidate is not None else "",
        "replicate": candidate.file_key.replicate if candidate is not None else None,
        "host": candidate.file_key.host if candidate is not None else "",
        "levels": dict(candidate.file_key.levels) if candidate is not None else {},
        "runs": list(outcome.runs),
        "reason": outcome.reason,
    }


def _format(outcome: Outcome) -> str:
    return outcome.candidate.scanned.format or "unknown" if outcome.candidate is not None else ""


def _apart(testbed: str, data: ImportData) -> str:
    """Return the factors whose levels separate a testbed from the reference, with the levels of both."""
    of: dict[str, list[dict[str, Level]]] = {name: [] for name in (testbed, str(data["reference"]))}
    for cell in data["cells"]:
        if cell["testbed"] in of:
            of[cell["testbed"]].append(cell["levels"])
    levels = {factor: [{level_text(cell[factor]) for cell in cells} for cells in of.values()] for factor in data["factors"]}
    differing = {factor: sets for factor, sets in levels.items() if not sets[0] & sets[1]}
    detail = ", ".join(
        f"{factor} is {_short(sorted(own, key=natural), 3)} here, {_short(sorted(reference, key=natural), 3)} there"
        for factor, (own, reference) in differing.items()
    )
    return f"{testbed}: {detail or 'they share no combination of levels'}"


def _some(title: str, texts: Sequence[str], count: int | None = None) -> Iterator[str]:
    """Yield a heading with the number of ``texts`` (or ``count``), and the first of them."""
    if texts:
        yield f"{title} ({len(texts) if count is None else count}):"
        yield from (f"  {text}" for text in texts[:MOST_LINES])
        if len(texts) > MOST_LINES:
            yield f"  and {len(texts) - MOST_LINES} more (--format json lists all)"


def _short(texts: Sequence[str], most: int) -> str:
    return ", ".join(texts[:most]) + (f", ... ({len(texts)})" if len(texts) > most else "")


def _short_cell(count: CellCount) -> str:
    failed = f", {count.failed} more failed" if count.failed else ""
    return f"{_levels({'testbed': count.testbed, **count.levels})}: {count.runs - count.failed}{failed}"


def _levels(levels: Mapping[str, Level]) -> str:
    testbed, *rest = levels.items()
    return ", ".join([str(testbed[1]), *(f"{name} {level_text(level)}" for name, level in rest)])


def _texts(levels: Mapping[str, Level]) -> dict[str, str]:
    return {name: level_text(level) if not isinstance(level, dict) else json.dumps(level) for name, level in levels.items()}


def _marked(name: str, reference: str | None) -> str:
    return f"{name} (reference)" if name == reference else name
