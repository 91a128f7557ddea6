"""The analysis ``compare``: every metric of every cell against the reference testbed, with a verdict.

In: runs with levels and status, and the table ``metrics``.  Out: one Comparison for each metric, host, direction, cell and
testbed but the reference, in the order of layers and of the study file; headline metrics in the order of runs.  Limits:
runs are taken as independent but for their blocks or sessions (``observations.units``).  Sources: see ``twinbed.statistics``.

From runs to a verdict: ``gathered`` (samples and rules), ``measured`` (estimates in pairs), ``decision`` (tests), ``verdicts``
(corrections and cautions).  ``doubts`` has what speaks against them.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from twinbed.analyses.compare.gathered import CompareParams, gathered
from twinbed.analyses.compare.judging import judged
from twinbed.analyses.compare.measured import Measurement
from twinbed.analyses.compare.verdicts import Place, place, verdicts
from twinbed.contracts.analysis import Analysis
from twinbed.executor import Executor, Here
from twinbed.model.comparison import OTHER_SETTINGS, AllRuns, Comparison, Comparisons
from twinbed.model.tables import TESTBED, Tables
from twinbed.observations.levels import compared_by, compared_with
from twinbed.observations.predictable import predictable
from twinbed.observations.samples import excluded
from twinbed.show.section import Section
from twinbed.show.table import Row


class Compare(Analysis[CompareParams, Comparisons]):
    """The analysis."""

    name = "compare"
    params = CompareParams

    def run(self, source: Tables, params: CompareParams | None = None) -> Comparisons:
        return self.run_on(Here(), source, params)

    def run_on(
        self, executor: Executor, source: Tables, params: CompareParams | None = None, introduction: str | None = None
    ) -> Comparisons:
        """Return the comparisons. A study that leaves runs out for a caution gets them without these runs, each with the
        result of all runs. ``introduction``: the sentence that says what is compared, if the caller has a better one."""
        params = params or CompareParams()
        if params.by is None:
            chosen = compared_by(source)
            by, says = chosen.by, chosen.reason
        else:
            by, says = params.by, "" if params.by == TESTBED else f"Levels of {params.by} are compared."
        source = compared_with(source, by, params.reference)
        left_out = excluded(source, params.exclude)
        of_all_runs: dict[Place, AllRuns] = {}
        if left_out and left_out.ids:
            for comparison in _compared(executor, Measurement(gathered(source, params)), source, {}):
                of_all_runs[place(comparison)] = AllRuns(
                    comparison.runs, comparison.ratio, comparison.ratio_interval, comparison.verdict
                )
        data = gathered(source, params, left_out.ids if left_out else frozenset())
        measurement = Measurement(data)
        comparisons = _compared(executor, measurement, source, of_all_runs)
        interim, others = data.tables.outline.interim, data.tables.other_settings
        return Comparisons(
            comparisons=comparisons,
            by=by,
            about=says if introduction is None else introduction,
            alpha=data.rules.alpha,
            cautions=(
                *measurement.doubts.of_study(comparisons, data),
                *(left_out.cautions() if left_out and left_out.ids else ()),
            ),
            interim=interim.taken[-1] if interim and interim.taken else None,
            pooled=tuple(measurement.pooled()),
            orderings=measurement.doubts.orderings,
            estimates=tuple(measurement.estimates()),
            cell_cautions=measurement.doubts.of_cells(data),
            left_out={OTHER_SETTINGS: others} if others else {},
            excluded=left_out,
        )

    def tables(self, result: Comparisons) -> Mapping[str, Sequence[Row]]:
        from twinbed.analyses.compare.rows import order_rows, rows

        return {"comparisons": rows(result.comparisons), "order": order_rows(result.orderings)}

    def section(self, result: Comparisons) -> Section:
        from twinbed.analyses.compare.section import section

        return section(result)


def _compared(
    executor: Executor, measurement: Measurement, source: Tables, of_all_runs: Mapping[Place, AllRuns]
) -> tuple[Comparison, ...]:
    stages = [*measurement.stages()]
    judgements = judged([case for _, case in stages], executor)
    measured = [both for both, _ in stages]
    return tuple(verdicts(measured, judgements, measurement.gathered.rules.alpha, predictable(source), of_all_runs))


analysis = Compare()
