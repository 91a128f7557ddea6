"""The steps of requests as rows for programs, and as tables for readers."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from twinbed.analyses.anatomy.patterns import percent
from twinbed.analyses.anatomy.result import BETWEEN, TOTAL, Anatomy, Difference, Requests
from twinbed.analyses.anatomy.waits import AFTER, KINDS, Timer
from twinbed.model.result import Verdict
from twinbed.model.run import Level
from twinbed.render.tabular import Tabular
from twinbed.show.quantities import UnitScale, number, plus_minus, ratio_with_interval, share, unit_scale
from twinbed.show.table import Row

SYMBOLS = {Verdict.EQUIVALENT: "= equivalent", Verdict.DIFFERENT: "≠ different", Verdict.INCONCLUSIVE: "? inconclusive"}


def difference_rows(result: Anatomy) -> list[Row]:
    """A row a step, cell and testbed but the reference."""
    return [
        {
            **each.cell,
            "testbed": each.testbed,
            "reference": each.reference,
            "step": each.step,
            "part_of": _part_of(each.step),
            "where": result.where.get(each.step),
            "seconds": each.seconds,
            "seconds_low": each.interval.low if each.interval else None,
            "seconds_high": each.interval.high if each.interval else None,
            "ratio": each.ratio,
            "low": each.ratio_interval.low if each.ratio_interval else None,
            "high": each.ratio_interval.high if each.ratio_interval else None,
            "paired": each.paired,
            "p_equivalent": each.p_equivalent,
            "p_different_holm": each.p_different,
            "verdict": str(each.verdict) if each.verdict else None,
        }
        for each in (*result.differences, *result.part_differences)
    ]


def _part_of(step: str) -> str | None:
    """The step that it is a part of."""
    whole, _, part = step.rpartition(".")
    return whole if part != step else None


def step_rows(result: Anatomy) -> list[Row]:
    """A row a step, cell and testbed, the reference's too."""
    return [
        {
            **each.cell,
            "testbed": each.testbed,
            "runs": each.runs,
            "requests": each.requests,
            "step": times.step,
            "part_of": _part_of(times.step),
            "where": result.where.get(times.step),
            "mean_s": times.mean,
            "clock_bound_s": times.bound or None,
            **{f"p{100 * share:g}_s": times.quantiles.get(share) for share in (0.5, 0.9, 0.99)},
        }
        for each in result.requests
        for times in (*each.times, *each.parts)
    ]


def group_rows(result: Anatomy) -> list[Row]:
    """A row a cell, testbed and group of parts: whose time a request's is."""
    return [
        {
            **each.cell,
            "testbed": each.testbed,
            "requests": each.split,
            "whose": times.step,
            "mean_s": times.mean,
            "share": times.mean / total,
            **{f"p{100 * share:g}_s": times.quantiles.get(share) for share in (0.5, 0.9, 0.99)},
        }
        for each in result.requests
        if (total := sum(times.mean for times in each.groups))
        for times in each.groups
    ]


def pattern_rows(result: Anatomy) -> list[Row]:
    """A row a pattern of packets, cell and testbed."""
    return [
        {
            **each.cell,
            "testbed": each.testbed,
            "pattern": pattern.packets,
            "late": pattern.late or None,
            "silence_s": pattern.silence_s,
            "share": pattern.share,
        }
        for each in result.requests
        for pattern in each.patterns
    ]


def timer_rows(result: Anatomy) -> list[Row]:
    """A row a kind of wait, whose it is and the step in which it lies, of a cell and testbed."""
    return [{**each.cell, "testbed": each.testbed, **timer_row(timer)} for each in result.requests for timer in each.timers]


def timer_row(timer: Timer) -> Row:
    return {
        "kind": timer.kind,
        "whose": timer.whose,
        "step": timer.step,
        "share": timer.share,
        "waits": timer.waits,
        "mean_s": timer.mean_s,
    }


def timer_table(timers: Mapping[str, Sequence[Timer]], titles: Mapping[str, str]) -> Tabular | None:
    """A row a kind of wait and step, two columns a testbed; ``timers``: testbed -> its own. None where there are none."""
    kinds = list(KINDS)
    places = {(kinds.index(each.kind), each.whose, each.step) for of_testbed in timers.values() for each in of_testbed}
    if not places:
        return None
    order = [*titles, AFTER]
    rows = []
    for kind, whose, step in sorted(places, key=lambda place: (order.index(place[2]), *place)):
        cells: list[str | None] = [KINDS[kinds[kind]], whose, titles.get(step, "after it")]
        for of_testbed in timers.values():
            found = [each for each in of_testbed if (each.kind, each.whose, each.step) == (kinds[kind], whose, step)]
            cells += [percent(found[0].share), number(1e3 * float(f"{found[0].mean_s:.3g}"))] if found else [percent(0), None]
        rows.append(tuple(cells))
    of_each = [head for testbed in timers for head in (f"{testbed}, requests" if testbed else "requests", "mean wait, ms")]
    caption = (
        "What ended waits, by packets alone: share of requests that met it, and how long the wait was. Waits lie in steps, not"
        " beside them. A delayed acknowledgment alone holds nobody up."
    )
    return Tabular("Timers", caption, ("Timer", "whose", "in the step", *of_each), tuple(rows))


def timers_of(result: Anatomy, cell: Mapping[str, Level]) -> Tabular | None:
    """Those of one cell."""
    return timer_table({each.testbed: each.timers for each in result.requests if each.cell == cell}, result.titles)


def places(result: Anatomy) -> list[Mapping[str, Level]]:
    """The cells, in order."""
    found: list[Mapping[str, Level]] = []
    for each in result.requests:
        if each.cell not in found:
            found.append(each.cell)
    return found


def step_table(result: Anatomy, cell: Mapping[str, Level], testbed: str | None = None) -> Tabular:
    """One cell: a row a step, a column a testbed, and beside each but the reference how much longer it takes. ``testbed``: only
    that one and the reference, for narrow pages."""
    wanted = {testbed, result.reference}
    own = [each for each in result.requests if each.cell == cell and (testbed is None or each.testbed in wanted)]
    scale = unit_scale("s", [times.mean for each in own for times in each.times if times.step == TOTAL])
    heads = ["Step"]
    for each in own:
        heads.append(f"{each.testbed}, {scale.unit}")
        if _bounded(each):
            heads.append("clock ±")
        if _differences(result, each):
            heads += ["longer by", f"ratio [{_level(result)} interval]", "verdict"]
    rows = tuple(_row(result, own, step, scale) for step in _steps(result, own))
    return Tabular("Steps of a request", caption(result), tuple(heads), rows)


def _steps(result: Anatomy, own: Sequence[Requests]) -> list[str]:
    """In the order of a request; the total and what lies between requests last."""
    there = {times.step for each in own for times in (*each.times, *each.parts)}
    return [each for step in result.titles for each in (step, *result.parts.get(step, ())) if each in there]


def _bounded(each: Requests) -> bool:
    """A clock of its hosts is not the captures'."""
    return any(times.bound for times in each.parts)


def _row(result: Anatomy, own: Sequence[Requests], step: str, scale: UnitScale) -> tuple[str | None, ...]:
    cells: list[str | None] = [result.titles.get(step) or f"– {result.part_titles[step]}"]
    for each in own:
        times = each.of(step)
        cells.append(number(times.mean / scale.factor) if times else None)
        if _bounded(each):
            cells.append(number(times.bound / scale.factor) if times and times.bound else None)
        if differences := _differences(result, each):
            cells += _against(differences.get(step), scale)
    return tuple(cells)


def _differences(result: Anatomy, each: Requests) -> dict[str, Difference]:
    own = (other for other in result.differences if other.cell == each.cell and other.testbed == each.testbed)
    return {other.step: other for other in own} | result.parts_of(each.cell, each.testbed)


def group_table(result: Anatomy, cell: Mapping[str, Level]) -> Tabular | None:
    """One cell: a row a group of parts, for each testbed its time and its share; None where no testbed has parts."""
    own = [each for each in result.requests if each.cell == cell and each.groups]
    if not own:
        return None
    scale = unit_scale("s", [sum(times.mean for times in each.groups) for each in own])
    names = list(dict.fromkeys(times.step for each in own for times in each.groups))
    heads = ["Whose time", *(head for each in own for head in (f"{each.testbed}, {scale.unit}", "share"))]
    rows = []
    for name in names:
        cells: list[str | None] = [name]
        for each in own:
            total = sum(times.mean for times in each.groups)
            mean = next((times.mean for times in each.groups if times.step == name), None)
            cells += [None, None] if mean is None else [number(mean / scale.factor), share(round(mean / total, 3))]
        rows.append(tuple(cells))
    counts = ", ".join(f"{each.split} of {each.requests} on {each.testbed}" for each in own)
    return Tabular(
        "Whose time a request's is", f"Of the requests whose steps all have their parts: {counts}.", tuple(heads), tuple(rows)
    )


def _against(difference: Difference | None, scale: UnitScale) -> list[str | None]:
    if difference is None:
        return [None, None, None]
    interval = difference.interval
    half = (interval.high - interval.low) / 2 / scale.factor if interval else None
    ratio = difference.ratio_interval
    bounds = (ratio.low, ratio.high) if ratio else (None, None)
    verdict = SYMBOLS[difference.verdict] if difference.verdict else None
    return [plus_minus(difference.seconds / scale.factor, half), ratio_with_interval(difference.ratio, *bounds), verdict]


def _level(result: Anatomy) -> str:
    return share(round(1 - 2 * (1 - result.confidence), 4))


def caption(result: Anatomy) -> str:
    views = {
        "both": "seen at both links by one clock",
        "apart": "seen at both hosts by a clock each: ways there and back are taken together, in which the clocks cancel",
        "client": "seen at the client's link alone: what lies behind it is one step",
    }
    how = "within blocks" if any(each.paired for each in result.differences) else "as of independent runs"
    closed = " What lies between requests is the rest of the clients' time." if _has_between(result) else ""
    finer = (
        " Parts of steps (–) are means over the requests of which every station was seen, and have a correction of their own."
        if result.parts
        else ""
    )
    return (
        f"Means over runs, {views[result.seen]}. The steps add up to the request.{closed}{finer} "
        f"Differences have {share(result.confidence)} intervals; verdicts are on ratios at a margin of {share(result.margin)}, "
        f"{how}."
    )


def _has_between(result: Anatomy) -> bool:
    return any(each.of(BETWEEN) for each in result.requests)
