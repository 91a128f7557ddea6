"""Advice as rows: for JSON, and for tables in Python. Missing is None."""

from __future__ import annotations

from collections.abc import Mapping

from twinbed.model.comparison import Comparison
from twinbed.model.json import Json
from twinbed.model.run import level_text
from twinbed.report.advice.result import Advice, Rule, Span
from twinbed.report.advice.text import bases


def rows(advice: Advice) -> list[dict[str, Json]]:
    """Return a row for each rule."""
    return [
        {
            "topic": str(rule.topic),
            "sentence": rule.sentence,
            "source": rule.source,
            "testbed": rule.testbed or None,
            "against": rule.against or None,
            "layer": rule.layer or None,
            "metric": rule.metric,
            "cells": rule.cells,
            "runs_least": rule.runs[0],
            "runs_most": rule.runs[1],
            **_span("within", rule.within),
            **_span("beyond", rule.beyond),
            "p_corrected": rule.p_value,
            "cautions": " | ".join(kind.name.lower() for kind in rule.cautions) or None,
            "command": rule.command,
        }
        for rule in advice.rules
    ]


def document(advice: Advice) -> Mapping[str, Json]:
    """Return everything as JSON."""
    return {
        "error": advice.error,
        "tested": advice.tested,
        "results": [*bases(advice)],
        "notes": [*advice.notes],
        "contradictions": [
            {
                "subject": contradiction.contrast.subject,
                "against": contradiction.contrast.against,
                "testbed": contradiction.contrast.testbed or None,
                "metric": contradiction.metric,
                **{
                    name: [{"source": shown.source, **_cell(shown.comparison)} for shown in side]
                    for name, side in (("equivalent", contradiction.equivalent), ("different", contradiction.different))
                },
            }
            for contradiction in advice.contradictions
        ],
        "sentences": [
            {
                "topic": str(statement.topic),
                "sentence": statement.sentence,
                "metrics": [rule.metric for rule in statement.rules],
            }
            for statement in advice.statements
        ],
        "advice": [{**row, "evidence": _cells(rule)} for row, rule in zip(rows(advice), advice.rules, strict=True)],
        "trust": [
            {
                "source": trusted.source,
                "testbed": trusted.testbed,
                "against": trusted.against,
                "layer": trusted.layer,
                "metric": count.metric,
                "equivalent": count.equivalent,
                "different": count.different,
                "cells": count.cells,
            }
            for trusted in advice.trusted
            for count in trusted.metrics
        ],
        "open": [
            {
                "source": metric.contrast.source,
                "subject": metric.contrast.subject,
                "against": metric.contrast.against,
                "testbed": metric.contrast.testbed or None,
                "metric": metric.metric,
                "cells": [*metric.places],
                "runs": metric.runs,
                "too_few": metric.few,
                "replicates_for_first": metric.first,
                "replicates_needed": metric.replicates,
                "cells_not_settled_by_runs": metric.never,
                "because": metric.reason or None,
            }
            for metric in advice.open
        ],
    }


def _span(name: str, span: Span | None) -> dict[str, Json]:
    return {
        f"{name}_cells": span.cells if span else 0,
        f"{name}_least": span.least if span else None,
        f"{name}_most": span.most if span else None,
        f"{name}_low": span.low if span else None,
        f"{name}_high": span.high if span else None,
    }


def _cells(rule: Rule) -> list[Json]:
    return [_cell(comparison) for comparison in rule.comparisons]


def _cell(comparison: Comparison) -> dict[str, Json]:
    return {
        "cell": {name: level_text(level) for name, level in comparison.cell.items()},
        "verdict": str(comparison.verdict),
        "ratio": comparison.ratio,
        "ratio_low": comparison.ratio_interval.low if comparison.ratio_interval else None,
        "ratio_high": comparison.ratio_interval.high if comparison.ratio_interval else None,
        "n": comparison.estimate.n,
        "reference_n": comparison.reference_estimate.n,
        "p_equivalent_corrected": comparison.p_equivalent,
        "p_different_corrected": comparison.p_different,
    }
