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
        if (table := timers({each.testbed: each.timers for each in result.of(cell)}, result.titles)) is not None:
            items.append(Section(f"anatomy-timers-{at}", f"Timers{_at(cell)}", items=(table,), folded=True))
    items += ladders(result)
    patterns = [
        f"{_where(each.cell)}{pattern_sentence(each.testbed, each.patterns)}" for each in result.requests if each.patterns
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
        Column("part_of", value=lambda each: _part_of(each.step)),
        Column("where", value=lambda each: result.where.get(each.step)),
        Column("seconds"),
        Column("seconds_low", value="interval.low"),
        Column("seconds_high", value="interval.high"),
        Column("ratio"),
        Column("low", value="ratio_interval.low"),
        Column("high", value="ratio_interval.high"),
        Column("paired"),
        Column("p_equivalent"),
        Column("p_different_holm", value="p_different"),
        Column("verdict", value=lambda each: str(each.verdict) if each.verdict else None),
    )
    yield _table(
        "steps",
        [Of(each, times) for each in result.requests for times in (*each.times, *each.parts)],
        _CELL,
        _TESTBED,
        Column("runs", value="group.runs"),
        Column("requests", value="group.requests"),
        Column("step", value="each.step"),
        Column("part_of", value=lambda of: _part_of(of.each.step)),
        Column("where", value=lambda of: result.where.get(of.each.step)),
        Column("mean_s", value="each.mean"),
        Column("clock_bound_s", value=lambda of: of.each.bound or None),
        *_quantiles(),
    )
    yield _table(
        "groups",
        [Of(each, times) for each in result.requests if each.whole_s for times in each.groups],
        _CELL,
        _TESTBED,
        Column("requests", value="group.split"),
        Column("whose", value="each.step"),
        Column("mean_s", value="each.mean"),
        Column("share", value=lambda of: of.each.mean / of.group.whole_s),
        *_quantiles(),
    )
    yield _table(
        "patterns",
        [Of(each, pattern) for each in result.requests for pattern in each.patterns],
        _CELL,
        _TESTBED,
        Column("pattern", value="each.packets"),
        Column("late", value=lambda of: of.each.late or None),
        Column("silence_s", value="each.silence_s"),
        Column("share", value="each.share"),
    )
    met = [Of(each, timer) for each in result.requests for timer in each.timers]
    yield _table("timers", met, _CELL, _TESTBED, *(Column(name, value=f"each.{name}") for name in TIMER))


_CELL, _TESTBED = attrgetter("group.cell"), Column("testbed", value="group.testbed")
TIMER = ("kind", "whose", "step", "share", "waits", "mean_s")


def _table(key: str, records: Sequence[object], cell: Callable[[object], Mapping[str, Level]], *columns: Column) -> Table:
    return Table(key, "", "", [*cell_columns(records, cell), *columns], records).for_programs()


def _quantiles() -> Iterator[Column]:
    def quantile(part: float) -> Callable[[Of[Requests, StepTimes]], float | None]:
        return lambda of: of.each.quantiles.get(part)

    return (Column(f"p{100 * part:g}_s", value=quantile(part)) for part in SHARES)


def _part_of(step: str) -> str | None:
    """Return the step of a part; None for a step."""
    whole, _, part = step.rpartition(".")
    return whole if part != step else None


def _steps(result: Anatomy, cell: Mapping[str, Level], at: int) -> Section:
    """Return the steps of one cell: a table for each testbed, with the reference's times."""
    own = result.of(cell)
    others = [each for each in own if each.testbed != result.reference] or own
    tables = [_step_table(result, each, f"anatomy-{at}-{number}") for number, each in enumerate(others, start=1)]
    return Section(f"anatomy-steps-{at}", f"Steps{_at(cell)}", items=tables, folded=True, on_paper=True)


def _step_table(result: Anatomy, each: Requests, key: str) -> Table:
    """Return a row a step: its mean on the reference and on a testbed, how much longer it takes, ratio and verdict."""
    own = [one for one in result.of(each.cell) if one.testbed == result.reference != each.testbed] + [each]
    scale = unit_scale("s", [times.mean for one in own for times in one.times if times.step == TOTAL])
    there = {times.step for one in own for times in (*one.times, *one.parts)}
    steps = [name for step in result.titles for name in (step, *result.parts.get(step, ())) if name in there]
    columns = [Column(head="Step", value=lambda step: result.titles.get(step) or f"– {result.part_titles[step]}")]
    for one in own:
        every = (*one.times, *one.parts)
        means = {times.step: times.mean / scale.factor for times in every}
        columns.append(Column(head=one.testbed, unit=scale.unit, format=number, value=means.get))
        if any(times.bound for times in one.parts):  # a clock of its hosts is not the captures'
            bounds = {times.step: times.bound / scale.factor for times in every if times.bound}
            columns.append(Column(head="clock ±", format=number, value=bounds.get))
    if differences := result.differences_of(each.cell, each.testbed):
        columns += _against(differences, scale, share(round(1 - 2 * (1 - result.confidence), 4)))
    title = f"Steps of a request on {each.testbed}{f', {cell_title(each.cell)}' if each.cell else ''}"
    return Table(key, title, "", columns, steps)


def _against(differences: Mapping[str, Difference], scale: UnitScale, level: str) -> Iterator[Column]:
    longer, ratios, verdicts = dict[str, str](), dict[str, str](), dict[str, str]()
    for step, each in differences.items():
        longer[step] = plus_minus(each.seconds / scale.factor, _half(each.interval, scale))
        bounds = (each.ratio_interval.low, each.ratio_interval.high) if each.ratio_interval else (None, None)
        ratios[step] = ratio_with_interval(each.ratio, *bounds)
        verdicts[step] = SYMBOLS[each.verdict] if each.verdict else ""
    yield Column(head="longer by", format=str, value=longer.get)
    yield Column(head=f"ratio [{level} CI]", format=str, value=ratios.get)
    yield Column(head="verdict", format=str, value=verdicts.get)


def _half(interval: Interval | None, scale: UnitScale) -> float | None:
    return (interval.high - interval.low) / 2 / scale.factor if interval else None


def _groups(result: Anatomy, cell: Mapping[str, Level]) -> Table | None:
    """Return the time and share of each group of parts on each testbed; None where no testbed has parts."""
    own = [each for each in result.of(cell) if each.groups]
    if not own:
        return None
    scale = unit_scale("s", [each.whole_s for each in own])
    columns = [Column(head="Whose time", value=str)]
    for each in own:
        means = {times.step: times.mean / scale.factor for times in each.groups}
        shares = {times.step: times.mean / each.whole_s for times in each.groups}
        columns.append(Column(head=each.testbed, unit=scale.unit, format=number, value=means.get))
        columns.append(Column(head="share", format=lambda part: share(round(part, 3)), value=shares.get))
    counts = ", ".join(f"{each.split} of {each.requests} on {each.testbed}" for each in own)
    text = f"Only requests whose steps all have their parts: {counts}."
    names = list(dict.fromkeys(times.step for each in own for times in each.groups))
    return Table("whose", f"Who uses the time of a request{_at(cell)}", text, columns, names)


def timers(of: Mapping[str, Sequence[Timer]], titles: Mapping[str, str]) -> Table | None:
    """Return a row a kind of wait and step, two columns a testbed; ``of``: testbed -> its own. None where there are none."""
    kinds, order = list(KINDS), [*titles, AFTER]
    places = {each.place for own in of.values() for each in own}
    if not places:
        return None
    columns = [
        Column(head="Timer", value=lambda place: KINDS[place[0]]),
        Column(head="host", value=lambda place: place[1]),
        Column(head="in the step", value=lambda place: titles.get(place[2], "after the request")),
    ]
    for testbed, own in of.items():
        shares = dict.fromkeys(places, percent(0)) | {each.place: percent(each.share) for each in own}
        waits = {each.place: 1e3 * float(f"{each.mean_s:.3g}") for each in own}
        columns.append(Column(head=f"{testbed}, requests" if testbed else "requests", format=str, value=shares.get))
        columns.append(Column(head="mean wait", unit="ms", format=number, value=waits.get))
    records = sorted(places, key=lambda place: (order.index(place[2]), kinds.index(place[0]), *place[1:]))
    return Table("met", "Timers", TIMERS, columns, records)


def caption(result: Anatomy) -> str:
    """Return how steps were measured, and how verdicts were reached."""
    views = {
        "both": "captured at both links by one clock",
        "apart": "captured at both hosts by two clocks. Ways there and back are added, so that the clocks cancel",
        "client": "captured at the client's link alone. Everything behind it is one step",
    }
    how = "within blocks" if any(each.paired for each in result.differences) else "as independent runs"
    has_between = any(each.of(BETWEEN) for each in result.requests)
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
    totals = [each for each in result.differences if each.step == TOTAL and each.ratio]
    most = max(totals, key=lambda each: abs(math.log(each.ratio or 1.0)), default=None)
    cell, testbed = (most.cell, most.testbed) if most else (result.requests[0].cell, result.requests[0].testbed)
    own = {each.testbed: each for each in result.of(cell)}
    steps = [each for each in own[testbed].times if each.step not in (TOTAL, BETWEEN)]
    step = max(steps, key=lambda each: each.mean).step
    parts = {name: _share_of(each, step) for name, each in own.items()}
    where = f"At {cell_title(cell)}, " if cell else ""
    text = f"{where}{parts.pop(testbed)} of a request on {testbed} is “{_title(result, step)}”"
    other = f"; on {most.reference} {parts[most.reference]}" if most else ""
    return f"{text}{other}."


def _share_of(each: Requests, step: str) -> str:
    own, whole = each.of(step), each.of(TOTAL)
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
    own = {each.step: each for each in result.differences if each.cell == cell and each.testbed == testbed}
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
        text += f"; {joined([_part(result, each) for each in named])}"
    if finer := _named(result.parts_of(cell, testbed).values()):
        text += f"; on hosts, {joined([_part(result, each) for each in finer])}"
    if between is not None and _is_clear(between):
        text += f"; clients pause {_longer(between)} between requests"
    return text + "."


def _is_clear(each: Difference) -> bool:
    """Return whether the interval of the difference does not hold 0."""
    return each.interval is not None and (each.interval.low > 0 or each.interval.high < 0)


def _longer(each: Difference) -> str:
    scale = unit_scale("s", [each.seconds])
    half = _half(each.interval, scale)
    word = "longer" if each.seconds > 0 else "shorter"
    return f"{plus_minus(abs(each.seconds) / scale.factor, half)} {scale.unit} {word}"


def _named(parts: Iterable[Difference]) -> list[Difference]:
    """Return the steps that make most of the difference, largest first."""
    every = list(parts)
    whole = sum(abs(each.seconds) for each in every)
    clear = [each for each in every if _is_clear(each) and abs(each.seconds) >= LEAST * whole]
    return sorted(clear, key=lambda each: -abs(each.seconds))[:MOST]


def _part(result: Anatomy, each: Difference) -> str:
    scale = unit_scale("s", [each.seconds])
    size = number(abs(each.seconds) / scale.factor, _half(each.interval, scale))
    return f"{size} {scale.unit} {'more' if each.seconds > 0 else 'less'} in “{_title(result, each.step)}”"


def _title(result: Anatomy, step: str) -> str:
    if step in result.titles:
        return result.titles[step]
    whole = next(whole for whole, parts in result.parts.items() if step in parts)
    return f"{result.part_titles[step]}” of “{result.titles[whole]}"
