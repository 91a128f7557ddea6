"""A response by the draws of uncertain inputs and by testbed, for estimates that mix testbeds."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from statistics import median
from typing import TYPE_CHECKING

from twinbed.model.error import TwinbedError
from twinbed.model.run import Level, Status
from twinbed.model.tables import Tables
from twinbed.observations.frame import Frame

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

DRAW, TESTBED = "draw", "testbed"


@dataclass(frozen=True, slots=True)
class Draws:
    """The observations that agree in all other factors."""

    levels: Mapping[str, Level]
    testbeds: tuple[str, ...]
    """The expensive one first."""
    values: NDArray[np.float64]
    """(draws, testbeds): the mean of a draw's runs, NaN where there is none."""
    noise: tuple[float | None, ...]
    """For each testbed the variance of a draw's mean from run to run; None if no draw was run twice."""

    def cap(self, at: int) -> float | None:
        """Return the largest possible correlation of a testbed with the expensive one, as run noise is independent; None if
        unknown. It is the root of the product of both reliabilities (Spearman 1904, Am. J. Psychol. 15:72)."""
        import numpy as np

        share = 1.0
        for which in (0, at):
            noise, total = self.noise[which], float(np.nanvar(self.values[:, which], ddof=1))
            if noise is None or not total > 0:
                return None
            share *= max(1 - noise / total, 0.0)
        return float(np.sqrt(share))


def inputs_of(tables: Tables) -> Sequence[str]:
    """Return the uncertain inputs of a study. Raises TwinbedError if it has none."""
    uncertain = tables.outline.data.get("uncertain")
    if not uncertain:
        raise TwinbedError(
            f"{tables.shown} has no uncertain inputs",
            advice="uncertain: {samples: 40, payload: {log_uniform: [500B, 16MiB]}} (`twinbed describe uncertain`)",
        )
    return uncertain["inputs"]


def seconds_of(tables: Tables) -> Mapping[str, float]:
    """Return testbed -> seconds of a run there, the median of all complete runs."""
    of: dict[str, list[float]] = {}
    for record in tables.records:
        if record.status is Status.COMPLETE:
            of.setdefault(str(record.settings["testbed"]["name"]), []).append(sum(record.phases.values()))
    return {testbed: median(seconds) for testbed, seconds in of.items()}


def draws_of(frame: Frame, expensive: str, inputs: Sequence[str]) -> list[Draws]:
    """Return draws by the levels of the other factors, in their order. Raises TwinbedError if the expensive testbed has no
    value."""
    import numpy as np

    testbed, draw = frame.column(TESTBED), frame.column(DRAW)
    names = [str(level) for level in testbed.levels]
    if expensive not in names:
        raise TwinbedError(
            f"{frame.source} has no value of {frame.response} on {expensive}", advice=f"there are: {', '.join(names)}"
        )
    order = [expensive, *(name for name in names if name != expensive)]
    place = np.array([order.index(name) for name in names])
    others = [name for name in frame.factors if name not in {TESTBED, DRAW, *inputs}]
    groups: dict[tuple[int, ...], list[int]] = {}
    for row in range(len(frame)):
        groups.setdefault(tuple(int(frame.columns[name].codes[row]) for name in others), []).append(row)
    return [
        _draws(
            {name: frame.columns[name].levels[code] for name, code in zip(others, codes, strict=True)},
            tuple(order),
            draw.codes[rows],
            place[testbed.codes[rows]],
            frame.y[rows],
        )
        for codes, rows in sorted(groups.items())
    ]


def _draws(
    levels: Mapping[str, Level],
    testbeds: tuple[str, ...],
    draws: NDArray[np.intp],
    places: NDArray[np.intp],
    y: NDArray[np.float64],
) -> Draws:
    import numpy as np

    _, rows = np.unique(draws, return_inverse=True)
    shape = (int(rows.max()) + 1, len(testbeds))
    count, total = np.zeros(shape), np.zeros(shape)
    np.add.at(count, (rows, places), 1)
    np.add.at(total, (rows, places), y)
    values = np.divide(total, count, out=np.full(shape, np.nan), where=count > 0)
    around = np.zeros(shape)
    np.add.at(around, (rows, places), (y - values[rows, places]) ** 2)
    noise: list[float | None] = []
    for at in range(len(testbeds)):
        freedom = float((count[:, at] - 1).clip(min=0).sum())
        ran = count[count[:, at] > 0, at]
        noise.append(float(around[:, at].sum() / freedom * (1 / ran).mean()) if freedom else None)
    return Draws(levels, testbeds, values, tuple(noise))
