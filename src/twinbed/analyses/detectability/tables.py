"""How well testbeds are told, as rows for programs and as tables for readers."""

from __future__ import annotations

from collections.abc import Iterator

from twinbed.analyses.detectability.result import Detectability, Detection, Told
from twinbed.analyses.detectability.words import area_text, needed_text, title
from twinbed.render.tabular import Tabular
from twinbed.show.quantities import NONE, quantity, ratio
from twinbed.show.table import Row
from twinbed.show.words import cell_title, metric_name, p_text

MOST_FEATURES = 8
"""Of each detection, in the table for readers."""
CAPTION = (
    "Runs are told apart by a linear rule that has seen neither of them: two are left out at a time. AUC: the chance that it "
    "puts two of them in the right order; 0.5 is guessing. p: of as much among equals, by dealing labels anew, Holm's "
    "correction over all rows of a set of features. Residue: features that no setting removes. Packets: each way, for 95 % "
    "right."
)
FEATURES_CAPTION = (
    "What each feature tells alone at the longest observation, and the setting that removes it. AUC alone: in the better of "
    "its orders, so at least 0.5; p by dealing labels anew: that any of an observer's features tells as much among equals."
)
COSTS_CAPTION = "Named best: no other testbed of the cell is as hard to tell and as fast."


def _named(each: Detection) -> Row:
    return {**each.cell, "testbed": each.testbed, "reference": each.reference, "observer": each.observer}


def _sets(each: Detection) -> Iterator[tuple[str, Told]]:
    yield "all", each.as_is
    if each.residue is not None:
        yield "residue", each.residue


def rows(result: Detectability) -> list[Row]:
    """A row a detection and set of features: all, and what no setting removes."""
    return [
        {
            **_named(each),
            "features": name,
            "number_of_features": told.features,
            "runs": each.runs[0],
            "reference_runs": each.runs[1],
            "auc": told.area,
            "low": told.interval.low,
            "high": told.interval.high,
            "p_holm": told.p,
            "exact": told.exact,
            "packets": told.needed.packets if told.needed else None,
            "packets_low": told.needed.low if told.needed else None,
            "packets_high": told.needed.high if told.needed else None,
            "seconds": told.needed.seconds if told.needed else None,
        }
        for each in result.detections
        for name, told in _sets(each)
    ]


def feature_rows(result: Detectability) -> list[Row]:
    """A row a feature."""
    return [
        {
            **_named(each),
            "rank": rank,
            "feature": one.feature,
            "auc_alone": one.area,
            "p": one.p,
            "removed_by": str(one.remedy) if one.remedy else None,
            "applied": one.applied if one.remedy else None,
        }
        for each in result.detections
        for rank, one in enumerate(each.ranked, 1)
    ]


def length_rows(result: Detectability) -> list[Row]:
    """A row a length of observation."""
    return [
        {
            **_named(each),
            "features": name,
            "packets": one.packets,
            "seconds": one.seconds,
            "auc": one.area,
            "balanced_accuracy": one.accuracy,
        }
        for each in result.detections
        for name, told in _sets(each)
        for one in told.lengths
    ]


def cost_rows(result: Detectability) -> list[Row]:
    """A row a testbed, cell and observer."""
    return [
        {
            **each.cell,
            "testbed": each.testbed,
            "observer": each.observer,
            "auc": each.area,
            "low": each.interval.low,
            "high": each.interval.high,
            "metric": result.metric,
            "ratio": each.ratio,
            "best": each.best,
        }
        for each in result.costs
    ]


def table(result: Detectability) -> Tabular:
    """A row a detection and set of features."""
    heads = ("Cell", "Testbed", "observer", "features", "runs", "AUC", "interval", "p", "packets", "time")
    lines = [
        (
            cell_title(each.cell),
            each.testbed,
            each.observer,
            name,
            f"{each.runs[0]}, {each.runs[1]}",
            area_text(told.area),
            f"[{told.interval.low:.2f}, {told.interval.high:.2f}]",
            p_text(told.p),
            needed_text(told.needed) or NONE,
            quantity(told.needed.seconds, "s") if told.needed else NONE,
        )
        for each in result.detections
        for name, told in _sets(each)
    ]
    return Tabular(f"Told from {result.reference}", CAPTION, heads, tuple(lines), texts=4)


def feature_table(result: Detectability) -> Tabular:
    """The most telling features of each detection."""
    heads = ("Cell", "Testbed", "observer", "feature", "removed by", "AUC alone", "p")
    lines = [
        (
            cell_title(each.cell),
            each.testbed,
            each.observer,
            title(one.feature),
            NONE if one.remedy is None else f"{one.remedy}{' (applied)' if one.applied else ''}",
            area_text(one.area),
            p_text(one.p),
        )
        for each in result.detections
        for one in each.ranked[:MOST_FEATURES]
    ]
    return Tabular("What gives testbeds away", FEATURES_CAPTION, heads, tuple(lines), texts=5)


def cost_table(result: Detectability) -> Tabular:
    """A row a testbed, cell and observer, the fastest first."""
    name = metric_name(result.metric)
    heads = ("Cell", "Testbed", "observer", "", "AUC", f"{name}, of {result.reference}'s")
    ordered = sorted(result.costs, key=lambda each: (cell_title(each.cell), each.observer, -each.ratio))
    lines = [
        (
            cell_title(each.cell),
            each.testbed,
            each.observer,
            "best" if each.best else "",
            area_text(each.area),
            ratio(each.ratio),
        )
        for each in ordered
    ]
    return Tabular("What hiding costs", COSTS_CAPTION, heads, tuple(lines), texts=4)
