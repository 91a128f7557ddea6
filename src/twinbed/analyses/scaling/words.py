"""Write how many fit as a section: what to do, the statement on each objective, and the numbers."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from itertools import chain
from statistics import fmean

from twinbed.analyses.scaling import draw
from twinbed.analyses.scaling.result import AtN, LevelScaling, Scaling
from twinbed.show.numbers import percent
from twinbed.show.quantities import UnitScale, number, share
from twinbed.show.section import Section
from twinbed.show.table import Column, Of, Table, cell_columns
from twinbed.show.words import cell_title, heading, metric_name

LEAST = 2
"""Runs that a statement about a number needs."""
EXPLAINED = "unexplained"
ENDS = ("sent", "received", EXPLAINED)
"""Rows of a ledger that are no stage."""
NOTE = (
    "Each number is tested by itself, from the smallest on; only tested numbers are named. For other objectives: twinbed"
    " analyse capacity."
)


def section(scaling: Scaling) -> Section:
    """Return the section of how many fit."""
    advice = tuple(recommendations(scaling))
    return Section(
        "fitting",
        "How many fit",
        advice[0] if len(advice) == 1 else "",
        (
            *((advice,) if len(advice) > 1 else ()),
            *draw.figures(scaling),
            tuple(statements(scaling)),
            NOTE,
            _statements(scaling),
            _numbers(scaling),
            _losses(scaling),
        ),
        kicker=f"Confidence {share(scaling.confidence)}",
    )


def recommendations(scaling: Scaling) -> Iterator[str]:
    """Yield a sentence of advice for each combination of levels."""
    for group in scaling.groups:
        where = f"{cell_title(group.levels)}: " if group.levels else ""
        yield heading(f"{where}{_advice(scaling, group)}.")


def _advice(scaling: Scaling, group: LevelScaling) -> str:
    noun, sure = scaling.noun, share(scaling.confidence)
    decided = [statement for statement in group.statements if statement.decided]
    if not decided:
        return "cannot recommend a number: no objective could be tested"
    open_ones = "" if len(decided) == len(group.statements) else " (other objectives: cannot tell)"
    objectives = " and ".join(statement.objective for statement in decided) + open_ones
    surely = f"with {sure} confidence{' each' if len(decided) > 1 else ''}: {objectives}"
    if group.keeps is None:
        return f"no number of {noun}s is shown to keep {objectives}"
    counted = _counted(group.keeps, noun)
    if group.keeps == 1 and all(statement.of_one for statement in decided):
        return f"run {counted} at a time: more is not shown to keep {objectives}"
    if group.keeps == group.tested and max((*group.failed, *group.unrated), default=0) <= group.tested:
        return f"all {counted} that were tested fit, {surely}"
    return f"run at most {counted} at once, {surely}"


def statements(scaling: Scaling) -> Iterator[str]:
    """Yield the statement on each objective of each combination, then failed and incomplete runs."""
    for group in scaling.groups:
        where = f"{cell_title(group.levels)}, " if group.levels else ""
        for statement in group.statements:
            yield heading(f"{where}{statement.objective}: {statement.text}.")
        for n, (failed, of) in group.failed.items():
            rest = "too few complete runs for a statement" if of - failed < LEAST else "statements use the others"
            yield heading(f"{where}{failed} of {of} runs failed at {_counted(n, scaling.noun)}: {rest}.")
        for n, (unrated, of) in group.unrated.items():
            rate = metric_name(scaling.rate)
            yield heading(
                f"{where}{unrated} of {of} runs at {_counted(n, scaling.noun)} lack {rate} of some {scaling.noun}: "
                f"they are used for other metrics, not for {rate}."
            )


def _counted(n: int, noun: str) -> str:
    return f"{n} {noun}{'' if n == 1 else 's'}"


def _statements(scaling: Scaling) -> Table:
    records = [Of(group, statement) for group in scaling.groups for statement in group.statements]
    columns = (
        *(column for column in cell_columns(records, lambda record: record.group.levels) if column.key),
        Column("objective", value="item.objective"),
        Column("statement", value="item.text"),
        *(Column(name, value=f"item.{name}") for name in ("decided", "keeps", "fails")),
    )
    return Table("statements", "", "", columns, records)


Row = Of[LevelScaling, AtN]


def _points(scaling: Scaling) -> list[Row]:
    return [Of(group, point) for group in scaling.groups for point in group.points]


def _mean(record: Row) -> float | None:
    return fmean(record.item.rates) if record.item.rates else None


def _together(record: Row) -> float | None:
    mean = _mean(record)
    return None if mean is None else record.item.n * mean


def _of_single(record: Row) -> float | None:
    mean, single = _mean(record), record.group.single
    return None if mean is None or not single else mean / single


def _numbers(scaling: Scaling) -> Table:
    """Return each number of pairs with its means. Readers get the columns that have values."""
    records, noun = _points(scaling), scaling.noun
    scale, together = draw.scales(scaling)
    overlaps = any(record.item.overlap is not None for record in records)

    def head(text: str, is_known: bool) -> str:
        return text if is_known else ""

    columns = (
        *cell_columns(records, lambda record: record.group.levels),
        Column("n", f"{noun}s", format="d", value="item.n"),
        Column("runs", "runs", format="d", value="item.runs"),
        Column("rate", f"{metric_name(scaling.rate)} of a {noun}", _named(scale), _scaled(scale), value=_mean),
        Column("of_single", head(f"of 1 {noun}'s", any(group.single for group in scaling.groups)), "", percent, _of_single),
        Column("together", "all together", _named(together), _scaled(together), value=_together),
        Column("loss", head("loss", any(at_n.losses for _, at_n in records)), "", percent, lambda row: _known(row.item.losses)),
        Column(
            "fairness",
            head("fairness", any(at_n.fairness for _, at_n in records)),
            format=".4f",
            value=lambda row: _known(row.item.fairness),
        ),
        Column(
            "start_skew_s",
            head("start skew (ms)", any(at_n.skew_s is not None for _, at_n in records)),
            format=lambda value: number(1000 * value),
            value="item.skew_s",
        ),
        Column("overlap", head("all ran together", overlaps), format=percent, value="item.overlap"),
    )
    caption = "Means over runs. Start skew: the largest time between the first and the last client's start."
    if overlaps:
        caption += " All ran together: the smallest share of the clients' time in which all of them ran."
    return Table("numbers", f"Each number of {noun}s", caption, columns, records)


def _known(values: Sequence[float]) -> float | None:
    return fmean(values) if values else None


def _losses(scaling: Scaling) -> Table:
    """Return where packets were lost, of stages that dropped something; no rows without a ledger that lost any."""
    ledgers = [record for record in _points(scaling) if record.item.packets is not None]
    stages = dict.fromkeys(chain.from_iterable(record.item.packets or {} for record in ledgers))
    dropped = [
        stage for stage in stages if stage not in ENDS and any((record.item.packets or {}).get(stage) for record in ledgers)
    ]

    def packets(stage: str) -> Callable[[Row], float]:
        return lambda record: (record.item.packets or {}).get(stage, 0.0)

    def unexplained(record: Row) -> float | None:
        return abs(packets(EXPLAINED)(record)) / record.item.lost if record.item.lost > 0 else None

    columns = (
        *cell_columns(ledgers, lambda record: record.group.levels),
        Column("n", f"{scaling.noun}s", format="d", value="item.n"),
        Column("sent", "sent", format=_count, value=packets("sent")),
        Column("lost", "lost", format=_count, value="item.lost"),
        *(Column(stage, stage, format=_count, value=packets(stage)) for stage in dropped),
        Column(EXPLAINED, EXPLAINED, format=_count, value=packets(EXPLAINED)),
        Column(head="of the lost", format=percent, value=unexplained),
    )
    caption = (
        "UDP packets (IP), summed over all pairs, mean over runs, by each place's own counter. Unexplained: lost packets that"
        " no counter has. Stages that dropped nothing are left out."
    )
    lost = any(record.item.lost > 0 for record in ledgers)
    return Table("losses", "Where packets were lost", caption, columns, ledgers if lost else ())


def _count(packets: float) -> str:
    return f"{round(packets):,}"


def _named(scale: UnitScale) -> str:
    return scale.unit if scale.unit not in ("", "/s") else ""


def _scaled(scale: UnitScale) -> Callable[[float], str]:
    return lambda value: number(value / scale.factor)
