"""The analysis ``anomaly``: at which N is a pair faster than alone, and what moves with its rate beyond the work done?

In: runs with N, their rate, and every other metric and event. Out, for each combination of the other levels: ``faster``
compares each N with N = 1 (the marks of the LDRD report's Table 3.1). Where any N is faster, ``counters`` has the rank
correlations of every other metric, beyond what work and time explain, with the rate, over the runs from N = 1 to the largest
such N (its Table 3.2). Limits and sources: twinbed.statistics.anomaly.
"""

from __future__ import annotations

from collections.abc import Mapping

from pydantic import Field

from twinbed.analyses.anomaly import words
from twinbed.analyses.anomaly.candidates import Candidate, candidates
from twinbed.analyses.anomaly.result import Anomalies
from twinbed.contracts.analysis import Analysis
from twinbed.model.error import TwinbedError
from twinbed.model.json import Json
from twinbed.model.tables import Tables
from twinbed.observations.numbered import ALONE, Numbered, OverN, each_by_itself, over_n
from twinbed.show.section import Section
from twinbed.statistics.anomaly import LEAST, Faster, Given, Moving, Runs, faster, moving


class AnomalyParams(OverN):
    """The settings of ``anomaly``; null takes the default."""

    alpha: float = Field(default=0.05, gt=0, lt=0.5, description="the chance of a wrong mark, and the share of wrong counters")


class AnomalyAnalysis(Analysis[AnomalyParams, Anomalies]):
    """Is a pair faster among several than alone, at which N, and which of the other metrics move with its rate beyond what
    goes with the work done and with time?

    \b
    twinbed analyse anomaly results/
    twinbed analyse anomaly results/ --format csv --table counters
    """

    name = "anomaly"
    params = AnomalyParams
    epilog = "docs/capacity.md says what is tested. A metric that moves with a rate need not cause it."
    table_names = ("faster", "counters")

    def run(self, source: Tables, params: AnomalyParams | None = None) -> Anomalies:
        params = params or AnomalyParams()
        frame, over, numbered = over_n(source, params)
        groups, refused = each_by_itself(numbered, lambda group: (group, _faster(group, over, params.alpha)))
        left_out = {**frame.left_out, **refused}
        if alone := sum(len(group.n) - sum(map(len, group.enough(LEAST, 1).values())) for group, _ in groups):
            left_out[ALONE] = alone
        counters: list[dict[str, Json]] = []
        largest_of = [(group, max((one.n for one in tested if one.faster), default=0)) for group, tested in groups]
        anomalous = [(group, largest) for group, largest in largest_of if largest]
        works = {run: work for group, _ in anomalous for run, work in zip(group.runs, _work(group, params), strict=True)}
        others = candidates(source, frame.response.partition("@")[0], works) if anomalous else {}
        for group, largest in anomalous:
            counters += [_counter(group, one) for one in _moving(group, others, largest, params)]
        marks = tuple(_mark(group, one) for group, tested in groups for one in tested)
        return Anomalies(marks, tuple(counters), frame.cautions, left_out)

    def section(self, result: Anomalies) -> Section:
        return words.section(result)


def _faster(group: Numbered, over: str, alpha: float) -> list[Faster]:
    try:
        return faster(group.enough(LEAST, 1), alpha)
    except ValueError as error:
        where = f"{group.name}: " if group.name else ""
        raise TwinbedError(
            f"{where}{error}, with N the {over}", advice="replicates: 5 or more, with N = 1 among the levels"
        ) from error


def _work(group: Numbered, params: AnomalyParams) -> list[float]:
    """Return the work of all pairs in a second, by run."""
    return [value * (n if params.per_pair else 1) for value, n in zip(group.values, group.n, strict=True)]


def _moving(group: Numbered, others: Mapping[str, Candidate], largest: int, params: AnomalyParams) -> list[Moving]:
    rows = [row for row, n in enumerate(group.n) if n <= largest and group.values[row] > 0]
    works = _work(group, params)
    runs = Runs([group.values[row] for row in rows], [group.n[row] for row in rows], [works[row] for row in rows])
    metrics = {
        name: Given(each.measure, [each.by_run.get(group.runs[row]) for row in rows], each.reported)
        for name, each in others.items()
    }
    there = {name: given for name, given in metrics.items() if any(value is not None for value in given.values)}
    return moving(runs, there, params.alpha)


def _mark(group: Numbered, one: Faster) -> dict[str, Json]:
    return {
        **group.levels,
        "n": one.n,
        "ratio": one.ratio,
        "low": one.interval.low,
        "high": one.interval.high,
        "p": one.p_value,
        "p_holm": one.adjusted,
        "faster": one.faster,
    }


def _counter(group: Numbered, one: Moving) -> dict[str, Json]:
    return {
        **group.levels,
        "counter": one.metric,
        "runs": one.runs,
        "spearman": one.spearman.value if one.spearman else None,
        "p_spearman": one.spearman.p_value if one.spearman else None,
        "kendall": one.kendall.value if one.kendall else None,
        "p_kendall": one.kendall.p_value if one.kendall else None,
        "spearman_at_equal_n": one.at_equal_n.value if one.at_equal_n else None,
        "p_at_equal_n": one.at_equal_n.p_value if one.at_equal_n else None,
        "elasticity": one.elasticity,
        "spearman_as_measured": one.per_work.value if one.per_work else None,
        "share_of_work": one.shares.work if one.shares else None,
        "share_of_time": one.shares.time if one.shares else None,
        "share_of_pairs_time": one.shares.pairs if one.shares else None,
        "p_benjamini_hochberg": one.adjusted,
        "p_holm": one.adjusted_holm,
        "moves": one.moves,
        "not_tested": one.form.value if one.form else None,
    }


analysis = AnomalyAnalysis()
