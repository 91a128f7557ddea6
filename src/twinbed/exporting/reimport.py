"""Every run's metrics in a file of its own, and ``import.yaml``, with which ``twinbed import`` gives the same values.

The table ``metrics`` comes back equal: values, units, layers, scales, margins, hosts, directions, of the same testbeds, levels
and replicates.  Failed runs, cautions, settings and deeper tables do not: the archive keeps those.
"""

from __future__ import annotations

import csv
import json
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from twinbed.api import Results
from twinbed.imports.formats.twinbed_metrics import HEADER, twinbed_metrics
from twinbed.model.json import loads
from twinbed.model.run import Level
from twinbed.render.file_names import Names
from twinbed.show.words import cell_title

MANIFEST = "import.yaml"
DECLARED = ("unit", "layer", "scale", "description", "headline", "margin")
Row = Mapping[str, Any]


def write(results: Results, folder: Path) -> int:
    """Write the files; return the number of runs."""
    runs = results.table("runs").to_pylist()
    values: dict[str, list[Row]] = defaultdict(list)
    for row in results.metrics().to_pylist():
        values[row["run"]].append(row)
    cells: dict[str, list[Row]] = defaultdict(list)
    for run in runs:
        if values[run["run"]]:
            cells[run["cell"]].append(run)
    names = Names()
    entries: list[str] = []
    anchors: dict[str, str] = {}
    for of_cell in cells.values():
        testbed = of_cell[0]["testbed"]
        # By the runs: a column of numbers and texts has texts alone.
        own = loads(of_cell[0]["levels"])
        levels = {factor: own.get(factor) for factor in results.factors}
        name = names.of(f"{testbed} {cell_title(levels)}")
        (folder / name).mkdir()
        for run in of_cell:
            _file(folder / name / f"{run['replicate'] + 1}.csv", values[run["run"]], run["started_s"])
        declared = _declared(row for run in of_cell for row in values[run["run"]])
        entries += _entry(name, testbed, levels, declared, anchors)
    head = [
        f"# {results.name}, exported by twinbed. Import its metrics again: twinbed import . --manifest {MANIFEST} -o RESULTS",
        f"reference: {json.dumps(results.reference)}",
        "testbeds:",
        *(f"  {json.dumps(testbed)}:" for testbed in results.testbeds),
        "files:",
    ]
    (folder / MANIFEST).write_text("\n".join([*head, *entries, ""]), encoding="utf-8")
    return sum(map(len, cells.values()))


def _file(file: Path, rows: Sequence[Row], started_s: float) -> None:
    with file.open("w", newline="", encoding="utf-8") as stream:
        writer = csv.writer(stream, lineterminator="\n")
        writer.writerow(HEADER)
        for row in rows:
            value = "" if row["value"] is None else repr(row["value"])
            writer.writerow((row["host"], row["direction"], row["metric"], row["unit"], value, repr(started_s)))


def _declared(rows: Iterable[Row]) -> dict[str, dict[str, object]]:
    """Return metric -> its declaration in a manifest."""
    return {row["metric"]: {what: row[what] for what in DECLARED} for row in rows}


def _entry(
    name: str, testbed: str, levels: Mapping[str, Level], declared: Mapping[str, Mapping[str, object]], anchors: dict[str, str]
) -> list[str]:
    """Return the YAML of one cell's files; JSON is YAML. Equal declarations are written once."""
    units = json.dumps({"units": {metric: facts["unit"] for metric, facts in declared.items()}}, ensure_ascii=False)
    metrics = json.dumps([{"name": metric, **facts} for metric, facts in declared.items()], ensure_ascii=False)
    return [
        f"- pattern: {json.dumps(name + '/{replicate:int}.csv')}",
        f"  format: {twinbed_metrics.name}",
        f"  testbed: {json.dumps(testbed, ensure_ascii=False)}",
        f"  levels: {json.dumps(dict(levels), ensure_ascii=False)}",
        f"  options: {_once(units, 'units', anchors)}",
        f"  metrics: {_once(metrics, 'metrics', anchors)}",
    ]


def _once(text: str, name: str, anchors: dict[str, str]) -> str:
    if text in anchors:
        return f"*{anchors[text]}"
    anchors[text] = f"{name}{len(anchors)}"
    return f"&{anchors[text]} {text}"
