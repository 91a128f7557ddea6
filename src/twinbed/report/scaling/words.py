"""How many fit, in words and tables: for the page, Markdown and the terminal."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import chain
from statistics import fmean

from twinbed.model.run import level_text
from twinbed.render.tabular import Tabular
from twinbed.report.scaling.result import AtN, LevelScaling, Scaling
from twinbed.show.numbers import percent
from twinbed.show.quantities import NONE, UnitScale, number, share, unit_scale
from twinbed.show.words import cell_title, heading, metric_name

LEAST = 2
"""Runs of a number of which something is said."""
EXPLAINED = "unexplained"
ENDS = ("sent", "received", EXPLAINED)
"""Rows of a ledger that are no stage."""
_OVERLAP = "all ran together"


def recommendations(scaling: Scaling) -> Iterator[str]:
    """What to do, a sentence for each combination of levels."""
    for group in scaling.groups:
        where = f"{cell_title(group.levels)}: " if group.levels else ""
        yield heading(f"{where}{_advice(scaling, group)}")


def _advice(scaling: Scaling, group: LevelScaling) -> str:
    one, sure = scaling.one, share(scaling.confidence)
    decided = [each for each in group.statements if each.decided]
    if not decided:
        return "no number can be recommended"
    undecided = "" if len(decided) == len(group.statements) else " (of the others nothing can be said)"
    objectives = " and ".join(each.objective for each in decided) + undecided
    surely = f"at least {sure} sure{' of each' if len(decided) > 1 else ''}: {objectives}"
    if group.keeps is None:
        return f"no number of {one}s is shown to keep {objectives}"
    counted = _counted(group.keeps, one)
    if group.keeps == 1 and all(each.of_one for each in decided):
        return f"more than {counted} at once is not shown to keep {objectives}"
    if group.keeps == group.tested and max((*group.failed, *group.unrated), default=0) <= group.tested:
        return f"all {counted} that were tested fit, {surely}"
    return f"run at most {counted} at once, {surely}"


def statements(scaling: Scaling) -> Iterator[str]:
    """Each objective of each combination, with what is known of it."""
    for group in scaling.groups:
        where = f"{cell_title(group.levels)}, " if group.levels else ""
        for each in group.statements:
            yield heading(f"{where}{each.objective}: {each.text}")
        for n, (failed, of) in group.failed.items():
            rest = "nothing is said of it" if of - failed < LEAST else "what is said is of the others"
            yield heading(f"{where}at {_counted(n, scaling.one)} {failed} of {of} runs failed: {rest}")
        for n, (unrated, of) in group.unrated.items():
            rate = metric_name(scaling.rate)
            yield heading(
                f"{where}at {_counted(n, scaling.one)} {unrated} of {of} runs have no {rate} of all {scaling.one}s: they count"
                f" in what is said of other metrics, not of {rate}"
            )


def _counted(n: int, one: str) -> str:
    return f"{n} {one}{'' if n == 1 else 's'}"


def rate_scale(scaling: Scaling) -> UnitScale:
    """The unit of a pair's rate."""
    return unit_scale(scaling.unit, [fmean(point.rates) for _, point in _points(scaling) if point.rates])


def tables(scaling: Scaling) -> Iterator[Tabular]:
    """Each number of pairs; and where packets were lost, if a ledger was kept."""
    yield _numbers(scaling)
    if any(point.packets and point.lost > 0 for _, point in _points(scaling)):
        yield _losses(scaling)


def _points(scaling: Scaling) -> Iterator[tuple[LevelScaling, AtN]]:
    return ((group, point) for group in scaling.groups for point in group.points)


def _numbers(scaling: Scaling) -> Tabular:
    scale, one = rate_scale(scaling), scaling.one
    together = unit_scale(scaling.unit, [point.n * fmean(point.rates) for _, point in _points(scaling) if point.rates])
    every = [point for _, point in _points(scaling)]
    named = f"{metric_name(scaling.rate)} of a {one}"
    heads = [*_names(scaling), f"{one}s", "runs", _with_unit(named, scale)]
    of_single = any(group.single for group in scaling.groups)
    heads += [*([f"of 1 {one}'s"] if of_single else []), _with_unit("all together", together)]
    heads += ["loss"] if any(point.losses for point in every) else []
    heads += ["fairness"] if any(point.fairness for point in every) else []
    heads += ["start skew (ms)"] if any(point.skew_s is not None for point in every) else []
    heads += [_OVERLAP] if any(point.overlap is not None for point in every) else []
    rows = []
    for group, point in _points(scaling):
        mean = fmean(point.rates) if point.rates else None
        row: list[str | None] = [*_levels(scaling, group), str(point.n), str(point.runs)]
        row.append(None if mean is None else number(mean / scale.factor))
        if of_single:
            row.append(NONE if not group.single else None if mean is None else percent(mean / group.single))
        row.append(None if mean is None else number(point.n * mean / together.factor))
        if "loss" in heads:
            row.append(percent(fmean(point.losses)) if point.losses else None)
        if "fairness" in heads:
            row.append(f"{fmean(point.fairness):.4f}" if point.fairness else None)
        if "start skew (ms)" in heads:
            row.append(None if point.skew_s is None else number(1000 * point.skew_s))
        if _OVERLAP in heads:
            row.append(None if point.overlap is None else percent(point.overlap))
        rows.append(tuple(row))
    caption = "Means over runs. Start skew: the largest time between the first and the last client's start."
    if _OVERLAP in heads:
        caption += f" {_OVERLAP.capitalize()}: the least share of the clients' time in which all of them ran."
    return Tabular(f"Each number of {one}s", caption, tuple(heads), tuple(rows), texts=len(_names(scaling)) or 1)


def _losses(scaling: Scaling) -> Tabular:
    """Only stages that dropped something."""
    with_ledger = [(group, point) for group, point in _points(scaling) if point.packets is not None]
    stages = dict.fromkeys(chain.from_iterable(point.packets or {} for _, point in with_ledger))
    shown = [
        stage for stage in stages if stage not in ENDS and any((point.packets or {}).get(stage) for _, point in with_ledger)
    ]
    rows = []
    for group, point in with_ledger:
        packets = point.packets or {}
        row: list[str | None] = [*_levels(scaling, group), str(point.n), _count(packets["sent"]), _count(point.lost)]
        row += [_count(packets.get(stage, 0.0)) for stage in shown]
        row += [_count(packets[EXPLAINED]), percent(abs(packets[EXPLAINED]) / point.lost) if point.lost > 0 else None]
        rows.append(tuple(row))
    heads = (*_names(scaling), f"{scaling.one}s", "sent", "lost", *shown, EXPLAINED, "of the lost")
    caption = (
        "IP packets of UDP, summed over all pairs, in the mean of the runs; each place's own counter. Unexplained is what none"
        " of them accounts for. Stages that dropped nothing are left out."
    )
    return Tabular("Where packets were lost", caption, heads, tuple(rows), texts=len(_names(scaling)) or 1)


def _count(packets: float) -> str:
    return f"{round(packets):,}"


def _with_unit(name: str, scale: UnitScale) -> str:
    return f"{name} ({scale.unit})" if scale.unit not in ("", "/s") else name


def _names(scaling: Scaling) -> Sequence[str]:
    return [name.rpartition(".")[2] for name in scaling.groups[0].levels]


def _levels(scaling: Scaling, group: LevelScaling) -> Sequence[str]:
    return [level_text(level) for level in group.levels.values()]
