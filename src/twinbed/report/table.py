"""Comparisons as flat rows, one for each: for CSV, JSON, and anything that reads those.  Base units, missing is None."""

from __future__ import annotations

import csv
import io
from collections.abc import Sequence
from typing import Any

from twinbed.model.result import Comparison, Estimate
from twinbed.model.run import level_text
from twinbed.report.words import explanation


def rows(comparisons: Sequence[Comparison]) -> list[dict[str, Any]]:
    """One row a comparison; every factor is a column ``factor:<name>``."""
    factors = list(dict.fromkeys(factor for each in comparisons for factor in each.cell))
    return [_row(each, factors) for each in comparisons]


def _row(each: Comparison, factors: Sequence[str]) -> dict[str, Any]:
    return {
        "layer": each.layer,
        "metric": each.metric,
        "unit": each.unit,
        "host": each.host or None,
        "direction": each.direction or None,
        "headline": each.headline,
        **{f"factor:{factor}": level_text(each.cell[factor]) if factor in each.cell else None for factor in factors},
        "testbed": each.testbed,
        **_estimate("", each.estimate),
        "reference": each.reference,
        **_estimate("reference_", each.reference_estimate),
        "ratio": each.ratio,
        "ratio_low": each.ratio_interval.low if each.ratio_interval else None,
        "ratio_high": each.ratio_interval.high if each.ratio_interval else None,
        "ratio_level": round(each.ratio_interval.level, 6) if each.ratio_interval else None,
        "method": each.method or None,
        "margin": each.margin,
        "p_equivalent": each.p_equivalent,
        "p_different_holm": each.p_different,
        "family": each.family,
        "within_rule": each.within_rule,
        "intervals_overlap": each.intervals_overlap,
        "verdict": str(each.verdict),
        "because": explanation(each),
        "replicates_needed": each.replicates_needed,
        "cautions": " | ".join(f"{item.kind.name.lower()}({item.subject}: {item.detail})" for item in each.cautions) or None,
    }


def _estimate(prefix: str, found: Estimate) -> dict[str, Any]:
    return {
        f"{prefix}n": found.n,
        f"{prefix}mean": found.mean,
        f"{prefix}stdev": found.stdev,
        f"{prefix}low": found.interval.low if found.interval else None,
        f"{prefix}high": found.interval.high if found.interval else None,
    }


def as_csv(comparisons: Sequence[Comparison]) -> str:
    """RFC 4180 text with a header; an empty field is a missing value. Only the header where there is nothing to compare."""
    text = io.StringIO()
    found = rows(comparisons)
    writer = csv.DictWriter(text, found[0].keys() if found else ("layer", "metric", "verdict"), lineterminator="\n")
    writer.writeheader()
    writer.writerows(found)
    return text.getvalue()
