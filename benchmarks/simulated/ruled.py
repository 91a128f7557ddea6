"""Studies whose true ratios are planted, and how many of the rules that ``advise`` gives of them are wrong.

A study has the testbeds ``physical``, ``virtio`` and ``e1000``, payloads from 500 B to 1 MiB, offloading on and off.  Its
response is lognormal around the planted mean, and goes through the whole analysis.  A rule is wrong where a cell that it
calls equivalent has a true ratio at the margin or beyond, or one that it calls different has a true ratio at the margin or
within.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
import pyarrow as pa

from benchmarks.simulated.little import InMemory, record
from twinbed.model.result import Verdict
from twinbed.model.run import Level
from twinbed.model.tables import Outline, StudyDocument
from twinbed.report.advice.analysis import advise
from twinbed.report.advice.result import Advice, Rule
from twinbed.report.advice.study import Settings

TESTBEDS = ("physical", "virtio", "e1000")
PAYLOADS = ("500B", "4KiB", "64KiB", "1MiB")
MARGIN = 0.10
EDGE = 1 + MARGIN
FACTORS: Mapping[str, Sequence[Level]] = {"payload": PAYLOADS, "offload": (True, False)}
Truth = Callable[[str, Mapping[str, Level]], float]
"""(testbed, levels) -> the mean response."""


@dataclass(frozen=True)
class World:
    """What is true of a study."""

    name: str
    truth: Truth


def _payload(levels: Mapping[str, Level]) -> int:
    return PAYLOADS.index(str(levels["payload"]))


WORLDS = (
    World("all alike (A/A)", lambda testbed, levels: 1.0),
    World("every testbed at the margin", lambda testbed, levels: {"physical": 1.0, "virtio": EDGE, "e1000": 1 / EDGE}[testbed]),
    World(
        "at the margin below 64 KiB", lambda testbed, levels: EDGE if testbed != "physical" and _payload(levels) < 2 else 1.0
    ),
    World("at the margin without offload", lambda testbed, levels: 1.0 if levels["offload"] else EDGE),
    World(
        "at the margin at 4 KiB alone", lambda testbed, levels: EDGE if testbed != "physical" and _payload(levels) == 1 else 1.0
    ),
)


def study(
    truth: Truth,
    replicates: int,
    seed: int,
    *,
    spread: float = 0.02,
    factors: Mapping[str, Sequence[Level]] = FACTORS,
    name: str = "results",
    cautions: Mapping[str, tuple[str, str]] | None = None,
    data: StudyDocument | None = None,
) -> InMemory:
    """Tables of one metric; ``cautions`` maps a testbed to the kind and detail of what its runs carry."""
    noise = np.random.default_rng(seed)
    records, values = [], []
    for replicate in range(replicates):
        cells = [*itertools.product(TESTBEDS, *factors.values())]
        for at in noise.permutation(len(cells)):
            [testbed, *levels_of] = cells[at]
            levels = dict(zip(factors, levels_of, strict=True))
            position = len(records)
            bare = record(testbed, replicate, position, {"testbed": testbed, **levels})
            settings = {
                **bare.settings,
                "testbed": {"name": testbed, "kind": "remote"},
                "workload": {"kind": "planted", "payload": levels.get("payload")},
            }
            records.append(replace(bare, id=f"{testbed}{position}", cell=f"{testbed} {levels}", settings=settings))
            values.append(1000 * truth(testbed, levels) * math.exp(noise.normal(0, spread)))
    text = {"host": "", "direction": "", "metric": "rate", "unit": "1/s", "layer": "application", "scale": "ratio"}
    columns = {key: [value] * len(records) for key, value in text.items()}
    columns |= {"run": [each.id for each in records], "headline": [True] * len(records)}
    columns |= {"description": [""] * len(records), "value": values}
    of_testbeds = cautions or {}
    carried = [(each.id, *of_testbeds[testbed]) for each in records if (testbed := str(each.levels["testbed"])) in of_testbeds]
    runs, kinds, details = zip(*carried, strict=True) if carried else ((), (), ())
    tables = {"metrics": pa.table(columns), "cautions": pa.table({"run": runs, "kind": kinds, "detail": details})}
    given: StudyDocument = {"factors": {"testbed": list(TESTBEDS), **{key: list(each) for key, each in factors.items()}}}
    outline = Outline(name, TESTBEDS, "physical", MARGIN, data={**given, **(data or {})})
    return InMemory(tables, outline, records, shown=Path(name))


def is_wrong(rule: Rule, truth: Truth) -> bool:
    """Whether it says of any cell what is not so."""
    for each in rule.comparisons:
        if rule.testbed == each.testbed:
            true = truth(rule.testbed, each.cell) / truth("physical", each.cell)
        else:
            one, base = ({**each.cell, "offload": side.endswith(" on")} for side in (each.testbed, each.reference))
            true = truth(rule.testbed, one) / truth(rule.testbed, base)
        distance = abs(math.log(true)) - math.log(EDGE)
        if distance > -1e-9 if each.verdict is Verdict.EQUIVALENT else distance < 1e-9:
            return True
    return False


@dataclass(frozen=True)
class Counts:
    """Of many studies."""

    wrong: int
    """Studies with any wrong rule."""
    rules: float
    """Rules of a study, in the mean."""


def counts(world: World, replicates: int, studies: int, seed: int, *, spread: float = 0.02) -> Counts:
    wrong = rules = 0
    for each in range(studies):
        advice: Advice = advise([study(world.truth, replicates, seed + each, spread=spread)], Settings())
        rules += len(advice.rules)
        wrong += any(is_wrong(rule, world.truth) for rule in advice.rules)
    return Counts(wrong, rules / studies)
