"""Write calibrations as a section: the prediction of each response and its evidence, curves, and a row for each cell."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from statistics import fmean
from typing import NamedTuple

import numpy as np

from twinbed.analyses.calibrate import draw
from twinbed.analyses.calibrate.next_runs import Next
from twinbed.analyses.calibrate.result import Calibrated, Calibrations, Held, Place
from twinbed.model.amount import amount
from twinbed.model.run import Level, level_text
from twinbed.model.tables import Tables
from twinbed.show.numbers import bounds, figure, joined, percent
from twinbed.show.quantities import UnitScale, duration, share, unit_scale
from twinbed.show.section import Item, Section
from twinbed.show.table import Column, Table
from twinbed.show.words import cell_title, heading
from twinbed.statistics.calibration.area import Area
from twinbed.statistics.calibration.equating import Equating, equating, logistic_curve
from twinbed.statistics.calibration.intervals import least_groups
from twinbed.statistics.nonlinear import NoFitError

CLEAR = 0.5
"""The cheap testbed helps if it counts for at least this share."""


class _Of(NamedTuple):
    """A place or a left-out cell, with its calibration."""

    calibrated: Calibrated
    place: Place | Held
    cheap: float | None = None
    """The mean of new runs of the cheap testbed there."""


def section(calibrations: Calibrations) -> Section:
    """Return each response, and the facts that the calibration is valid for."""
    first = calibrations.responses[0]
    items: list[Item] = [summary(calibrations), predictions(calibrations), left_out(calibrations)]
    items += [*(_response(calibrations, calibrated) for calibrated in calibrations.responses), _tied(calibrations)]
    sentence = f"{title(first)}: {answer(calibrations, first)}"
    return Section(
        "calibration", "Calibration", sentence, items, kicker=f"from {calibrations.cheap} to {calibrations.expensive}"
    )


def title(calibrated: Calibrated) -> str:
    """Return the response and its other levels."""
    return heading(f"{calibrated.title}{f', {cell_title(calibrated.fitted.levels)}' if calibrated.fitted.levels else ''}")


def _response(calibrations: Calibrations, calibrated: Calibrated) -> Section:
    """Return one response. A terminal shows the cells of the first alone."""
    is_first = calibrated is calibrations.responses[0]
    anchor = f"calibration-{calibrated.response.replace('@', '-')}"
    table = Section(
        f"{anchor}-cells", "Every cell", items=(_cells(calibrations, calibrated),), folded=True, on_paper=True, in_text=is_first
    )
    measured, *evidence = sentences(calibrations, calibrated)
    # The answer for the first response is the section's own sentence.
    first, rest = (measured, evidence) if is_first else (answer(calibrations, calibrated), [measured, *evidence])
    items: list[Item] = [tuple(rest), *draw.figures(calibrations, calibrated), table]
    if kinds := equated(calibrated):
        items.append(
            Section(f"{anchor}-seed", SEED, items=(_seed(calibrations, calibrated, kinds),), folded=True, in_text=False)
        )
    return Section(anchor, title(calibrated), first, items)


def _tied(calibrations: Calibrations) -> Section:
    facts = [
        f"{name}: {'; '.join(f'{fact} {chr(44).join(values)}' for fact, values in passport.items()) or 'nothing was recorded'}."
        for name, passport in calibrations.passports.items()
    ]
    text = "The calibration is not valid for testbeds that differ in one of these facts."
    return Section("calibration-tied", "Valid for", text, ((*facts, *despite(calibrations)),), in_text=False)


def despite(calibrations: Calibrations) -> list[str]:
    """Return a sentence with the accepted cautions; empty without any."""
    return [f"Made despite {' and '.join(calibrations.accepted)}."] if calibrations.accepted else []


def _levels(records: Sequence[_Of]) -> Iterator[Column]:
    def level(name: str) -> Callable[[_Of], Level | None]:
        return lambda of: of.place.levels.get(name)

    return (Column(name, value=level(name)) for name in dict.fromkeys(name for of in records for name in of.place.levels))


def summary(calibrations: Calibrations) -> Table:
    """Return a row a response and combination of other levels, for programs."""

    def other(name: str) -> Callable[[Calibrated], Level | None]:
        return lambda calibrated: calibrated.fitted.levels.get(name)

    made = "fitted.calibration"
    names = dict.fromkeys(name for calibrated in calibrations.responses for name in calibrated.fitted.levels)
    columns = (
        *(Column(name, value=other(name)) for name in names),
        Column("response"),
        Column("cheap_cells", value=lambda calibrated: len(calibrated.fitted.calibration.cheap)),
        Column("dear_cells", value=lambda calibrated: len(calibrated.fitted.calibration.expensive)),
        Column("drawn", value=f"{made}.drawn_groups"),
        Column("interval", value=lambda calibrated: "conformal" if calibrated.fitted.calibration.is_conformal else "process"),
        Column("uses_cheap", value=f"{made}.has_cheap"),
        Column("cheap_share", value=f"{made}.share"),
        Column("slope", value=f"{made}.slope"),
        Column("error", value=f"{made}.error"),
        Column("error_with_cheap", value=f"{made}.with_cheap.error"),
        Column("error_alone", value=f"{made}.alone.error"),
        Column("assured"),
        Column("shown", value=f"{made}.shown_coverage"),
        Column("half_width"),
        Column("unmeasured", value=lambda calibrated: len(calibrated.unmeasured)),
        Column("ratio_low", value=lambda calibrated: calibrated.ratios and calibrated.ratios[0]),
        Column("ratio_high", value=lambda calibrated: calibrated.ratios and calibrated.ratios[1]),
        Column("left_out", value=lambda calibrated: len(calibrated.inside)),
        Column("held", value=lambda calibrated: sum(held.is_held for held in calibrated.inside)),
        Column("groups_missed", value=lambda calibrated: calibrated.fitted.calibration.missed[0]),
        Column("groups", value=lambda calibrated: calibrated.fitted.calibration.missed[1]),
        Column("area", value="area.value"),
        Column("area_low", value="area.interval.low"),
        Column("area_high", value="area.interval.high"),
    )
    return Table("calibrations", "", "", columns, calibrations.responses)


def predictions(calibrations: Calibrations) -> Table:
    """Return a row a cell of the cheap testbed, for programs."""
    records = [_Of(calibrated, place) for calibrated in calibrations.responses for place in calibrated.cells]
    return _places(records, Column("cheap", value="place.cheap"), Column("dear", value="place.expensive"))


def predicted(calibrated: Calibrated, places: Sequence[Place], cheap: Sequence[float | None]) -> Table:
    """Return a row for each requested place; ``cheap``: the means of new runs there."""
    records = [_Of(calibrated, *of) for of in zip(places, cheap, strict=True)]
    return _places(records, *([Column("cheap")] if any(value is not None for value in cheap) else []))


_RESPONSE = Column("response", value="calibrated.response")


def _places(records: Sequence[_Of], *measured: Column) -> Table:
    columns = (Column(name, value=f"place.{name}") for name in ("value", "low", "high", "refused", "cut_at"))
    return Table("predictions", "", "", [*_levels(records), _RESPONSE, *measured, *columns], records)


def left_out(calibrations: Calibrations) -> Table:
    """Return a row for each cell of the expensive testbed, as predicted without its group, for programs."""
    records = [_Of(calibrated, held) for calibrated in calibrations.responses for held in calibrated.held]
    columns = (
        *_levels(records),
        _RESPONSE,
        *(Column(name, value=f"place.{name}") for name in ("measured", "value", "low", "high")),
        Column("held", value=lambda of: None if of.place.is_outside else of.place.is_held),
    )
    return Table("left_out", "", "", columns, records)


def _cells(calibrations: Calibrations, calibrated: Calibrated) -> Table:
    """Return the cells of one response, for readers."""
    scale = calibrated.scale

    def level(name: str) -> Callable[[Place], str]:
        return lambda place: level_text(place.levels[name])

    def scaled(value: float) -> str:
        return figure(value / scale.factor) or ""

    def interval(place: Place) -> str:
        low, high = (None if end is None else end / scale.factor for end in (place.low, place.high))
        return bounds(low, high)

    names = [factor.name for factor in calibrated.fitted.inputs]
    columns = [
        *(Column(head=name, value=level(name)) for name in names),
        Column(head=calibrations.cheap, unit=draw.named(scale), value="cheap", format=scaled),
        Column(head=f"{calibrations.expensive}, measured", value="expensive", format=scaled),
        Column(head="predicted", value="value", format=scaled),
        Column(head="interval", format="s", value=interval),
        Column(head="not predicted", format="s", value=lambda place: place.refused or ""),
    ]
    if any(place.cut_at is not None for place in calibrated.cells):
        columns.append(Column(head="cut at", value="cut_at", format=scaled))
    caption = f"Geometric means of runs, and predictions for {calibrations.expensive}."
    return Table("cells", f"{title(calibrated)}, cell by cell", caption, columns, calibrated.cells)


SEED = "By logistics and equating"


def _seed(calibrations: Calibrations, calibrated: Calibrated, kinds: Sequence[Kind]) -> Table:
    columns = (
        Column(head="at", value="name"),
        Column(head="half-width of the logistic", format=lambda value: percent(value) or "", value="half_width"),
        *(
            Column(head=head, format=lambda value: figure(value) or "", value=f"line.{name}")
            for name, head in (("offset", "equating line: offset"), ("factor", "factor"), ("error", "error about it"))
        ),
    )
    caption = (
        f"A logistic over ln {calibrated.fitted.by} for {calibrations.expensive} alone, with the interval of one new run, and "
        f"a line from {calibrations.cheap} to {calibrations.expensive} (section 3.2 of Quantifying Uncertainty in Emulations)."
    )
    return Table("seed", SEED, caption, columns, kinds)


def answer(calibrations: Calibrations, calibrated: Calibrated) -> str:
    """Return the ratio of the expensive testbed to the cheap one, and its precision."""
    if calibrated.ratios is None:
        return f"cannot predict {calibrations.expensive}: {calibrated.cells[0].refused}."
    low, high = (f"{ratio:.3g}" for ratio in calibrated.ratios)
    text = f"{calibrations.expensive} gives {low if low == high else f'{low} to {high}'} times as much as {calibrations.cheap}"
    if calibrated.half_width is None:
        return f"{text}. Every predicted cell was also measured on {calibrations.expensive}."
    number = amount(len(calibrated.unmeasured), "cell")
    level, half = share(calibrations.level), _share(calibrated.half_width)
    return f"{text}, predicted within ±{half} ({level} CI, median of {number} not measured there)."


def sentences(calibrations: Calibrations, calibrated: Calibrated) -> Iterator[str]:
    """Yield what was measured, and the evidence for the answer."""
    fitted, made = calibrated.fitted, calibrated.fitted.calibration
    names = joined([factor.name for factor in fitted.inputs])
    cells = f"{len(made.cheap)} cells of {names} on {calibrations.cheap}, {len(made.expensive)} on {calibrations.expensive}"
    yield f"Measured: {cells}."
    yield _choice(calibrations, calibrated)
    cut = [place.cut_at for place in calibrated.cells if place.cut_at is not None]
    if cut:
        scale = unit_scale(calibrated.unit, cut[:1])
        yield f"{amount(len(cut), 'prediction')} cut at {_most(cut[0], scale)}."
    if calibrated.area is not None:
        yield f"The area between both curves over ln {fitted.by} is {_area(calibrated.area)}, in logarithms."
        for other, area in calibrated.distances.items():
            yield f"{calibrations.cheap} is farther from {calibrations.expensive} than {other} is by {_area(area)}."
    if refused := [place.refused for place in calibrated.cells if place.refused is not None]:
        yield f"Cannot predict {len(refused)} of {len(calibrated.cells)} cells: {joined(list(dict.fromkeys(refused)))}."
    yield belief(calibrations, calibrated)
    yield from assurance(calibrations, calibrated)
    if calibrated.inside:
        held = f"{sum(left.is_held for left in calibrated.inside)} of {len(calibrated.inside)}"
        yield f"Check, one {fitted.by} left out at a time: {held} means lie in the intervals from the others."
    else:
        measured = f"others that were measured on {calibrations.expensive}"
        yield f"No prediction could be checked: no {fitted.by} lies between {measured}."


def _choice(calibrations: Calibrations, calibrated: Calibrated) -> str:
    """Return whether the cheap testbed is used, and why."""
    made = calibrated.fitted.calibration
    mixed, alone = made.with_cheap.error, made.alone.error
    if mixed is None or alone is None:
        return f"Cannot tell whether {calibrations.cheap} helps: no {calibrated.fitted.by} lies between others."
    mixed_share, alone_share = _share(mixed), _share(alone)
    without = f"by {alone_share} from {calibrations.expensive} alone"
    errors = f"left-out cells are missed by {mixed_share} with it, {without} (root mean square)"
    if not made.has_cheap:
        return f"{calibrations.cheap} does not help and is not used: {errors}."
    verdict = "helps" if made.share >= CLEAR else "is not shown to help"
    return (
        f"{calibrations.cheap} {verdict} and counts for {_share(made.share)}: {errors}. "
        f"Log {calibrations.expensive} rises by {made.slope:.2g} times log {calibrations.cheap}."
    )


def belief(calibrations: Calibrations, calibrated: Calibrated) -> str:
    """Return the kind of interval, and why it was chosen."""
    fitted, made = calibrated.fitted, calibrated.fitted.calibration
    missed, groups, _ = made.missed
    if made.is_conformal:
        drawn = f"{made.drawn_groups} levels of {fitted.by} drawn at random"
        text = f"Intervals are conformal, from {drawn}: they assume nothing about the curve"
        wide = f", and are wide because the process missed {missed} of {groups}" if made.is_doubted else ""
        return f"{text}{wide}."
    drawn = f"{made.drawn_groups} were drawn at random" if made.drawn_groups else "none was drawn at random"
    least, level = least_groups(calibrations.level), share(calibrations.level)
    needs = f"conformal ones need {least} random levels of {fitted.by} for {level}, and {drawn}"
    misses = f" {missed} of {groups} left-out levels lie outside" if made.is_disbelieved or made.is_doubted else ""
    refused = ", so no interval is given" if made.is_disbelieved else ""
    return f"Intervals come from the process; {needs}.{misses}{refused}{'.' if misses else ''}"


def assurance(calibrations: Calibrations, calibrated: Calibrated) -> Iterator[str]:
    """Yield the coverage of the process' intervals: with its assumption, and without it."""
    made = calibrated.fitted.calibration
    if made.is_conformal:
        return
    missed, groups, _ = made.missed
    text = f"Coverage: {share(calibrations.level)} if the curve has no step between two levels of {calibrated.fitted.by}"
    if calibrated.assured is not None:
        text += f"; {_share(calibrated.assured)} whatever the curve"
    if made.shown_coverage is not None:
        text += f"; at least {_share(made.shown_coverage)} by the check ({groups - missed} of {groups} left-out levels inside)"
    yield f"{text}."


def place_sentence(calibrations: Calibrations, calibrated: Calibrated, place: Place, *, one_run: bool) -> str:
    """Return the prediction of one place in a sentence."""
    where = cell_title(place.levels)
    if place.value is None or place.low is None or place.high is None:
        return f"{where}: cannot predict {calibrations.expensive}: {place.refused}."
    scale = unit_scale(calibrated.unit, [place.value])
    value, low, high = (f"{number / scale.factor:.4g}" for number in (place.value, place.low, place.high))
    interval = f"{share(calibrations.level)} CI of {'one run' if one_run else 'the mean'} {low} to {high}"
    cut = "" if place.cut_at is None else f", cut at {_most(place.cut_at, scale)}"
    return (
        f"{where}: {calibrated.title} of {calibrations.expensive} {value} {draw.named(scale)}".rstrip() + f" ({interval}{cut})."
    )


def next_sentences(tables: Tables, calibrations: Calibrations, chosen: Next, study: Path) -> Iterator[str]:
    """Yield the levels to measure next, and the command for it."""
    yield ""
    if not chosen.levels:
        yield f"Nothing to measure: nine of ten cells are within ±{_share(chosen.now)} already."
        return
    now = f"nine of ten cells are within ±{_share(chosen.now)} now"
    yield f"Measure next on {calibrations.expensive}, most useful first ({now}):"
    for level, half in zip(chosen.levels, chosen.half_widths, strict=True):
        yield f"  {chosen.by} {level_text(level)}: ±{_share(half)}"
    profile = tables.outline.data.get("profile")
    option = f" --profile {profile}" if profile else ""
    yield f"They take {duration(chosen.seconds)}. They are not random, so they improve the process, not the conformal interval."
    yield f"Written: {study}. Next: twinbed run {study}{option} -o {calibrations.source}"


def example(calibrations: Calibrations) -> str:
    """Return the options of a place that was measured on the cheap testbed alone."""
    first = calibrations.responses[0]
    predicted = [cell for cell in first.cells if cell.refused is None] or list(first.cells)
    place = next((cell for cell in predicted if cell.expensive is None), predicted[0])
    return " ".join(f"--{name} {level_text(level)}" for name, level in place.levels.items())


def _most(value: float, scale: UnitScale) -> str:
    return f"{value / scale.factor:.4g} {scale.unit}, the most that the link can carry"


def _area(area: Area) -> str:
    return f"{area.value:.2g}" + (f" ({area.interval.low:.2g} to {area.interval.high:.2g})" if area.interval else "")


def _share(part: float) -> str:
    """Return a share with two digits."""
    return share(float(f"{part:.2g}"))


LEVEL = 0.95


@dataclass(frozen=True, slots=True)
class Kind:
    """One combination of the levels of all other factors."""

    name: str
    half_width: float | None
    """The median interval of one new run by the logistic, as a share; None if it does not fit."""
    line: Equating | None
    """None if too few levels were measured on both testbeds."""


def equated(calibrated: Calibrated) -> Sequence[Kind]:
    """Return each kind by the LDRD report's own method, for comparison; empty without a logarithmic factor."""
    fitted = calibrated.fitted
    if not fitted.inputs[fitted.group].is_log:
        return ()
    others = [
        name for name in fitted.expensive.levels if name != fitted.by and name in {factor.name for factor in fitted.inputs}
    ]
    kinds = dict.fromkeys(tuple(fitted.expensive.levels[name][at] for name in others) for at in range(len(fitted.expensive)))
    return [_kind(calibrated, dict(zip(others, kind, strict=True))) for kind in kinds]


def _kind(calibrated: Calibrated, levels: dict[str, Level]) -> Kind:
    fitted = calibrated.fitted
    factor = fitted.inputs[fitted.group]
    expensive, cheap = fitted.expensive.only(levels), fitted.cheap.only(levels)
    at = np.array([math.log(factor.number(factor.scaled(level))) for level in expensive.levels[fitted.by]])
    half, line = None, None
    with suppress(NoFitError):
        rate, low, high = logistic_curve(at, np.array(expensive.values)).at(np.unique(at), LEVEL)
        half = float(np.median((high - low) / 2 / rate))
    cheap_means, expensive_means = (_means(runs.levels[fitted.by], runs.values) for runs in (cheap, expensive))
    both = [name for name in expensive_means if name in cheap_means]
    with suppress(ValueError):
        line = equating(np.array([cheap_means[name] for name in both]), np.array([expensive_means[name] for name in both]))
    return Kind(cell_title(levels) if levels else "all", half, line)


def _means(levels: Sequence[Level], values: Sequence[float]) -> dict[str, float]:
    by_level: dict[str, list[float]] = {}
    for level, value in zip(levels, values, strict=True):
        by_level.setdefault(level_text(level), []).append(value)
    return {name: fmean(own) for name, own in by_level.items()}
