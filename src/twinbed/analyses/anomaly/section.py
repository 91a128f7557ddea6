"""Where a pair is faster among several, and what moves with that, for a notebook; and in sentences."""

from __future__ import annotations

from collections.abc import Iterator

from twinbed.analyses.anomaly.result import Anomalies
from twinbed.contracts.analysis import Part, Section
from twinbed.model.run import level_text
from twinbed.render.tabular import Tabular
from twinbed.show.numbers import bounds, figure, probability

TITLE = "A pair among N against a pair alone"
NUMBERS = ("n", "ratio", "low", "high", "p", "p_holm", "faster")
"""Columns of the rows of numbers of pairs; those before them are levels."""


def section(result: Anomalies) -> Section:
    """It has no figures."""
    said, table = " ".join(f"{each}." for each in sentences(result)), _table(result)
    part = Part("faster", "tab-anomaly", TITLE, said, table)
    return Section("anomaly", TITLE, table.as_html, (part,), lede=said, kicker="Are several faster than one?")


def sentences(result: Anomalies) -> Iterator[str]:
    """Whether a pair is faster among several, and how many other metrics move with it."""
    if not any(row["faster"] for row in result.faster):
        yield "Nowhere is a pair shown to be faster than alone"
        return
    moving = sum(bool(row["moves"]) for row in result.counters)
    tested = sum(row["spearman"] is not None for row in result.counters)
    yield f"{moving} of {tested} other metrics move with the rate up to there, beyond what goes with work and time"


def _table(result: Anomalies) -> Tabular:
    levels = [name for name in (result.faster[0] if result.faster else ()) if name not in NUMBERS]
    rows = tuple(
        (
            "faster" if row["faster"] else "not shown",
            *(level_text(row[name]) for name in levels),
            str(row["n"]),
            figure(row["ratio"], 4),
            bounds(row["low"], row["high"]),
            probability(row["p_holm"]),
        )
        for row in result.faster
    )
    heads = ("verdict", *levels, "N", "ratio", "interval", "p (Holm)")
    return Tabular(TITLE, "Rate of a pair among N over that of one alone.", heads, rows, texts=1 + len(levels))
