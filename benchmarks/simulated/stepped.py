"""Values that come in steps, compared as a user would: at the edge of the margin, and where both testbeds are equal.

Each study is one cell on two testbeds, and goes through the whole analysis ``compare``.  Its mean, its noise and which of both
is slower are drawn for each study, since what rounding does depends on where between two steps a mean lies.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from benchmarks.simulated.little import MARGIN, InMemory, record
from twinbed.analyses.compare.method import analysis as compare
from twinbed.model.result import Verdict
from twinbed.model.tables import Outline, StudyDocument

Array = NDArray[np.float64]
Print = Callable[[Array], Array]
"""What is printed of what was measured."""
NOISE = (0.005, 0.05)
"""The coefficient of variation of what is measured is drawn between these."""
SIZES = (5, 10)


def nearest(step: float) -> Print:
    return lambda values: np.round(np.rint(values / step) * step, 9)


def cut(step: float) -> Print:
    return lambda values: np.round(np.floor(values / step + 1e-9) * step, 9)


@dataclass(frozen=True)
class Stepped:
    """A kind of study. ``least`` and ``most``: between which the reference's mean is drawn."""

    name: str
    least: float
    most: float
    here: Print
    reference: Print
    unit: str = "s"
    whole: int = 1
    """Values are means of as many printed ones."""
    digits: int | None = None
    """With which means are printed."""
    work: float = 0.0
    """Requests a run, by which values are divided, and which vary by a hundredth."""


@dataclass(frozen=True)
class Rates:
    """Shares of studies that are called equivalent, and that are so without a caution."""

    equivalent: float
    alone: float


def _same(name: str, least: float, most: float, printed: Print, unit: str = "s", **others: float) -> Stepped:
    return Stepped(name, least, most, printed, printed, unit, **others)  # type: ignore[arg-type]


def _unchanged(values: Array) -> Array:
    return values


MIB = 2.0**20
STEPPED = (
    _same("not rounded", 0.010, 0.030, _unchanged),
    _same("0.1 ms, 10 to 30 ms", 0.010, 0.030, nearest(0.0001)),
    _same("clock ticks of 4 ms, 10 to 30 ms", 0.010, 0.030, nearest(0.004)),
    _same("clock ticks of 15.625 ms printed in ms, 40 to 120 ms", 0.040, 0.120, lambda x: nearest(0.001)(nearest(1 / 64)(x))),
    _same("steps of 0.25, 0.5 to 2", 0.5, 2.0, nearest(0.25)),
    _same("means of three whole numbers, 1 to 4", 1.0, 4.0, nearest(1.0), "1", whole=3),
    _same("means of three whole numbers with two digits, 1 to 4", 1.0, 4.0, nearest(1.0), "1", whole=3, digits=2),
    _same("whole numbers of unit 1, 3 to 12", 3.0, 12.0, nearest(1.0), "1"),
    _same("whole MiB, 3 to 12", 3 * MIB, 12 * MIB, nearest(MIB), "bytes"),
    _same("CPU ticks of 10 ms by requests, 30 to 120 ms", 0.03, 0.12, nearest(0.01), work=200.0),
    Stepped("whole ms and microseconds, 3 to 12 ms", 0.003, 0.012, nearest(1e-6), nearest(0.001)),
    Stepped("whole ms, cut off and rounded, 5 to 20 ms", 0.005, 0.020, cut(0.001), nearest(0.001)),
)


def _study(of: Stepped, noise: np.random.Generator, n: int, ratio: float) -> InMemory:
    mean, spread = noise.uniform(of.least, of.most), noise.uniform(*NOISE)
    ratio = ratio ** noise.choice([-1.0, 1.0])
    records, rows = [], []
    work = np.rint(of.work * (1 + 0.01 * noise.standard_normal((2, n)))) if of.work else np.ones((2, n))
    for at, (name, printed, of_mean) in enumerate((("virtual", of.here, mean * ratio), ("real", of.reference, mean))):
        values = printed(of_mean * np.exp(spread * noise.standard_normal((n, of.whole)))).mean(axis=1)
        values = values if of.digits is None else np.round(values, of.digits)
        for each in range(n):
            run = record(name, each, 2 * each + at, {"testbed": name})
            run.settings["testbed"] = {"name": name, "kind": "imported"}  # type: ignore[index]
            records.append(run)
            about = {"run": run.id, "layer": "application", "scale": "ratio", "host": "", "direction": "", "description": ""}
            rows.append({**about, "metric": "m", "unit": of.unit, "headline": True, "value": float(values[each])})
            if of.work:
                done = float(work[at][each])
                rows.append({**about, "metric": "requests", "unit": "1", "headline": False, "value": done})
                per = {
                    "metric": "m_per_request",
                    "unit": f"{of.unit}/request",
                    "headline": True,
                    "value": float(values[each]) / done,
                }
                rows.append({**about, **per})
    outline = Outline("s", ("real", "virtual"), "real", margin=MARGIN, data=StudyDocument())
    return InMemory({"metrics": pa.Table.from_pylist(rows)}, outline, records)


def rates(of: Stepped, n: int, ratio: float, studies: int, seed: int) -> Rates:
    noise = np.random.default_rng([seed, n, sum(of.name.encode())])
    equivalent = alone = 0
    metric = "m_per_request" if of.work else "m"
    for _ in range(studies):
        (found,) = (each for each in compare.run(_study(of, noise, n, ratio)).comparisons if each.metric == metric)
        equivalent += found.verdict is Verdict.EQUIVALENT
        alone += found.verdict is Verdict.EQUIVALENT and not found.cautions
    return Rates(equivalent / studies, alone / studies)
