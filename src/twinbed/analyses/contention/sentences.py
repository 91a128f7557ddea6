"""What a detector of contended runs is worth, in sentences: for the page, the report and the terminal."""

from __future__ import annotations

from collections.abc import Iterator

from twinbed.analyses.contention.result import Alarms, Contention, Group, Told
from twinbed.render.quantities import share
from twinbed.render.tabular import joined
from twinbed.render.words import cell_title, heading


def rough(value: float) -> str:
    """A share to the whole percent: ``88 %``."""
    return f"{value * 100:.0f} %"


def where(group: Group) -> str:
    return f"{cell_title(group.levels)}: " if group.levels else ""


def sentences(found: Contention) -> Iterator[str]:
    """Of each combination of levels: how well contended runs are told, and how early; or why there is no detector."""
    for group in found.groups:
        if group.told is None:
            yield heading(f"{where(group)}no detector of contended runs: {group.reason}.")
        else:
            yield heading(f"{where(group)}{quality(found, group.told)}")
            yield heading(f"{where(group)}{timeliness(found, group.told)}")


def quality(found: Contention, told: Told) -> str:
    """How well they are told."""
    interval = "" if told.interval is None else f" ({told.interval.low:.3f} to {told.interval.high:.3f})"
    unclear = f"; {told.unclear} more {'is' if told.unclear == 1 else 'are'} neither for sure" if told.unclear else ""
    return (
        f"told from the machine's metrics alone, on replicates that it was not trained on, the detector alarms in"
        f" {rough(told.detected)} of contended runs (at least {share(found.drop)} slower) and in {rough(told.false_alarms)} of"
        f" runs free of contention{unclear}. The area under its ROC curve is {told.area:.3f}{interval}."
    )


def timeliness(found: Contention, told: Told) -> str:
    """Whether it alarms before the rate has fallen by what matters, and in how many runs."""
    return f"{_from(found, told)}. {heading(_before(found, told))}."


def _from(found: Contention, told: Told) -> str:
    one, fell = found.one, share(found.fallen)
    fallen = (
        f"the rate has fallen by {fell}"
        if told.fallen_from is None
        else f"the rate has fallen by {fell} from {told.fallen_from} on"
    )
    if told.alarms_from is None:
        return f"at no number of {one}s do most runs alarm" + ("" if told.fallen_from is None else f"; {fallen}")
    alarms = f"most runs alarm from {told.alarms_from} {one}{'' if told.alarms_from == 1 else 's'} on"
    if told.fallen_from is None:
        return f"{alarms}; nowhere has the rate fallen by {fell}"
    steps = sum(told.alarms_from <= step.n < told.fallen_from for step in told.steps)
    if steps:
        return f"{alarms}; {fallen}, {steps} tested number{'' if steps == 1 else 's'} later"
    return f"{alarms}; {fallen}: most do not alarm before"


def _before(found: Contention, told: Told) -> str:
    span = f"{share(found.drop)} to {share(found.fallen)}"
    there = [str(step.n) for step in told.steps if found.drop <= step.lost < found.fallen and step.alarms is not None]
    if told.before is not None:
        return f"where the rate has lost {span} (at {joined(there)}), {counted(told.before)}"
    above = next((at for at, step in enumerate(told.steps) if step.lost >= found.fallen), None)
    if not above:
        return f"at no tested number has the rate lost {span}"
    low, high = told.steps[above - 1], told.steps[above]
    gap = f"from {rough(max(low.lost, 0.0))} at {low.n} to {rough(high.lost)} at {high.n}"
    return f"at no tested number has the rate lost {span}: it goes {gap}, so how early it alarms needs numbers between them"


def counted(alarms: Alarms) -> str:
    """``7 of 8 runs alarm (88 %, 47 to 100 %)``."""
    low, high = rough(alarms.interval.low).removesuffix(" %"), rough(alarms.interval.high)
    return f"{alarms.count} of {alarms.of} runs alarm ({rough(alarms.share)}, {low} to {high})"
