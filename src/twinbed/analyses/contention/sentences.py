"""What a detector of contended runs is worth, in sentences: for the page, the report and the terminal."""

from __future__ import annotations

from collections.abc import Iterator

from twinbed.analyses.contention.result import Alarms, Contention, DetectorResult, LevelContention
from twinbed.show.numbers import joined
from twinbed.show.quantities import share
from twinbed.show.words import cell_title, heading


def rough(value: float) -> str:
    """A share to the whole percent: ``88 %``."""
    return f"{value * 100:.0f} %"


def where(group: LevelContention) -> str:
    return f"{cell_title(group.levels)}: " if group.levels else ""


def sentences(contention: Contention) -> Iterator[str]:
    """How well contended runs are detected for each combination of levels, and how early; or why there is no detector."""
    for group in contention.groups:
        if group.detector is None:
            yield heading(f"{where(group)}no detector of contended runs: {group.reason}.")
        else:
            yield heading(f"{where(group)}{quality(contention, group.detector)}")
            yield heading(f"{where(group)}{timeliness(contention, group.detector)}")


def quality(contention: Contention, detector: DetectorResult) -> str:
    """How well they are detected."""
    interval = "" if detector.interval is None else f" ({detector.interval.low:.3f} to {detector.interval.high:.3f})"
    unclear = (
        f"; {detector.unclear} more {'is' if detector.unclear == 1 else 'are'} neither for sure" if detector.unclear else ""
    )
    contended, free = (sum(run.tested and run.kind == kind for run in detector.runs) for kind in ("contended", "free"))
    return (
        f"told from the machine's metrics alone, on replicates that it was not trained on, the detector alarms in"
        f" {rough(detector.detected)} of contended runs (at least {share(contention.drop)} slower) and in"
        f" {rough(detector.false_alarms)} of runs free of contention, of {contended} and {free} that it was tested on{unclear}."
        f" The area under its ROC curve is {detector.area:.3f}{interval}."
    )


def timeliness(contention: Contention, detector: DetectorResult) -> str:
    """Whether it alarms before the rate has fallen by what matters, and in how many runs."""
    return f"{_from(contention, detector)}. {heading(_before(contention, detector))}."


def _from(contention: Contention, detector: DetectorResult) -> str:
    one, fell = contention.one, share(contention.fallen)
    fallen = (
        f"the rate has fallen by {fell}"
        if detector.fallen_from is None
        else f"the rate has fallen by {fell} from {detector.fallen_from} on"
    )
    if detector.alarms_from is None:
        return f"at no number of {one}s do most runs alarm" + ("" if detector.fallen_from is None else f"; {fallen}")
    alarms = f"most runs alarm from {detector.alarms_from} {one}{'' if detector.alarms_from == 1 else 's'} on"
    if detector.fallen_from is None:
        return f"{alarms}; nowhere has the rate fallen by {fell}"
    steps = sum(detector.alarms_from <= step.n < detector.fallen_from for step in detector.steps)
    if steps:
        return f"{alarms}; {fallen}, {steps} tested number{'' if steps == 1 else 's'} later"
    return f"{alarms}; {fallen}: most do not alarm before"


def _before(contention: Contention, detector: DetectorResult) -> str:
    span = f"{share(contention.drop)} to {share(contention.fallen)}"
    there = [
        str(step.n) for step in detector.steps if contention.drop <= step.lost < contention.fallen and step.alarms is not None
    ]
    if detector.before is not None:
        return f"where the rate has lost {span} (at {joined(there)}), {counted(detector.before)}"
    above = next((at for at, step in enumerate(detector.steps) if step.lost >= contention.fallen), None)
    if not above:
        return f"at no tested number has the rate lost {span}"
    low, high = detector.steps[above - 1], detector.steps[above]
    gap = f"from {rough(max(low.lost, 0.0))} at {low.n} to {rough(high.lost)} at {high.n}"
    return f"at no tested number has the rate lost {span}: it goes {gap}, so how early it alarms needs numbers between them"


def counted(alarms: Alarms) -> str:
    """``7 of 8 runs alarm (88 %, 47 to 100 %)``."""
    low, high = rough(alarms.interval.low).removesuffix(" %"), rough(alarms.interval.high)
    return f"{alarms.count} of {alarms.of} runs alarm ({rough(alarms.share)}, {low} to {high})"
