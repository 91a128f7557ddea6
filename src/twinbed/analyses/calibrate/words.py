"""Calibrations in sentences."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from twinbed.analyses.calibrate.next_runs import Next
from twinbed.analyses.calibrate.result import Calibrated, Calibrations, Place
from twinbed.model.amount import amount
from twinbed.model.run import level_text
from twinbed.model.tables import Tables
from twinbed.show.numbers import joined
from twinbed.show.quantities import duration, share, unit_scale
from twinbed.statistics.calibration.area import Area
from twinbed.statistics.calibration.intervals import least_groups

NAMED = ("", "1", "/s")
"""Units that a metric's name says itself."""
CLEAR = 0.5
"""The share from which on the cheap testbed counts for more than the expensive runs alone."""


def sentences(found: Calibrations, each: Calibrated) -> Iterator[str]:
    """What was measured, what comes of it, and why it may be believed."""
    fitted, made = each.fitted, each.fitted.calibration
    where = "".join(f", {name} {level_text(level)}" for name, level in fitted.levels.items())
    yield f"{each.title}{where}: from {found.cheap} to {found.dear}"
    names = joined([one.name for one in fitted.inputs])
    yield f"  measured: {len(made.cheap)} cells of {names} on {found.cheap}, {len(made.dear)} on {found.dear}"
    ratios, half = each.ratios, each.half_width
    if ratios is None:
        yield f"  nothing is predicted: {each.cells[0].refused}"
    else:
        low, high = (f"{ratio:.3g}" for ratio in ratios)
        span = f"{low} times" if low == high else f"{low} to {high} times"
        yield f"  {found.dear} gives {span} what {found.cheap} gives"
        if half is None:
            yield f"  every cell that is predicted was measured on {found.dear} as well"
        else:
            number = amount(len(each.unmeasured), "cell")
            yield f"  predicted within ±{share(_short(half))} ({share(found.level)}, median of {number} not measured there)"
    yield f"  {_choice(found, each)}"
    cut = [one for one in each.cells if one.cut_at is not None]
    if cut and cut[0].cut_at is not None:
        scale = unit_scale(each.unit, [cut[0].cut_at])
        most = f"{cut[0].cut_at / scale.factor:.4g} {scale.unit}"
        yield f"  {amount(len(cut), 'prediction')} cut at {most}, the most that the link can carry"
    if each.area is not None:
        yield f"  curves lie {_area(each.area)} apart over ln {fitted.by}, in logarithms"
        for other, area in each.beside.items():
            yield f"  {found.cheap}'s less {other}'s distance from {found.dear}: {_area(area)}"
    refused = [one for one in each.cells if one.refused is not None]
    if refused:
        why = joined(list(dict.fromkeys(one.refused for one in refused if one.refused)))
        yield f"  not predicted: {len(refused)} of {len(each.cells)} cells ({why})"
    yield f"  {belief(found, each)}"
    yield from (f"  {line}" for line in assurance(found, each))
    inside = [one for one in each.held if not one.is_outside]
    held = sum(one.is_held for one in inside)
    if inside:
        yield f"  left out one {fitted.by} at a time: {held} of {len(inside)} means lie in the intervals that the others give"
    else:
        yield f"  no {fitted.by} lies between others that were measured on {found.dear}: nothing could be held against it"


def _choice(found: Calibrations, each: Calibrated) -> str:
    """Whether the cheap testbed is used, and what that rests on."""
    made = each.fitted.calibration
    mixed, alone = made.with_cheap.error, made.alone.error
    if mixed is None or alone is None:
        return f"no {each.fitted.by} lies between others, so nothing shows whether {found.cheap} helps"
    one, other = share(_short(mixed)), share(_short(alone))
    if not made.has_cheap:
        return (
            f"{found.cheap} does not help and is not used: left out, cells are missed by {other} from {found.dear} alone,"
            f" by {one} with {found.cheap} (root mean square)"
        )
    verdict = "helps" if made.share >= CLEAR else "is not shown to help"
    return (
        f"{found.cheap} {verdict} and counts for {share(_short(made.share))}: left out, cells are missed by {one} with it, by"
        f" {other} from {found.dear} alone (root mean square); log {found.dear} rises by {made.slope:.2g} times"
        f" log {found.cheap}"
    )


def belief(found: Calibrations, each: Calibrated) -> str:
    """Which interval it is, and why."""
    fitted, made = each.fitted, each.fitted.calibration
    missed, groups, _ = made.missed
    need = least_groups(found.level)
    if made.is_conformal:
        text = f"intervals: conformal, by {made.drawn_groups} levels of {fitted.by} drawn at random; they hold on no belief"
        if made.is_doubted:
            text += f", and are wide because {missed} of {groups} were not where the process has them"
        return text
    drawn = f"{made.drawn_groups} were drawn at random" if made.drawn_groups else "none was drawn at random"
    text = (
        f"intervals: the process' own; a conformal one of {share(found.level)} needs {need} levels of {fitted.by}, and {drawn}"
    )
    if made.is_disbelieved:
        return f"{text}; {missed} of {groups} left out miss them, so that they are not given"
    return f"{text}; {missed} of {groups} left out miss them" if made.is_doubted else text


def assurance(found: Calibrations, each: Calibrated) -> Iterator[str]:
    """Say how sure the process is of its own coverage: the belief that it rests on, and what holds without it."""
    made = each.fitted.calibration
    if made.is_conformal:
        return
    missed, groups, _ = made.missed
    text = f"coverage: {share(found.level)} if no step lies between two levels of {each.fitted.by}"
    if each.assured is not None:
        text += f"; {share(_short(each.assured))} whatever the curve"
    if made.shown_coverage is not None:
        least = share(_short(made.shown_coverage))
        text += f"; {groups - missed} of {groups} levels left out are held, which shows {least} or more"
    yield text


def place_sentence(found: Calibrations, each: Calibrated, place: Place, *, one_run: bool) -> str:
    where = ", ".join(f"{name} {level_text(level)}" for name, level in place.levels.items())
    if place.value is None or place.low is None or place.high is None:
        return f"{where}: nothing is said of {found.dear}: it is {place.refused}"
    scale = unit_scale(each.unit, [place.value])
    value, low, high = (f"{number / scale.factor:.4g}" for number in (place.value, place.low, place.high))
    unit = f" {scale.unit}" if scale.unit not in NAMED else ""
    what = "one run" if one_run else "the mean"
    interval = f"{low} to {high} ({share(found.level)}, of {what})"
    if place.cut_at is not None:
        interval += f", cut at {place.cut_at / scale.factor:.4g}{unit}, the most that the link can carry"
    return f"{where}: {each.title} of {found.dear} {value}{unit}, {interval}"


def next_sentences(tables: Tables, found: Calibrations, chosen: Next, study: Path) -> Iterator[str]:
    yield ""
    now = share(_short(chosen.now))
    if not chosen.levels:
        yield f"nothing to measure: nine of ten cells are within ±{now} already"
        return
    yield f"next on {found.dear}, most telling first (nine of ten cells are within ±{now} now):"
    for level, half in zip(chosen.levels, chosen.half_widths, strict=True):
        yield f"  {chosen.by} {level_text(level)}: ±{share(_short(half))}"
    profile = tables.outline.data.get("profile")
    option = f" --profile {profile}" if profile else ""
    yield f"they last {duration(chosen.seconds)}; not being random, they count for the process, not for the conformal interval"
    yield f"{study}; next: twinbed run {study}{option} -o {found.source}"


def _area(area: Area) -> str:
    return f"{area.value:.2g}" + (f" ({area.interval.low:.2g} to {area.interval.high:.2g})" if area.interval else "")


def _short(half: float) -> float:
    return float(f"{half:.2g}")
