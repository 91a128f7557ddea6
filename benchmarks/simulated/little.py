"""Studies whose values say little, compared as a user would: how many verdicts are wrong, and how many of them have a caution.

Each study is one cell on two testbeds.  Its values are made up here, and go through the whole analysis ``compare``: the step is
found from the values, counts are told from shares, and cautions are those that a user sees.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
import pyarrow as pa
from scipy.special import ndtri

from twinbed.analyses.compare.gathered import CompareParams
from twinbed.analyses.compare.method import analysis as compare
from twinbed.model.caution import Caution
from twinbed.model.linkcheck import LinkCheck
from twinbed.model.record import Record
from twinbed.model.result import Pairing, Verdict
from twinbed.model.run import Level, Status
from twinbed.model.tables import Outline, Planned, StudyDocument

Values = Sequence[float]
Draw = Callable[[np.random.Generator, int], Values]
MARGIN = 0.10
SIZES: tuple[tuple[int, int], ...] = ((2, 2), (3, 3), (5, 5), (10, 10), (20, 20), (3, 10))
"""Runs of the testbed and of the reference."""


@dataclass(frozen=True)
class Little:
    """``wrong`` is the verdict that is not deserved."""

    name: str
    draw: Draw
    reference: Draw
    wrong: Verdict
    unit: str = "s"
    paired: bool = False
    shared: float = 0.0
    """The correlation from run to run of the machine's state, which shifts all runs by 5 %, whichever testbed they are of."""


@dataclass(frozen=True)
class Rates:
    wrong: float
    cautioned: float
    """The share of wrong verdicts with a caution; nan without any wrong one."""
    alone: float
    """Wrong verdicts without any caution, as a share of all studies."""


@dataclass
class InMemory:
    """Results that no folder holds."""

    tables: Mapping[str, pa.Table]
    outline: Outline
    records: Sequence[Record]
    planned: Sequence[Planned] = ()
    cautions: Sequence[Caution] = ()
    link_checks: Sequence[LinkCheck] = ()
    other_settings: int = 0
    shown: Path = field(default=Path())

    def table(self, name: str) -> pa.Table:
        return self.tables.get(name, pa.table({}))


def record(testbed: str, replicate: int, position: int, levels: Mapping[str, Level]) -> Record:
    """One complete run of a planted workload; runs begin every ten seconds."""
    return Record(
        id=f"{testbed}{replicate}",
        cell=testbed,
        levels=levels,
        replicate=replicate,
        block=replicate,
        position=position,
        settings={"testbed": {"name": testbed}, "workload": {"kind": "planted"}, "topology": {}, "instruments": {}},
        status=Status.COMPLETE,
        started_s=10.0 * position,
        phases={},
        failed_phase=None,
        reason=None,
        cautions=(),
        artifacts=[],
        twinbed="",
        lab="",
    )


def _study(of: Little, noise: np.random.Generator, sizes: tuple[int, int]) -> InMemory:
    values = {"virtual": of.draw(noise, sizes[0]), "real": of.reference(noise, sizes[1])}
    runs = []
    for each in range(max(sizes)):
        runs += [(each, name) for name in noise.permutation(list(values)).tolist() if each < len(values[name])]
    state = _dependent(of.shared, 1.0)(noise, len(runs)) if of.shared else [1.0] * len(runs)
    records = [record(name, each, position, {"testbed": name}) for position, (each, name) in enumerate(runs)]
    about = {"metric": "m", "unit": of.unit, "layer": "application", "scale": "ratio", "host": "", "direction": ""}
    metrics = pa.table(
        {
            "run": [each.id for each in records],
            **{name: [text] * len(runs) for name, text in about.items()},
            "headline": [True] * len(runs),
            "description": [""] * len(runs),
            "value": [float(values[name][each]) * shift for (each, name), shift in zip(runs, state, strict=True)],
        }
    )
    data = StudyDocument(comparison=Pairing.PAIRED if of.paired else Pairing.INDEPENDENT)
    return InMemory({"metrics": metrics}, Outline("s", ("real", "virtual"), "real", margin=MARGIN, data=data), records)


def rates(of: Little, sizes: tuple[int, int], studies: int, seed: int) -> Rates:
    noise = np.random.default_rng([seed, *sizes, sum(of.name.encode())])
    wrong = cautioned = 0
    for _ in range(studies):
        (found,) = compare.run(_study(of, noise, sizes), CompareParams()).comparisons
        if found.verdict is of.wrong:
            wrong += 1
            cautioned += bool(found.cautions)
    return Rates(wrong / studies, cautioned / wrong if wrong else math.nan, (wrong - cautioned) / studies)


def _normal(mean: float, spread: float, step: float = 0.0) -> Draw:
    """Normal values, at least 0, rounded to whole steps."""

    def draw(noise: np.random.Generator, n: int) -> Values:
        values = np.maximum(noise.normal(mean, spread, n), 0)
        rounded = np.rint(values / step) * step if step else values
        return [float(value) for value in np.round(rounded, 12)]

    return draw


def _poisson(rate: float) -> Draw:
    return lambda noise, n: [float(value) for value in noise.poisson(rate, n)]


def _mode(share: float, ratio: float) -> Draw:
    """Runs of which a ``share`` is slow."""

    def draw(noise: np.random.Generator, n: int) -> Values:
        return [float(each) for each in noise.lognormal(0, 0.01, n) * np.where(noise.random(n) < share, ratio, 1.0)]

    return draw


def _limited(share: float, ratio: float) -> Draw:
    """Times of which a ``share`` would be longer than the time-out, were they as the reference's."""
    limit = float(ndtri(1 - share))

    def draw(noise: np.random.Generator, n: int) -> Values:
        return [min(10.0, 10 * ratio * math.exp(0.3 * (each - limit))) for each in noise.standard_normal(n)]

    return draw


def _drifting(by: float, ratio: float) -> Draw:
    """Runs that grow by the factor ``by`` from the first to the last."""

    def draw(noise: np.random.Generator, n: int) -> Values:
        return [float(each) for each in ratio * noise.lognormal(0, 0.02, n) * by ** np.linspace(0, 1, n)]

    return draw


def _dependent(correlation: float, ratio: float) -> Draw:
    """An autoregressive process of the first order."""

    def draw(noise: np.random.Generator, n: int) -> Values:
        level, values = noise.normal(), []
        for _ in range(n):
            values.append(ratio * math.exp(0.05 * level))
            level = correlation * level + math.sqrt(1 - correlation**2) * noise.normal()
        return values

    return draw


def _slow(share: float) -> Little:
    """The testbed has a slow mode, and the mean with it is beyond the margin."""
    ratio = 0.387 if share <= 0.1 else 0.6
    within = math.exp(share * math.log(ratio)) > 1 / (1 + MARGIN)
    return Little(
        f"slow mode, {ratio} in {share:.0%} of runs",
        _mode(share, ratio),
        _mode(0.0, 1.0),
        Verdict.DIFFERENT if within else Verdict.EQUIVALENT,
    )


EDGE = 1 + MARGIN
LONGER = 1.5
EQUIVALENT, DIFFERENT = Verdict.EQUIVALENT, Verdict.DIFFERENT
LITTLE: tuple[Little, ...] = (
    *(
        Little(f"rounded to {step:g}, 0.45 against 0.05", _normal(0.45, 0.01, step), _normal(0.05, 0.01, step), EQUIVALENT)
        for step in (0.01, 0.1, 0.5, 1.0, 10.0)
    ),
    Little("rounded to 1, 0.52 against 0.50", _normal(0.52, 0.01, 1.0), _normal(0.50, 0.01, 1.0), DIFFERENT),
    Little("rounded to 1, 10.4 against 9.6", _normal(10.4, 0.2, 1.0), _normal(9.6, 0.2, 1.0), DIFFERENT),
    Little("rounded to 1, 11.6 against 10.4", _normal(11.6, 0.2, 1.0), _normal(10.4, 0.2, 1.0), EQUIVALENT),
    Little("events, 0.10 against 0.02 a run", _poisson(0.10), _poisson(0.02), EQUIVALENT, unit="count"),
    Little("events, 1 against 1.1 a run", _poisson(EDGE), _poisson(1.0), EQUIVALENT, unit="count"),
    Little("events, 1 a run on both", _poisson(1.0), _poisson(1.0), DIFFERENT, unit="count"),
    Little("events, 10 a run on both", _poisson(10.0), _poisson(10.0), DIFFERENT, unit="count"),
    *(_slow(share) for share in (0.01, 0.05, 0.10, 0.20)),
    # A latency of 1 s that a stall makes 14 s: the geometric mean is 14 % larger, the arithmetic one 65 %.
    Little("stalls, 14 times in 5% of runs", _mode(0.05, 14.0), _mode(0.0, 1.0), EQUIVALENT),
    *(
        Little(f"time-out at 10 s in {share:.0%} of runs, 1.5 times", _limited(share, LONGER), _limited(share, 1.0), EQUIVALENT)
        for share in (0.3, 0.6, 0.9)
    ),
    *(
        Little(f"drift of 30 % on both{how}, at the edge", _drifting(1.3, EDGE), _drifting(1.3, 1.0), EQUIVALENT, paired=paired)
        for how, paired in (("", False), (", paired", True))
    ),
    *(
        Little(
            f"machine like at the run before (0.8){how}, at the edge",
            _normal(EDGE, 0.02),
            _normal(1.0, 0.02),
            EQUIVALENT,
            paired=paired,
            shared=0.8,
        )
        for how, paired in (("", False), (", paired", True))
    ),
    *(
        Little(f"testbed like at its run before ({of}), at the edge", _dependent(of, EDGE), _dependent(of, 1.0), EQUIVALENT)
        for of in (0.5, 0.8)
    ),
)
