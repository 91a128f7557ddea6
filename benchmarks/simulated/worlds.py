"""Studies of two equal or nearly equal testbeds that something else than the testbed makes unlike: the time at which they were
measured, a share of slow runs, or the number of metrics. They go through the whole analysis ``compare``.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from benchmarks.simulated.arrays import ratio_p_values
from benchmarks.simulated.little import MARGIN, InMemory, record
from twinbed.analyses.compare.decision import doubtful_shape
from twinbed.analyses.compare.gathered import CompareParams
from twinbed.analyses.compare.method import analysis as compare
from twinbed.analyses.compare.spreads import spread
from twinbed.model.comparison import FEW, Comparisons
from twinbed.model.result import Verdict
from twinbed.model.tables import Outline, StudyDocument
from twinbed.statistics.multiplicity import holm
from twinbed.statistics.sample import Sample

Floats = NDArray[np.float64]
MONTHS_S = 2e7
BEDS = ("real", "virtual")


def study(values: Mapping[str, Floats], *, apart_s: float | None, order: str = "as measured") -> InMemory:
    """Results of ``values``: testbed -> metrics by runs. Runs take turns; or, ``apart_s`` given, all of the first testbed come
    before those of the second, with so long a pause between."""
    n = next(iter(values.values())).shape[1]
    runs = [(bed, at) for at in range(n) for bed in BEDS] if apart_s is None else [(bed, at) for bed in BEDS for at in range(n)]
    records = [
        replace(one, started_s=one.started_s + (apart_s if apart_s and bed == BEDS[1] else 0.0))
        for position, (bed, at) in enumerate(runs)
        for one in [record(bed, at, position, {"testbed": bed})]
    ]
    count = len(next(iter(values.values())))
    rows = [
        (run.id, f"m{metric}", float(values[bed][metric, at]))
        for run, (bed, at) in zip(records, runs, strict=True)
        for metric in range(count)
    ]
    about = {"unit": "s", "layer": "application", "scale": "ratio", "host": "", "direction": "", "description": ""}
    metrics = pa.table(
        {
            **{name: [row[at] for row in rows] for at, name in enumerate(("run", "metric", "value"))},
            **{name: [text] * len(rows) for name, text in about.items()},
            "headline": [True] * len(rows),
        }
    )
    return InMemory({"metrics": metrics}, Outline("s", BEDS, BEDS[0], margin=MARGIN, data=StudyDocument(order=order)), records)


def drawn(
    noise: np.random.Generator,
    n: int,
    *,
    metrics: int = 1,
    ratio: float = 1.0,
    spread: float = 0.02,
    session: float = 0.0,
    drift: float = 0.0,
    slow: tuple[float, float] = (0.0, 1.0),
    apart_s: float | None = None,
) -> InMemory:
    """Log-normal values of two testbeds whose means are apart by ``ratio``. Each testbed's session shifts it by a normal error
    ``session``; over the whole study values drift by the factor 1 + ``drift``; ``slow``: a share of runs, and how many times as
    large all of their values are."""
    values: dict[str, Floats] = {}
    for number, bed in enumerate(BEDS):
        logs = noise.normal(0, spread, (metrics, n)) + noise.normal(0, session) + (np.log(ratio) if number else 0.0)
        at = np.arange(n) + number * n if apart_s is not None else 2 * np.arange(n) + number
        logs += np.log1p(drift) * at / (2 * n - 1) + np.log(slow[1]) * (noise.random((metrics, n)) < slow[0])
        values[bed] = np.exp(logs)
    return study(values, apart_s=apart_s)


@dataclass(frozen=True)
class Wrong:
    """Shares of studies: with any wrong claim, and with one that no caution goes with."""

    any: float
    alone: float


def _rate(
    studies: int,
    seed: Sequence[int],
    draw: Callable[[np.random.Generator], InMemory],
    wrong: Callable[[Comparisons], tuple[bool, bool]],
    sessions: str | None,
) -> Wrong:
    noise = np.random.default_rng(list(seed))
    found = [wrong(compare.run(draw(noise), CompareParams(sessions=sessions))) for _ in range(studies)]
    return Wrong(sum(any_ for any_, _ in found) / studies, sum(alone for _, alone in found) / studies)


@dataclass(frozen=True)
class World:
    """``verdict`` is the one that is wrong."""

    name: str
    verdict: Verdict
    ratio: float = 1.0
    session: float = 0.0
    drift: float = 0.0
    apart_s: float | None = None
    sessions: str | None = None

    def rate(self, n: int, studies: int, seed: int) -> Wrong:
        def wrong(result: Comparisons) -> tuple[bool, bool]:
            (one,) = result.comparisons
            return one.verdict is self.verdict, one.verdict is self.verdict and not one.cautions

        def draw(noise: np.random.Generator) -> InMemory:
            return drawn(noise, n, ratio=self.ratio, session=self.session, drift=self.drift, apart_s=self.apart_s)

        return _rate(studies, (seed, n, sum(self.name.encode())), draw, wrong, self.sessions)


_EDGE = 1 + MARGIN
IN_SUCCESSION: tuple[World, ...] = (
    *(
        World(
            f"months apart, sessions differ by 5 %, {text}{how}", verdict, ratio, session=0.05, apart_s=MONTHS_S, sessions=asked
        )
        for how, asked in (("", None), (", `--sessions none`", "none"))
        for text, verdict, ratio in (("equal", Verdict.DIFFERENT, 1.0), ("at the edge", Verdict.EQUIVALENT, _EDGE))
    ),
    World("without a pause, drift of 30 %, equal", Verdict.DIFFERENT, drift=0.3, apart_s=0.0),
    World("without a pause, drift of 15 %, at the edge", Verdict.EQUIVALENT, _EDGE, drift=-0.15, apart_s=0.0),
    World("in turn, drift of 15 %, equal", Verdict.DIFFERENT, drift=0.15),
    World("in turn, at the edge", Verdict.EQUIVALENT, _EDGE),
)


def varies_more(share: float, n: int, metrics: int, studies: int, seed: int, scale: float = 1.0) -> Wrong:
    """Studies of ``metrics`` whose spreads differ by ``scale``, a ``share`` of the runs ten times as slow: any whose spread is
    said to differ, and any without the caution on shape or on few values."""
    noise = np.random.default_rng([seed, n, round(100 * share), metrics])
    found = alone = 0
    for _ in range(studies):
        logs = noise.normal(0, 0.02, (2, metrics, n)) + np.log(10) * (noise.random((2, metrics, n)) < share)
        logs[0] *= scale
        samples = [[Sample(values) for values in bed] for bed in np.exp(logs).tolist()]
        spreads = [spread(one, two, 0.95) for one, two in zip(*samples, strict=True)]
        adjusted = [
            holm([1.0 if each is None else each for each in ps])
            for ps in zip(*((each.p_value, each.p_at_values) for each in spreads), strict=True)
        ]
        claimed = [at for at, ps in enumerate(zip(*adjusted, strict=True)) if max(ps) <= 0.05]
        found += bool(claimed)
        alone += n >= FEW and any(not any(doubtful_shape(bed[at], "ratio", MARGIN) for bed in samples) for at in claimed)
    return Wrong(found / studies, alone / studies)


def picked(n: int, metrics: int, ratio: float, studies: int, seed: int) -> tuple[float, float]:
    """Shares of studies, all metrics at ``ratio``, in which any is equivalent by itself, and any after Holm's correction."""
    noise = np.random.default_rng([seed, n, metrics])
    logs = noise.normal(0, 0.02, (2, studies * metrics, n))
    inside, _ = ratio_p_values(ratio * np.exp(logs[0]), np.exp(logs[1]), MARGIN)
    least = inside.reshape(studies, metrics)
    adjusted = np.array([holm(each) for each in least.tolist()])
    return float((least <= 0.05).any(1).mean()), float((adjusted <= 0.05).any(1).mean())
