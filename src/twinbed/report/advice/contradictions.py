"""Finds results that contradict each other: for the same contrast, metric and workload, one is equivalent, another different.

Both hold at the level of all advice, so that chance is an unlikely reason. Something that neither study varies differs between
them, such as a kernel, a machine or an image. A workload is the same if kind and settings are, except how long it runs. Factors
that both studies vary have the same level. Testbeds are identified by name.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import product

from twinbed.model.comparison import Comparison
from twinbed.model.result import Verdict
from twinbed.model.tables import TESTBED, Tables
from twinbed.report.advice.result import Contradiction, Contrast, Evidence

LENGTH = ("duration", "warm_up", "warm_up_requests", "max_requests")
"""Settings of workloads that say how long they run."""


@dataclass(frozen=True, slots=True)
class _Shown:
    contrast: Contrast
    comparison: Comparison


def contradictions(of_sources: Sequence[tuple[Tables, Sequence[tuple[Contrast, Comparison]]]]) -> Iterator[Contradiction]:
    """Yield the contradictions between results folders, each given with its comparisons."""
    within: dict[tuple[Contrast, str, str], list[_Shown]] = {}
    beyond: dict[tuple[Contrast, str, str], list[_Shown]] = {}
    for tables, held in of_sources:
        for contrast, comparison in held:
            side = {Verdict.EQUIVALENT: within, Verdict.DIFFERENT: beyond}.get(comparison.verdict)
            if side is not None:
                key = replace(contrast, source=""), comparison.place, _workload(tables, comparison)
                side.setdefault(key, []).append(_Shown(contrast, comparison))
    for key, equivalent in within.items():
        pairs = [
            (shown, other)
            for shown, other in product(equivalent, beyond.get(key, ()))
            if shown.contrast.source != other.contrast.source and _agree(shown.comparison, other.comparison)
        ]
        if pairs:
            sides = ([shown for shown, _ in pairs], [other for _, other in pairs])
            yield Contradiction(key[0], key[1], *(_evidence(side) for side in sides))


def _workload(tables: Tables, comparison: Comparison) -> str:
    """Return the workload of a cell as text."""
    for record in tables.records:
        if all(record.levels.get(name) == level for name, level in comparison.cell.items() if name in record.levels):
            own = {name: value for name, value in record.settings["workload"].items() if name not in LENGTH}
            levels = {name: level for name, level in comparison.cell.items() if _is_workloads(name, own)}
            return json.dumps({**own, **levels}, sort_keys=True, default=str)
    return ""


def _is_workloads(factor: str, workload: Mapping[str, object]) -> bool:
    return factor.partition(".")[0] == "workload" or factor == "payload" or factor in workload


def _agree(comparison: Comparison, other: Comparison) -> bool:
    return all(other.cell.get(name, level) == level for name, level in comparison.cell.items() if name != TESTBED)


def _evidence(side: Sequence[_Shown]) -> tuple[Evidence, ...]:
    return tuple({id(shown.comparison): Evidence(shown.contrast.source, shown.comparison) for shown in side}.values())
