"""Say where a pair is faster among several than alone, and what moves with its rate."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from twinbed.analyses.anomaly.result import Anomalies
from twinbed.model.run import Level
from twinbed.show.numbers import bounds, figure, probability
from twinbed.show.section import Section
from twinbed.show.table import Column, Row, Table, cell_columns, plain

TITLE = "A pair among N against a pair alone"
NUMBERS = ("n", "ratio", "low", "high", "p", "p_holm", "faster")
"""Columns of the comparisons; those before them are levels."""
MOST = 20
"""Readers get so many counters."""
LIKELY = 0.05


def section(result: Anomalies) -> Section:
    """Return what there is to say of pairs that are faster among several."""
    moving = [row for row in result.counters if row["moves"]]
    return Section(
        "anomaly",
        TITLE,
        _sentence(result, len(moving)),
        (
            _faster(result),
            plain("counters", result.counters),
            _moving(result, moving[:MOST]),
            tuple(_remarks(result, moving)),
        ),
        kicker="Are several faster than one?",
    )


def _sentence(result: Anomalies, moving: int) -> str:
    if not any(row["faster"] for row in result.faster):
        return "Nowhere is a pair shown to be faster than alone."
    tested = sum(row["spearman"] is not None for row in result.counters)
    return f"{moving} of {tested} other metrics move with the rate up to there, beyond what goes with work and time."


def _faster(result: Anomalies) -> Table:
    columns = (
        Column(head="verdict", value=lambda row: "faster" if row["faster"] else "not shown"),
        *cell_columns(result.faster, _levels),
        Column("n", "N", format="d"),
        Column("ratio", "ratio", format=lambda value: figure(value, 4) or ""),
        Column("low"),
        Column("high"),
        Column("p"),
        Column(head="interval", format="s", value=lambda row: bounds(row["low"], row["high"])),
        Column("p_holm", "p (Holm)", format=lambda value: probability(value) or ""),
        Column("faster"),
    )
    return Table("faster", TITLE, "Rate of a pair among N over that of one alone.", columns, result.faster)


def _moving(result: Anomalies, rows: list[Row]) -> Table:
    names = {name for row in result.faster for name in _levels(row)}
    numbers = {
        "runs": "runs",
        "Spearman": "spearman",
        "at equal N": "spearman_at_equal_n",
        "elasticity": "elasticity",
        "of work": "share_of_work",
        "of time": "share_of_time",
        "of pairs' time": "share_of_pairs_time",
        "p (BH)": "p_benjamini_hochberg",
    }
    columns = (
        *cell_columns(rows, lambda row: {name: row[name] for name in row if name in names}),
        Column(head="metric", value="counter"),
        *(Column(head=head, format=_short, value=name) for head, name in numbers.items()),
    )
    caption = (
        "Rank correlations with the rate of what work and time leave unexplained; elasticity: by how many per cent it changes"
        " where the rate changes by one; then the shares that go with the work, the time, and the time of each pair."
    )
    return Table("", "What moves with the rate", caption, [each for each in columns if each.head], rows)


def _short(value: float) -> str:
    return f"{value:.4g}"


def _levels(row: Row) -> Mapping[str, Level]:
    return {name: level for name, level in row.items() if name not in NUMBERS}


def _remarks(result: Anomalies, moving: list[Row]) -> Iterator[str]:
    if len(moving) > MOST:
        yield f"{len(moving) - MOST} more metrics move with the rate: --format csv --table counters."
    if forms := sum(row["not_tested"] is not None for row in result.counters):
        yield f"{forms} other metrics are the rate, the work or the time in another form, and were not tested."
    if moving and all(row["p_at_equal_n"] is None or row["p_at_equal_n"] > LIKELY for row in moving):
        yield "None of them moves with the rate at equal N: what changes with N for a reason of its own looks the same."
