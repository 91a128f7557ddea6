"""Steady states as a section: a sentence, a row for each cell and testbed, and the rate over time."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from twinbed.analyses.steady import draw
from twinbed.analyses.steady.result import Share, Steady, SteadyStates
from twinbed.show.quantities import NONE, duration, share, two_digits
from twinbed.show.section import Section
from twinbed.show.table import Column, Table, cell_columns, plain
from twinbed.show.words import at_cell, heading

SETTLES = {True: "yes", False: "no", None: "undecided"}
SOURCES = {"exchanges": "answers a second, by captures", "intervals": "iperf3's intervals"}


def section(result: SteadyStates) -> Section:
    """Return what there is to say of the rate inside runs."""
    items = (cells(result), series(result), *draw.over_time(result.cells))
    kicker = "Warm-up, drift, and how long runs should last"
    return Section("steady", "Inside runs", sentence(result), items, kicker=kicker)


def cells(result: SteadyStates) -> Table:
    """Return a row a cell and testbed."""
    columns = (
        *cell_columns(result.cells),
        Column("testbed", "Testbed"),
        Column("runs", "runs", format="d"),
        # Programs get that of the runs that are proposed.
        Column("seconds", value="budget.seconds"),
        Column(head="of", value="seconds", format=duration),
        Column("overhead_seconds", value="overhead_s"),
        Column("cut"),
        Column(head="warm-up", format="s", value=lambda each: f"{100 * each.cut:.0f} %" if each.warm_up.shown else NONE),
        *_share("warm_up"),
        Column(head="without it", format="s", value=lambda each: _text(each.warm_up) if each.warm_up.shown else NONE),
        *_share("drift"),
        Column(head="drift", format=_text, value="drift"),
        Column("settles"),
        Column(head="settles", format="s", value=_settles),
        Column("astray", value="astray.run"),
        Column("astray_drift", value="astray.drift"),
        Column("deviation", "sd of runs", value="budget.deviation", format=_percent),
        Column("within", "inside", value="budget.within", format=_percent),
        Column("between", "between", value="budget.between", format=_percent),
        Column("best_seconds", value="budget.best_seconds"),
        Column("runs_an_hour", value="budget.runs_an_hour"),
        Column("error_in_an_hour", value="budget.error_in_an_hour"),
        Column(head="an hour", format="s", value=_hour),
    )
    return Table("cells", "Inside runs", _caption(result), columns, result.cells)


def _share(name: str) -> Iterator[Column]:
    yield Column(name, value=f"{name}.mean")
    yield Column(f"{name}_low", value=f"{name}.interval.low")
    yield Column(f"{name}_high", value=f"{name}.interval.high")
    yield Column(f"{name}_shown", value=f"{name}.shown")


def _text(of: Share) -> str:
    """Return ``+4.1 % [1.2, 7.0]``."""
    bounds = f" [{two_digits(100 * of.interval.low, '+')}, {two_digits(100 * of.interval.high, '+')}]" if of.interval else ""
    return f"{two_digits(100 * of.mean, '+')} %{bounds}"


def _percent(value: float) -> str:
    return f"{two_digits(100 * value)} %"


def _settles(each: Steady) -> str:
    return f"{SETTLES[each.settles]}{', one not' if each.astray and each.settles is not False else ''}"


def _hour(each: Steady) -> str | None:
    if (budget := each.budget) is None:
        return None
    return f"{budget.runs_an_hour:,} of {duration(budget.seconds)}: ±{_percent(2 * budget.error_in_an_hour)}"


def series(result: SteadyStates) -> Table:
    """Return a row a part of the time, for programs."""
    rows = [
        {**each.cell, "testbed": each.testbed, "at": (at + 0.5) / len(each.series), "rate": rate, "least": least, "most": most}
        for each in result.cells
        for at, (rate, least, most) in enumerate(zip(each.series, each.least, each.most, strict=True))
    ]
    return plain("series", rows)


def _caption(result: SteadyStates) -> str:
    return (
        f"The rate inside runs ({SOURCES[result.source]}). Warm-up: the share of a run that MSER-5 cuts off, and by how much "
        "the mean is more without it, where that is shown. Drift: from the middle of runs to their end, with its interval. "
        f"Runs settle where that rules out a drift of more than {share(result.margin)}; they do not where it shows one. The "
        "deviation of runs' means is split into what is inside runs and what comes between them. An hour: how many runs of "
        "which length fit into it for the least error of their mean, with what a run takes besides, and two standard errors of "
        "that mean."
    )


def sentence(result: SteadyStates) -> str:
    """Return which cells are in no steady state, and where the warm-up matters."""
    parts = []

    def count(said: str, holds: Callable[[Steady], bool]) -> list[Steady]:
        found = [each for each in result.cells if holds(each)]
        if found:
            parts.append(f"in {len(found)} of {len(result.cells)} cells {said}")
        return found

    count("runs never settle", lambda each: each.settles is False)
    count("one run drifts unlike the others", lambda each: each.astray is not None and each.settles is not False)
    moved = "the warm-up moves the mean"
    if warm := count(moved, lambda each: each.warm_up.shown and abs(each.warm_up.mean) > result.margin / 10):
        most = max(warm, key=lambda each: abs(each.warm_up.mean))
        parts[-1] += f", most on {most.testbed}{at_cell(most.cell)}: {_text(most.warm_up)} without it"
    nothing = f"no cell is shown to drift by more than {share(result.margin)}, or to warm up"
    return f"{heading('; '.join(parts) or nothing)}."
