"""`twinbed plan STUDY --pilot RESULTS`: estimate the replicates that a study needs from a pilot."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from twinbed import design, registry
from twinbed.cli.extraction import extracted
from twinbed.cli.on import executor
from twinbed.design.replicates import MOST, POWERS, UPPER, Levels, Need, Whole, needs, whole
from twinbed.design.time import Expense
from twinbed.model.amount import amount
from twinbed.model.caution import Caution
from twinbed.model.error import TwinbedError
from twinbed.model.run import Level
from twinbed.model.tables import TESTBED
from twinbed.render.rows import print_table
from twinbed.show.words import cell_title, metric_title
from twinbed.statistics.sequential import information, interim_levels
from twinbed.study.study import Study
from twinbed.terminal import say

if TYPE_CHECKING:
    from twinbed.model.comparison import Comparison


class Pilot:
    """Estimates the replicates of ``study`` from the pilot in ``results``. Raises TwinbedError where they share nothing."""

    def __init__(self, study: Study, results: Path) -> None:
        self._study, self._results = study, results
        store = extracted(results)
        if study.reference not in store.outline.testbeds:
            raise TwinbedError(
                f"{results} has no testbed {study.reference!r}, the study's reference",
                advice=f"it has {', '.join(store.outline.testbeds) or 'none'}; give the results of a pilot of this study",
            )
        compare = registry.analysis("compare")
        data = store.outline.data.copy()
        data["comparison"] = study.comparison.value
        outline = replace(store.outline, reference=study.reference, data=data)
        result = compare.run_on(executor(), replace(store, outline=outline), compare.params(by=TESTBED))
        cells = [{name: level for name, level in cell.levels.items() if name != "testbed"} for cell in study.cells]
        comparisons = [
            comparison
            for comparison in result.comparisons
            if comparison.headline and comparison.cell in cells and comparison.testbed in study.testbeds
        ]
        if not comparisons:
            raise TwinbedError(
                f"{results} and {study.name} have no cell and headline metric in common",
                advice="run a few replicates of this study: twinbed run STUDY -s replicates=5",
            )
        known = [(comparison.cell, comparison.testbed) for comparison in comparisons]
        others = [cell for cell in study.cells if cell.testbed_name != study.reference]
        self.absent = sum((_rest(cell.levels), cell.testbed_name) not in known for cell in others)
        self.cautions: Sequence[Caution] = result.cautions
        self.needs = needs(comparisons, study.margin, _levels(study, comparisons))
        self.whole = whole(self.needs)

    def rows(self) -> list[dict[str, object]]:
        """Return a row for each comparison, for programs."""
        return [_row(need) for need in self.needs]

    def cases(self) -> list[dict[str, object]]:
        """Return a row for each case of the whole study, for programs."""
        return [
            {
                "case": case.case,
                "power": case.power,
                "replicates": case.replicates,
                "seconds": None if expense is None else expense.seconds,
                "bytes_at_most": None if expense is None else expense.bytes,
                "driven_by": _title(case.driver),
            }
            for case, expense in self._expenses()
        ]

    def _expenses(self) -> Iterator[tuple[Whole, Expense | None]]:
        """Yield each case with the time and disk of its replicates; None where no number is enough."""
        block = design.expense([cell.run(replicate=0, block=0, position=0) for cell in self._study.cells])
        for case in self.whole:
            n = case.replicates
            yield case, None if n is None else Expense(block.seconds * n, block.bytes * n)

    def print_text(self, clock: Callable[[float], str], disk: Callable[[int], str]) -> None:
        """Print comparisons and cases. ``clock`` and ``disk`` format seconds and bytes."""
        first = self.needs[0].pilot
        say(f"pilot       {self._results}")
        for kind in dict.fromkeys(caution.kind for caution in self.cautions):
            say(f"caution     {kind.meaning}")
        say(
            "",
            f"Replicates of each cell that reach a verdict against {first.reference} with 80 % and 90 % power.",
            f"In brackets: the same for the upper {UPPER:.0%} limit of the standard deviation, which a pilot estimates poorly.",
            "sd: standard deviation of the logarithms of testbed and reference, or of their differences in blocks (diff);",
            "0.05 is about 5 %.",
            "",
        )
        print_table([_text_row(need) for need in self.needs], title="Comparisons")
        say("")
        print_table(
            [
                {
                    "case": case.case,
                    "power": f"{case.power:.0%}",
                    "replicates": _number(case.replicates),
                    "time": "" if expense is None else clock(expense.seconds),
                    "disk at most": "" if expense is None else disk(expense.bytes),
                    "driven by": _title(case.driver),
                }
                for case, expense in self._expenses()
            ],
            title="The whole study",
        )
        if self.absent:
            say("", f"The pilot has no run of {amount(self.absent, 'cell')} of the study; they are not in these tables.")


def _rest(levels: Mapping[str, Level]) -> dict[str, Level]:
    return {name: level for name, level in levels.items() if name != "testbed"}


def _levels(study: Study, comparisons: Sequence[Comparison]) -> Levels:
    """Return the levels of the tests; with ``until``, the levels of the last interim analysis, the least powerful."""
    alpha = round(1 - study.confidence, 12)
    different = alpha / len(comparisons)
    if study.until is None:
        return Levels(alpha, different)
    times = tuple(information(blocks, study.until.most) for blocks in design.interim_blocks(study.until))
    return Levels(interim_levels(alpha, times)[-1], 2 * interim_levels(different / 2, times)[-1])


def _title(need: Need) -> str:
    pilot = need.pilot
    where = f" at {cell_title(pilot.cell)}" if pilot.cell else ""
    return f"{metric_title(pilot.metric, pilot.host, pilot.direction)} of {pilot.testbed}{where}"


def _row(need: Need) -> dict[str, object]:
    pilot = need.pilot
    numbers = {
        f"{name}_{round(100 * power)}": value
        for name, replicates in (
            ("as_found", need.as_found),
            ("as_found_upper", need.as_found_upper),
            ("if_equal", need.if_equal),
            ("if_equal_upper", need.if_equal_upper),
        )
        for power, value in zip(POWERS, replicates, strict=True)
    }
    return {
        "metric": pilot.metric,
        "host": pilot.host or None,
        "direction": pilot.direction or None,
        **{f"factor:{factor}": level for factor, level in pilot.cell.items()},
        "testbed": pilot.testbed,
        "n": pilot.estimate.n,
        "reference_n": pilot.reference_estimate.n,
        "ratio": need.ratio,
        "log_stdev": need.deviations[0] if need.deviations else None,
        "reference_log_stdev": need.deviations[1] if need.deviations else None,
        "pair_log_stdev": pilot.pair_deviation,
        "to_show": str(need.verdict) if need.verdict else None,
        **numbers,
        "because": need.reason or None,
    }


def _text_row(need: Need) -> dict[str, object]:
    pilot = need.pilot
    different, equal = (
        [f"{_number(n)} ({_number(upper)})" for n, upper in zip(numbers, uppers, strict=True)]
        for numbers, uppers in ((need.as_found, need.as_found_upper), (need.if_equal, need.if_equal_upper))
    )
    inside = need.if_equal != (None,) * len(POWERS)
    return {
        "comparison": _title(need),
        "pilot n": f"{pilot.estimate.n}, {pilot.reference_estimate.n}",
        "ratio": "" if need.ratio is None else f"{need.ratio:.3f}",
        "sd": _deviations(need),
        "to show": str(need.verdict) if need.verdict else need.reason,
        "80 %": "" if need.reason else different[0],
        "90 %": "" if need.reason else different[1],
        "80 %, if 1": equal[0] if inside else "",
        "90 %, if 1": equal[1] if inside else "",
    }


def _deviations(need: Need) -> str:
    if need.deviations is None:
        return ""
    pairs = need.pilot.pair_deviation
    return f"{need.deviations[0]:.3f}, {need.deviations[1]:.3f}" if pairs is None else f"diff {pairs:.3f}"


def _number(n: int | None) -> str:
    return f"> {MOST}" if n is None else str(n)
