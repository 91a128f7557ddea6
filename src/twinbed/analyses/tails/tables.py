"""The quantiles of requests as rows for programs, and as tables for readers."""

from __future__ import annotations

from collections.abc import Sequence

from twinbed.analyses.tails.result import Shift, Tails
from twinbed.model.result import Verdict
from twinbed.render.tabular import Tabular
from twinbed.show.quantities import number, ratio_with_interval, share, unit_scale
from twinbed.show.table import Row
from twinbed.show.words import cell_title

SYMBOLS = {Verdict.EQUIVALENT: "= equivalent", Verdict.DIFFERENT: "≠ different", Verdict.INCONCLUSIVE: "? inconclusive"}


def shift_rows(result: Tails) -> list[Row]:
    """A row a quantile and testbed but the reference."""
    return [
        {
            **each.cell,
            "testbed": each.testbed,
            "reference": each.reference,
            "share": each.share,
            "seconds": each.value,
            "reference_seconds": each.reference_value,
            "ratio": each.ratio,
            "low": each.interval.low if each.interval else None,
            "high": each.interval.high if each.interval else None,
            "paired": each.paired,
            "p_equivalent": each.p_equivalent,
            "p_different_holm": each.p_different,
            "verdict": str(each.verdict) if each.verdict else None,
        }
        for each in result.shifts
    ]


def quantile_rows(result: Tails) -> list[Row]:
    """A row a quantile, cell and testbed, the reference's too."""
    return [
        {
            **each.cell,
            "testbed": each.testbed,
            "runs": each.runs,
            "requests": each.requests,
            "fewest_requests": each.fewest,
            "share": share,
            "seconds": seconds,
        }
        for each in result.tails
        for share, seconds in each.quantiles.items()
    ]


def quantile_name(share: float) -> str:
    """``P99.9``; the median by its name."""
    return "median" if share == 0.5 else f"P{100 * share:g}"


def shift_table(result: Tails, shifts: Sequence[Shift]) -> Tabular:
    """As the field prints it: a row a quantile."""
    rows = []
    for each in shifts:
        scale = unit_scale("s", [each.value, each.reference_value])
        times = [f"{number(value / scale.factor)} {scale.unit}" for value in (each.reference_value, each.value)]
        bounds = (each.interval.low, each.interval.high) if each.interval else (None, None)
        verdict = SYMBOLS[each.verdict] if each.verdict else ""
        held = ratio_with_interval(each.ratio, *bounds)
        rows.append((cell_title(each.cell), each.testbed, quantile_name(each.share), *times, held, verdict))
    heads = ("Cell", "Testbed", "Quantile", result.reference, "time", f"ratio [{_level(result)} interval]", "verdict")
    return Tabular("Times of single requests", caption(result), heads, tuple(rows), texts=3)


def _level(result: Tails) -> str:
    return share(round(1 - 2 * (1 - result.confidence), 4))


def caption(result: Tails) -> str:
    where = {
        "exchanges": "from a request's first packet to its answer's last, as captured on the clients' links",
        "requests": "as the load generator wrote them, in whole milliseconds",
    }[result.source]
    how = "within blocks" if any(each.paired for each in result.shifts) else "as of independent runs"
    return (
        f"Times of single requests, {where}. A run's quantile is its own; ratios are of the geometric means of runs, compared "
        f"{how} at a margin of {share(result.margin)}."
    )
