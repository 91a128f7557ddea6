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
                "subject": each.contrast.subject,
                "against": each.contrast.against,
                "testbed": each.contrast.testbed or None,
                "metric": each.metric,
                **{
                    name: [{"source": one.source, **_cell(one.comparison)} for one in side]
                    for name, side in (("equivalent", each.equivalent), ("different", each.different))
                },
            }
            for each in advice.contradictions
        ],
        "sentences": [
            {"topic": str(each.topic), "sentence": each.sentence, "metrics": [rule.metric for rule in each.rules]}
            for each in advice.statements
        ],
        "advice": [{**row, "evidence": _cells(rule)} for row, rule in zip(rows(advice), advice.rules, strict=True)],
        "trust": [
            {
                "source": each.source,
                "testbed": each.testbed,
                "against": each.against,
                "layer": each.layer,
                "metric": count.metric,
                "equivalent": count.equivalent,
                "different": count.different,
                "cells": count.cells,
            }
            for each in advice.trusted
            for count in each.metrics
        ],
        "open": [
            {
                "source": each.contrast.source,
                "subject": each.contrast.subject,
                "against": each.contrast.against,
                "testbed": each.contrast.testbed or None,
                "metric": each.metric,
                "cells": [*each.places],
                "runs": each.runs,
                "too_few": each.few,
                "replicates_for_first": each.first,
                "replicates_needed": each.replicates,
                "cells_not_settled_by_runs": each.never,
                "because": each.reason or None,
            }
            for each in advice.open
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
    return [_cell(each) for each in rule.comparisons]


def _cell(each: Comparison) -> dict[str, Json]:
    return {
        "cell": {name: level_text(level) for name, level in each.cell.items()},
        "verdict": str(each.verdict),
        "ratio": each.ratio,
        "ratio_low": each.ratio_interval.low if each.ratio_interval else None,
        "ratio_high": each.ratio_interval.high if each.ratio_interval else None,
        "n": each.estimate.n,
        "reference_n": each.reference_estimate.n,
        "p_equivalent_corrected": each.p_equivalent,
        "p_different_corrected": each.p_different,
    }
