"""`twinbed plan STUDY --multifidelity PILOT`: choose the draws on each testbed by a pilot's run times and covariances."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

import numpy as np

from twinbed.cli.extraction import extracted
from twinbed.design.mixing import Plan, best, plans, why_not
from twinbed.metrics.metric import Layer
from twinbed.model.error import TwinbedError
from twinbed.observations.draws import Draws, draws_of, inputs_of, seconds_of
from twinbed.observations.frame import headlines, of_tables
from twinbed.render.rows import print_table
from twinbed.show.words import cell_title
from twinbed.statistics.multifidelity.allocation import LEAST_PAIRS, MOST_MODELS, Matrix
from twinbed.statistics.multifidelity.decision import needed_correlation
from twinbed.study.factor import DRAW
from twinbed.study.study import Study
from twinbed.terminal import say


class Output:
    """Is one metric at one combination of other factors' levels, to be estimated."""

    def __init__(self, metric: str, draws: Draws, testbeds: Sequence[str]) -> None:
        at = [draws.testbeds.index(name) for name in testbeds]
        self.name = f"{metric} at {cell_title(draws.levels)}" if draws.levels else metric
        values = draws.values[:, at]
        complete = values[~np.isnan(values).any(axis=1)]
        self.n = len(complete)
        self.caps = [draws.cap(index) for index in at]
        self.covariance: Matrix | None = None
        if self.n >= LEAST_PAIRS and np.all(np.ptp(complete, axis=0) > 0):
            self.covariance = np.atleast_2d(np.cov(complete, rowvar=False)).astype(np.float64)


class Mix:
    """Finds the best mix for ``study`` by the pilot in ``results``. Raises TwinbedError where they have nothing in common."""

    def __init__(self, study: Study, results: Path) -> None:
        if not study.uncertain:
            raise TwinbedError(
                f"{study.name} has no uncertain inputs",
                advice="add uncertain: {samples: 30, payload: {log_uniform: [500B, 16MiB]}}; `twinbed describe uncertain`",
            )
        self._study, self._results = study, results
        store = extracted(results)
        inputs, seconds = inputs_of(store), seconds_of(store)
        self.testbeds = [study.reference, *(name for name in study.testbeds if name != study.reference)]
        lacking = [name for name in self.testbeds if name not in seconds]
        if lacking:
            raise TwinbedError(
                f"{results} has no run of {', '.join(lacking)}", advice="give the results of a pilot of this study"
            )
        if not 2 <= len(self.testbeds) <= MOST_MODELS:
            raise TwinbedError(
                f"{len(self.testbeds)} testbeds cannot be mixed", advice=f"list 2 to {MOST_MODELS} in factors.testbed"
            )
        self.same_draws = store.outline.seed == study.seed
        outputs = [
            Output(metric, draws, self.testbeds)
            for metric in headlines(store, Layer.APPLICATION)
            for draws in draws_of(of_tables(store, metric), study.reference, inputs)
            if set(self.testbeds) <= set(draws.testbeds)
        ]
        self.outputs = [output for output in outputs if output.covariance is not None]
        self.left_out = [output.name for output in outputs if output.covariance is None]
        if not self.outputs:
            most = max((output.n for output in outputs), default=0)
            raise TwinbedError(
                f"{results} shows no correlation: only {most} draws were run on all of {', '.join(self.testbeds)}",
                advice=f"run a pilot with {LEAST_PAIRS} to 30 draws on every testbed (samples: 20)",
            )
        self.covariances: Matrix = np.asarray([output.covariance for output in self.outputs])
        # Each draw is run at every combination of the other factors, in every replicate.
        self.seconds = np.asarray([seconds[name] for name in self.testbeds])
        drawn = {"testbed", DRAW, *study.uncertain}
        others = {tuple(level for name, level in cell.levels.items() if name not in drawn) for cell in study.cells}
        self.costs: Matrix = self.seconds * len(others) * study.replicates
        counts = [sum(cell.testbed_name == name for cell in study.cells) * study.replicates for name in self.testbeds]
        self.budget = float(self.seconds @ np.asarray(counts))
        try:
            self.plans = plans(self.covariances, self.costs, self.budget)
        except ValueError as error:
            raise TwinbedError(f"{results}: {error}", advice="run a longer pilot, or compare fewer testbeds") from error
        self.best = best(self.plans)
        self.refusal = ""
        if set(self.best.samples) == {(0,)}:
            self.refusal = "; ".join([why_not(self.covariances, self.costs, self.testbeds), *self._capped()])

    def _capped(self) -> Iterator[str]:
        """Yield the testbeds whose run noise alone keeps the correlation below what is needed."""
        for row in self.testbed_rows()[1:]:
            cap, needed = row["at_most_by_noise"], row["needed"]
            if isinstance(cap, float) and isinstance(needed, float) and cap <= needed:
                more = "longer runs or more replicates raise it"
                yield f"run noise limits the correlation of {row['testbed']} to {cap:.2f} ({more})"

    def group(self, models: Sequence[int]) -> str:
        return "+".join(self.testbeds[model] for model in models)

    def samples(self, plan: Plan) -> dict[str, int]:
        """Return the value of the key ``uncertain.samples``; groups with the expensive testbed come first."""
        ranked = sorted(plan.samples.items(), key=lambda entry: (0 not in entry[0], -len(entry[0]), entry[0]))
        return {self.group(models): count for models, count in ranked}

    def rows(self) -> list[dict[str, object]]:
        """Return a row for each plan, for programs."""
        plain = self.plans[0].draws(0) * self.costs[0]
        return [
            {
                "method": plan.method.value,
                "recommended": plan is self.best,
                **{f"draws:{name}": plan.draws(at) for at, name in enumerate(self.testbeds)},
                "samples": ", ".join(f"{group}: {count}" for group, count in self.samples(plan).items()),
                "variance_over_plain": plan.worst,
                "seconds": self._seconds(plan),
                "seconds_as_precise_as_plain": float(plain * plan.worst),
                "driven_by": self.outputs[int(np.argmax(plan.relative))].name,
            }
            for plan in self.plans
        ]

    def testbed_rows(self) -> list[dict[str, object]]:
        """Return a row for each testbed, for programs, with the smallest correlation over all outputs."""
        return [self._testbed_row(at) for at in range(len(self.testbeds))]

    def _testbed_row(self, at: int) -> dict[str, object]:
        row: dict[str, object] = {"testbed": self.testbeds[at], "seconds_a_run": float(self.seconds[at])}
        if at == 0:
            return {**row, "correlation": None, "low": None, "needed": None, "at_most_by_noise": None}
        rho = [float(covariance[0, at] / math.sqrt(covariance[0, 0] * covariance[at, at])) for covariance in self.covariances]
        which = min(range(len(rho)), key=lambda k: abs(rho[k]))
        n, least = self.outputs[which].n, abs(rho[which])
        # Fisher 1915, Biometrika 10:507: atanh(r) is normal with standard deviation 1 / sqrt(n - 3).
        low = math.tanh(math.atanh(min(least, 1 - 1e-12)) - 1.96 / math.sqrt(n - 3))
        needed = needed_correlation(float(self.seconds[0] / self.seconds[at]))
        cap = self.outputs[which].caps[at]
        return {**row, "correlation": rho[which], "low": low, "needed": needed, "at_most_by_noise": cap}

    def _seconds(self, plan: Plan) -> float:
        return float(sum(count * sum(self.costs[model] for model in group) for group, count in plan.samples.items()))

    def print_text(self, clock: Callable[[float], str]) -> None:
        """Print the testbeds, the plans and the best mix. ``clock`` formats seconds."""
        shared = min(output.n for output in self.outputs)
        say(f"pilot       {self._results}: {shared} draws on all testbeds")
        say(f"outputs     {', '.join(output.name for output in self.outputs)}; the least precise decides")
        if self.left_out:
            say(f"left out    {', '.join(self.left_out)}: too few shared draws, or no variation")
        say("")
        print_table([_shown(row) for row in self.testbed_rows()], title="Testbeds")
        say("", f"In {clock(self.budget)}, the time of the present study at these run times:", "")
        print_table(
            [self._text_row(plan, row, clock) for plan, row in zip(self.plans, self.rows(), strict=True)], title="Plans"
        )
        say("")
        if self.refusal:
            say(f"Mixing does not pay: {self.refusal}.")
            return
        for row in self.testbed_rows():
            if _unsure(row):
                say(f"! the pilot is too small to tell whether {row['testbed']} correlates by more than {row['needed']:.2f}")
        say(f"Take {self.best.method.value}:", "")
        if self.same_draws:
            say(f"seed: {self._study.seed + 1}   # other draws than the pilot used to choose the plan")
        shown = ", ".join(f"{group}: {count}" for group, count in self.samples(self.best).items())
        say("uncertain:", f"  samples: {{{shown}}}")

    def _text_row(self, plan: Plan, row: dict[str, object], clock: Callable[[float], str]) -> dict[str, object]:
        as_precise = row["seconds_as_precise_as_plain"]
        return {
            "method": plan.method.value,
            **{name: plan.draws(at) for at, name in enumerate(self.testbeds)},
            "variance": f"{plan.worst:.3f}",
            "half-width": f"{math.sqrt(plan.worst):.2f}",
            "as precise as plain in": clock(as_precise) if isinstance(as_precise, float) else "",
        }


def _unsure(row: dict[str, object]) -> bool:
    low, needed = row["low"], row["needed"]
    return isinstance(low, float) and isinstance(needed, float) and low < needed


NAMES = {"seconds_a_run": "seconds a run", "low": "at least", "needed": "pays above", "at_most_by_noise": "noise allows"}


def _shown(row: dict[str, object]) -> dict[str, object]:
    shown: dict[str, object] = {}
    for name, value in row.items():
        digits = ".3g" if name == "seconds_a_run" else ".3f"
        shown[NAMES.get(name, name)] = f"{value:{digits}}" if isinstance(value, float) else value
    return shown
