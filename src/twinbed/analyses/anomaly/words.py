"""Write where a pair is faster among several than alone, and which metrics move with its rate, as a section."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from twinbed.analyses.anomaly.result import Anomalies
from twinbed.model.amount import amount
from twinbed.model.run import Level, level_text
from twinbed.show.numbers import bounds, figure, probability
from twinbed.show.section import Section
from twinbed.show.table import Column, Row, Table, cell_columns, plain

TITLE = "A pair among N, compared with a pair alone"
NUMBERS = ("n", "ratio", "low", "high", "p", "p_holm", "faster")
"""Columns of the comparisons; earlier columns are levels."""
MOST = 20
"""Counters in the table for readers."""
LIKELY = 0.05


def section(result: Anomalies) -> Section:
    """Return the section of pairs that are faster among several."""
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
    """Return the largest gain over a pair alone, and how many metrics move with the rate."""
    faster = [row for row in result.faster if row["faster"]]
    if not faster:
        return f"No pair is shown to be faster among several than alone ({amount(len(result.faster), 'comparison')})."
    most = max(faster, key=lambda row: float(row["ratio"]))
    tested = sum(row["spearman"] is not None for row in result.counters)
    cell = "".join(f", {name} {level_text(level)}" for name, level in _levels(most).items())
    return (
        f"A pair is {100 * (float(most['ratio']) - 1):.3g} % faster among {most['n']} than alone{cell} ({len(faster)} of "
        f"{len(result.faster)} comparisons show a gain). {moving} of {tested} other metrics move with the rate, beyond work "
        "and time."
    )


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
    return Table("faster", TITLE, "Rate of a pair among N, divided by the rate of a pair alone.", columns, result.faster)


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
        "Rank correlations with the rate, of the part that work and time leave unexplained. Elasticity: the change in %"
        " when the rate changes by 1 %. Then: the shares that go with work, with time, and with the time of each pair."
    )
    return Table("", "What moves with the rate", caption, [column for column in columns if column.head], rows)


def _short(value: float) -> str:
    return f"{value:.4g}"


def _levels(row: Row) -> Mapping[str, Level]:
    return {name: level for name, level in row.items() if name not in NUMBERS}


def _remarks(result: Anomalies, moving: list[Row]) -> Iterator[str]:
    if len(moving) > MOST:
        yield f"{len(moving) - MOST} more metrics move with the rate: --format csv --table counters."
    if forms := sum(row["not_tested"] is not None for row in result.counters):
        yield f"{forms} other metrics are another form of the rate, the work or the time, and were not tested."
    if moving and all(row["p_at_equal_n"] is None or row["p_at_equal_n"] > LIKELY for row in moving):
        yield "Cannot tell the cause of the gain: no metric moves with the rate at equal N; any change with N looks the same."
