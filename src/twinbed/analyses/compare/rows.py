"""Comparisons as flat rows, one for each: for CSV, JSON, and anything that reads those.  Base units, missing is None."""

from __future__ import annotations

from collections.abc import Sequence

from twinbed.analyses.compare.words import explanation
from twinbed.model.comparison import AllRuns, Comparison, Estimate, Ordering, Spread
from twinbed.model.json import Json
from twinbed.model.result import Interval
from twinbed.model.run import level_text
from twinbed.model.tables import TESTBED
from twinbed.observations.levels import named
from twinbed.render.spreadsheet import csv_text
from twinbed.statistics.counts import unseen_share


def rows(comparisons: Sequence[Comparison]) -> list[dict[str, Json]]:
    """Return one row a comparison; every factor is a column ``factor:<name>``."""
    factors = list(dict.fromkeys(factor for comparison in comparisons for factor in comparison.cell))
    return [_row(comparison, factors) for comparison in comparisons]


def _all_runs(all_runs: AllRuns | None) -> dict[str, Json]:
    """Return the result of all runs, only where the study leaves runs out."""
    if all_runs is None:
        return {}
    return {
        "all_runs": all_runs.runs,
        "all_runs_ratio": all_runs.ratio,
        **_bounds("all_runs_ratio_", all_runs.interval),
        "all_runs_verdict": str(all_runs.verdict),
    }


def _row(comparison: Comparison, factors: Sequence[str]) -> dict[str, Json]:
    return {
        "layer": comparison.layer,
        "metric": comparison.metric,
        "unit": comparison.unit,
        "host": comparison.host or None,
        "direction": comparison.direction or None,
        "headline": comparison.headline,
        **{
            f"factor:{factor}": level_text(comparison.cell[factor]) if factor in comparison.cell else None for factor in factors
        },
        **_levels(comparison),
        "testbed": comparison.testbed,
        **_estimate("", comparison.estimate),
        "reference": comparison.reference,
        **_estimate("reference_", comparison.reference_estimate),
        "ratio": comparison.ratio,
        **_bounds("ratio_", comparison.ratio_interval),
        "ratio_level": round(comparison.ratio_interval.level, 6) if comparison.ratio_interval else None,
        "method": comparison.method or None,
        "paired": comparison.paired,
        "sessions": comparison.sessions[0] if comparison.sessions else None,
        "reference_sessions": comparison.sessions[1] if comparison.sessions else None,
        "margin": comparison.margin,
        "effect": comparison.effect.name if comparison.effect else None,
        "effect_value": comparison.effect.value if comparison.effect else None,
        **_bounds("effect_", comparison.effect.interval if comparison.effect else None),
        "effect_margin": comparison.effect.margin if comparison.effect else None,
        "p_same": comparison.effect.p_same if comparison.effect else None,
        **_bounds("bootstrap_", comparison.bootstrap_interval),
        "median_ratio": comparison.median_ratio,
        **_bounds("median_ratio_", comparison.median_ratio_interval),
        "p_equivalent": comparison.p_equivalent,
        "p_different_holm": comparison.p_different,
        "family": comparison.family,
        "within_rule": comparison.within_rule,
        "intervals_overlap": comparison.intervals_overlap,
        **_spread(comparison.spread),
        "verdict": str(comparison.verdict),
        **_all_runs(comparison.all_runs),
        "because": explanation(comparison),
        "replicates_needed": comparison.replicates_needed,
        "predictable": comparison.predictable,
        "step": comparison.step or None,
        "unseen_share": unseen_share(comparison.runs) if comparison.runs else None,
        "cautions": " | ".join(f"{item.kind.name.lower()}({item.subject}: {item.detail})" for item in comparison.cautions)
        or None,
    }


def _levels(comparison: Comparison) -> dict[str, Json]:
    """Return the levels, only where another factor than the testbed is compared."""
    if comparison.by == TESTBED:
        return {}
    before = len(named(comparison.by, ""))
    return {"by": comparison.by, "level": comparison.testbed[before:], "reference_level": comparison.reference[before:]}


def _estimate(prefix: str, estimate: Estimate) -> dict[str, Json]:
    return {
        f"{prefix}n": estimate.n,
        f"{prefix}mean": estimate.mean,
        f"{prefix}stdev": estimate.stdev,
        **_bounds(prefix, estimate.interval),
        f"{prefix}centre": estimate.centre,
        **_bounds(f"{prefix}centre_", estimate.centre_interval),
        **_quantiles(prefix, estimate),
    }


def _bounds(prefix: str, interval: Interval | None) -> dict[str, Json]:
    return {f"{prefix}low": interval.low if interval else None, f"{prefix}high": interval.high if interval else None}


def _quantiles(prefix: str, estimate: Estimate) -> dict[str, Json]:
    """Return ``p50`` to ``p99``; an interval is missing if there are too few values for one."""
    of_share = {quantile.share: quantile for quantile in estimate.quantiles}
    row: dict[str, Json] = {}
    for share in (0.5, 0.9, 0.95, 0.99):
        name, known = f"{prefix}p{share * 100:g}", of_share.get(share)
        row |= {name: known.value if known else None, **_bounds(f"{name}_", known.interval if known else None)}
    return row


def _spread(spread: Spread | None) -> dict[str, Json]:
    return {
        "spread_relative": spread.relative if spread else None,
        "spread_ratio": spread.ratio if spread else None,
        **_bounds("spread_ratio_", spread.interval if spread else None),
        "stdev_ratio": spread.deviation_ratio if spread else None,
        **_bounds("stdev_ratio_", spread.deviation_interval if spread else None),
        "variation_ratio": spread.variation_ratio if spread else None,
        "p_spread_holm": spread.p_value if spread else None,
        "p_brown_forsythe_holm": spread.p_brown_forsythe if spread else None,
        "p_at_values_holm": spread.p_at_values if spread else None,
        "spread_family": spread.family if spread and spread.p_value is not None else None,
        "spread_differs": spread.differs if spread else None,
        "spread_because": (spread.reason or None) if spread else None,
    }


def order_rows(orderings: Sequence[Ordering]) -> list[dict[str, Json]]:
    """Return one row a headline metric and testbed: what the order of runs did to it, residuals left out."""
    return [
        {
            "metric": ordering.metric,
            "unit": ordering.unit,
            "host": ordering.host or None,
            "direction": ordering.direction or None,
            "relative": ordering.relative,
            "testbed": drift.testbed,
            "runs": drift.runs,
            "drift": drift.change,
            "drift_inside_cells": drift.inside_cells,
            "p_drift": drift.p_trend,
            "drifts": drift.trend,
            "serial_correlation": drift.correlation,
            "p_serial": drift.p_serial,
            "serial": drift.serial,
            "blocks": ordering.blocks,
            "p_blocks": ordering.p_blocks,
            "blocks_differ": ordering.blocks_differ,
        }
        for ordering in orderings
        for drift in ordering.drifts
    ]


def as_csv(comparisons: Sequence[Comparison]) -> str:
    """Return RFC 4180 text with a header; an empty field is a missing value. Without comparisons only the header."""
    flat = rows(comparisons)
    heads = list(flat[0]) if flat else ["layer", "metric", "verdict"]
    return csv_text(heads, ([row.get(name) for name in heads] for row in flat))
