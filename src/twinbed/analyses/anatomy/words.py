"""Write the anatomy as a section: what makes a testbed's requests longer, its steps, whose time they are, timers, packets."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from operator import attrgetter

from twinbed.analyses.anatomy import draw
from twinbed.analyses.anatomy.ladder_section import ladders
from twinbed.analyses.anatomy.patterns import percent
from twinbed.analyses.anatomy.patterns import sentence as pattern_sentence
from twinbed.analyses.anatomy.result import BETWEEN, TOTAL, Anatomy, Difference, Requests, StepTimes
from twinbed.analyses.anatomy.waits import AFTER, KINDS, Timer
from twinbed.model.result import Interval, Verdict
from twinbed.model.run import Level
from twinbed.show.numbers import joined
from twinbed.show.quantities import UnitScale, number, plus_minus, ratio_with_interval, share, unit_scale
from twinbed.show.section import Item, Section
from twinbed.show.table import Column, Of, Table, cell_columns
from twinbed.show.words import cell_title

TITLE = "Anatomy of a request"
MOST = 3
"""Steps that a sentence names."""
LEAST = 0.05
"""A step with less than this share of the difference is not named."""
SYMBOLS = {Verdict.EQUIVALENT: "= equivalent", Verdict.DIFFERENT: "≠ different", Verdict.INCONCLUSIVE: "? inconclusive"}
SHARES = (0.5, 0.9, 0.99)
TIMERS = (
    "The timers that ended waits, from packets alone: the share of requests that met one, and the mean wait. Steps include "
    "their waits. A delayed acknowledgment alone delays nothing."
)


def section(result: Anatomy) -> Section:
    """Return the section: the largest step, differences, then steps, timers, ladders and patterns."""
    items: list[Item] = [*_for_programs(result), tuple(sentences(result)), caption(result), *draw.waterfall(result)]
    items += [table for cell in result.cells if (table := _groups(result, cell)) is not None]
    items += [_steps(result, cell, at) for at, cell in enumerate(result.cells, start=1)]
    for at, cell in enumerate(result.cells, start=1):
        if (table := timers({group.testbed: group.timers for group in result.of(cell)}, result.titles)) is not None:
            items.append(Section(f"anatomy-timers-{at}", f"Timers{_at(cell)}", items=(table,), folded=True))
    items += ladders(result)
    patterns = [
        f"{_where(group.cell)}{pattern_sentence(group.testbed, group.patterns)}" for group in result.requests if group.patterns
    ]
    items.append(Section("anatomy-patterns", "Patterns of packets", items=(tuple(patterns),), folded=True))
    return Section("anatomy", TITLE, largest_step(result), items, kicker="Where the time of a request goes, step by step")


def _at(cell: Mapping[str, Level]) -> str:
    """Return the end of a title: the cell, if there are factors."""
    return f": {cell_title(cell)}" if cell else ""


def _where(cell: Mapping[str, Level]) -> str:
    return f"{cell_title(cell)}: " if cell else ""


def _for_programs(result: Anatomy) -> Iterator[Table]:
    """Yield the tables of differences, steps, groups of parts, patterns and timers."""
    yield _table(
        "differences",
        [*result.differences, *result.part_differences],
        attrgetter("cell"),
        *(Column(name) for name in ("testbed", "reference", "step")),
        Column("part_of", value=lambda difference: _part_of(difference.step)),
        Column("where", value=lambda difference: result.where.get(difference.step)),
        Column("seconds"),
        Column("seconds_low", value="interval.low"),
        Column("seconds_high", value="interval.high"),
        Column("ratio"),
        Column("low", value="ratio_interval.low"),
        Column("high", value="ratio_interval.high"),
        Column("paired"),
        Column("p_equivalent"),
        Column("p_different_holm", value="p_different"),
        Column("verdict", value=lambda difference: str(difference.verdict) if difference.verdict else None),
    )
    yield _table(
        "steps",
        [Of(group, times) for group in result.requests for times in (*group.times, *group.parts)],
        _CELL,
        _TESTBED,
        Column("runs", value="group.runs"),
        Column("requests", value="group.requests"),
        Column("step", value="item.step"),
        Column("part_of", value=lambda of: _part_of(of.item.step)),
        Column("where", value=lambda of: result.where.get(of.item.step)),
        Column("mean_s", value="item.mean"),
        Column("clock_bound_s", value=lambda of: of.item.bound or None),
        *_quantiles(),
    )
    yield _table(
        "groups",
        [Of(group, times) for group in result.requests if group.whole_s for times in group.groups],
        _CELL,
        _TESTBED,
        Column("requests", value="group.split"),
        Column("whose", value="item.step"),
        Column("mean_s", value="item.mean"),
        Column("share", value=lambda of: of.item.mean / of.group.whole_s),
        *_quantiles(),
    )
    yield _table(
        "patterns",
        [Of(group, pattern) for group in result.requests for pattern in group.patterns],
        _CELL,
        _TESTBED,
        Column("pattern", value="item.packets"),
        Column("late", value=lambda of: of.item.late or None),
        Column("silence_s", value="item.silence_s"),
        Column("share", value="item.share"),
    )
    met = [Of(group, timer) for group in result.requests for timer in group.timers]
    yield _table("timers", met, _CELL, _TESTBED, *(Column(name, value=f"item.{name}") for name in TIMER))


_CELL, _TESTBED = attrgetter("group.cell"), Column("testbed", value="group.testbed")
TIMER = ("kind", "whose", "step", "share", "waits", "mean_s")


def _table(key: str, records: Sequence[object], cell: Callable[[object], Mapping[str, Level]], *columns: Column) -> Table:
    return Table(key, "", "", [*cell_columns(records, cell), *columns], records).for_programs()


def _quantiles() -> Iterator[Column]:
    def quantile(part: float) -> Callable[[Of[Requests, StepTimes]], float | None]:
        return lambda of: of.item.quantiles.get(part)

    return (Column(f"p{100 * part:g}_s", value=quantile(part)) for part in SHARES)


def _part_of(step: str) -> str | None:
    """Return the step of a part; None for a step."""
    whole, _, part = step.rpartition(".")
    return whole if part != step else None


def _steps(result: Anatomy, cell: Mapping[str, Level], at: int) -> Section:
    """Return the steps of one cell: a table for each testbed, with the reference's times."""
    own = result.of(cell)
    others = [group for group in own if group.testbed != result.reference] or own
    tables = [_step_table(result, group, f"anatomy-{at}-{number}") for number, group in enumerate(others, start=1)]
    return Section(f"anatomy-steps-{at}", f"Steps{_at(cell)}", items=tables, folded=True, on_paper=True)


def _step_table(result: Anatomy, group: Requests, key: str) -> Table:
    """Return a row a step: its mean on the reference and on a testbed, how much longer it takes, ratio and verdict."""
    own = [side for side in result.of(group.cell) if side.testbed == result.reference != group.testbed] + [group]
    scale = unit_scale("s", [times.mean for side in own for times in side.times if times.step == TOTAL])
    names = {times.step for side in own for times in (*side.times, *side.parts)}
    steps = [name for step in result.titles for name in (step, *result.parts.get(step, ())) if name in names]
    columns = [Column(head="Step", value=lambda step: result.titles.get(step) or f"– {result.part_titles[step]}")]
    for side in own:
        every = (*side.times, *side.parts)
        means = {times.step: times.mean / scale.factor for times in every}
        columns.append(Column(head=side.testbed, unit=scale.unit, format=number, value=means.get))
        if any(times.bound for times in side.parts):  # a clock of its hosts is not the captures'
            bounds = {times.step: times.bound / scale.factor for times in every if times.bound}
            columns.append(Column(head="clock ±", format=number, value=bounds.get))
    if differences := result.differences_of(group.cell, group.testbed):
        columns += _against(differences, scale, share(round(1 - 2 * (1 - result.confidence), 4)))
    title = f"Steps of a request on {group.testbed}{f', {cell_title(group.cell)}' if group.cell else ''}"
    return Table(key, title, "", columns, steps)


def _against(differences: Mapping[str, Difference], scale: UnitScale, level: str) -> Iterator[Column]:
    longer, ratios, verdicts = dict[str, str](), dict[str, str](), dict[str, str]()
    for step, difference in differences.items():
        longer[step] = plus_minus(difference.seconds / scale.factor, _half(difference.interval, scale))
        bounds = (difference.ratio_interval.low, difference.ratio_interval.high) if difference.ratio_interval else (None, None)
        ratios[step] = ratio_with_interval(difference.ratio, *bounds)
        verdicts[step] = SYMBOLS[difference.verdict] if difference.verdict else ""
    yield Column(head="longer by", format=str, value=longer.get)
    yield Column(head=f"ratio [{level} CI]", format=str, value=ratios.get)
    yield Column(head="verdict", format=str, value=verdicts.get)


def _half(interval: Interval | None, scale: UnitScale) -> float | None:
    return (interval.high - interval.low) / 2 / scale.factor if interval else None


def _groups(result: Anatomy, cell: Mapping[str, Level]) -> Table | None:
    """Return the time and share of each group of parts on each testbed; None where no testbed has parts."""
    own = [group for group in result.of(cell) if group.groups]
    if not own:
        return None
    scale = unit_scale("s", [group.whole_s for group in own])
    columns = [Column(head="Whose time", value=str)]
    for group in own:
        means = {times.step: times.mean / scale.factor for times in group.groups}
        shares = {times.step: times.mean / group.whole_s for times in group.groups}
        columns.append(Column(head=group.testbed, unit=scale.unit, format=number, value=means.get))
        columns.append(Column(head="share", format=lambda part: share(round(part, 3)), value=shares.get))
    counts = ", ".join(f"{group.split} of {group.requests} on {group.testbed}" for group in own)
    text = f"Only requests whose steps all have their parts: {counts}."
    names = list(dict.fromkeys(times.step for group in own for times in group.groups))
    return Table("whose", f"Who uses the time of a request{_at(cell)}", text, columns, names)


def timers(of: Mapping[str, Sequence[Timer]], titles: Mapping[str, str]) -> Table | None:
    """Return a row a kind of wait and step, two columns a testbed; ``of``: testbed -> its own. None where there are none."""
    kinds, order = list(KINDS), [*titles, AFTER]
    places = {timer.place for own in of.values() for timer in own}
    if not places:
        return None
    columns = [
        Column(head="Timer", value=lambda place: KINDS[place[0]]),
        Column(head="host", value=lambda place: place[1]),
        Column(head="in the step", value=lambda place: titles.get(place[2], "after the request")),
    ]
    for testbed, own in of.items():
        shares = dict.fromkeys(places, percent(0)) | {timer.place: percent(timer.share) for timer in own}
        waits = {timer.place: 1e3 * float(f"{timer.mean_s:.3g}") for timer in own}
        columns.append(Column(head=f"{testbed}, requests" if testbed else "requests", format=str, value=shares.get))
        columns.append(Column(head="mean wait", unit="ms", format=number, value=waits.get))
    records = sorted(places, key=lambda place: (order.index(place[2]), kinds.index(place[0]), *place[1:]))
    return Table("met", "Timers", TIMERS, columns, records)


def caption(result: Anatomy) -> str:
    """Return how steps were measured, and how verdicts were reached."""
    views = {
        "both": "captured at both links by one clock",
        "apart": "captured at both hosts by two clocks. Both directions are added, so that the clocks' offset cancels",
        "client": "captured at the client's link alone. Everything behind it is one step",
    }
    how = "within blocks" if any(difference.paired for difference in result.differences) else "as independent runs"
    has_between = any(group.of(BETWEEN) for group in result.requests)
    closed = " The time between requests is the rest of the clients' time." if has_between else ""
    finer = (
        " Parts of steps (–) are means over the requests with every station, and have a correction of their own."
        if result.parts
        else ""
    )
    return (
        f"Means over runs, {views[result.seen]}. The steps add up to the request.{closed}{finer} "
        f"Differences have {share(result.confidence)} confidence intervals (CI). Verdicts compare ratios {how}, at a margin of "
        f"{share(result.margin)}."
    )


def largest_step(result: Anatomy) -> str:
    """Return the share of the largest step where a request differs most from the reference's: ``At payload 500B, 62 % of a
    request on e1000 is “server: request in, first byte out”; on container 31 %.``"""
    totals = [difference for difference in result.differences if difference.step == TOTAL and difference.ratio]
    most = max(totals, key=lambda difference: abs(math.log(difference.ratio or 1.0)), default=None)
    cell, testbed = (most.cell, most.testbed) if most else (result.requests[0].cell, result.requests[0].testbed)
    own = {group.testbed: group for group in result.of(cell)}
    steps = [times for times in own[testbed].times if times.step not in (TOTAL, BETWEEN)]
    step = max(steps, key=lambda times: times.mean).step
    parts = {name: _share_of(group, step) for name, group in own.items()}
    where = f"At {cell_title(cell)}, " if cell else ""
    text = f"{where}{parts.pop(testbed)} of a request on {testbed} is “{_title(result, step)}”"
    other = f"; on {most.reference} {parts[most.reference]}" if most else ""
    return f"{text}{other}."


def _share_of(group: Requests, step: str) -> str:
    own, whole = group.of(step), group.of(TOTAL)
    return share(round(own.mean / whole.mean, 2)) if own and whole and whole.mean else "0 %"


def sentences(result: Anatomy) -> Iterator[str]:
    """Yield one for each testbed and cell: ``payload 500B: a request takes 1.9 ± 0.2 ms longer on virtio than on container; 1.2
    ms more in “server: request in, first byte out”.``"""
    if not result.differences:
        yield "Nothing to compare: only one testbed has requests in its captures."
    for cell, testbed in result.compared:
        yield sentence(result, cell, testbed)


def sentence(result: Anatomy, cell: Mapping[str, Level], testbed: str) -> str:
    """Return how much longer a request takes, and in which steps."""
    own = {
        difference.step: difference
        for difference in result.differences
        if difference.cell == cell and difference.testbed == testbed
    }
    total, between = own.pop(TOTAL, None), own.pop(BETWEEN, None)
    if total is None:
        return ""
    if _is_clear(total):
        text = f"{_where(cell)}a request takes {_longer(total)} on {testbed} than on {total.reference}"
    else:
        scale = unit_scale("s", [total.seconds])
        size = f"{plus_minus(total.seconds / scale.factor, _half(total.interval, scale))} {scale.unit}"
        text = f"{_where(cell)}cannot tell whether a request takes longer on {testbed} than on {total.reference} ({size})"
    if named := _named(own.values()):
        text += f"; {joined([_part(result, difference) for difference in named])}"
    if finer := _named(result.parts_of(cell, testbed).values()):
        text += f"; on hosts, {joined([_part(result, difference) for difference in finer])}"
    if between is not None and _is_clear(between):
        text += f"; clients pause {_longer(between)} between requests"
    return text + "."


def _is_clear(difference: Difference) -> bool:
    """Return whether the interval of the difference does not hold 0."""
    return difference.interval is not None and (difference.interval.low > 0 or difference.interval.high < 0)


def _longer(difference: Difference) -> str:
    scale = unit_scale("s", [difference.seconds])
    half = _half(difference.interval, scale)
    word = "longer" if difference.seconds > 0 else "shorter"
    return f"{plus_minus(abs(difference.seconds) / scale.factor, half)} {scale.unit} {word}"


def _named(parts: Iterable[Difference]) -> list[Difference]:
    """Return the steps that make most of the difference, largest first."""
    every = list(parts)
    whole = sum(abs(difference.seconds) for difference in every)
    clear = [difference for difference in every if _is_clear(difference) and abs(difference.seconds) >= LEAST * whole]
    return sorted(clear, key=lambda difference: -abs(difference.seconds))[:MOST]


def _part(result: Anatomy, difference: Difference) -> str:
    scale = unit_scale("s", [difference.seconds])
    size = number(abs(difference.seconds) / scale.factor, _half(difference.interval, scale))
    return f"{size} {scale.unit} {'more' if difference.seconds > 0 else 'less'} in “{_title(result, difference.step)}”"


def _title(result: Anatomy, step: str) -> str:
    if step in result.titles:
        return result.titles[step]
    whole = next(whole for whole, parts in result.parts.items() if step in parts)
    return f"{result.part_titles[step]}” of “{result.titles[whole]}"
