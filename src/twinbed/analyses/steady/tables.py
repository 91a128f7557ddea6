"""Steady states as rows for programs, and as a table for readers."""

from __future__ import annotations

from twinbed.analyses.steady.result import Budget, Share, SteadyStates
from twinbed.render.tabular import Tabular
from twinbed.show.quantities import NONE, duration, share, two_digits
from twinbed.show.table import Row
from twinbed.show.words import cell_title

BUDGET = ("deviation", "within", "between", "best_seconds", "seconds", "runs_an_hour", "error_in_an_hour")
MEANS = {True: "yes", False: "no", None: "undecided"}


def rows(result: SteadyStates) -> list[Row]:
    """A row a cell and testbed."""
    return [
        {
            **each.cell,
            "testbed": each.testbed,
            "runs": each.runs,
            "seconds": each.seconds,
            "overhead_seconds": each.overhead_s,
            "cut": each.cut,
            **_share("warm_up", each.warm_up),
            **_share("drift", each.drift),
            "settles": each.settles,
            "astray": each.astray.run if each.astray else None,
            "astray_drift": each.astray.drift if each.astray else None,
            **{name: getattr(each.budget, name) if each.budget else None for name in BUDGET},
        }
        for each in result.cells
    ]


def _share(name: str, of: Share) -> Row:
    low, high = (of.interval.low, of.interval.high) if of.interval else (None, None)
    return {name: of.mean, f"{name}_low": low, f"{name}_high": high, f"{name}_shown": of.shown}


def series_rows(result: SteadyStates) -> list[Row]:
    """A row a part of the time."""
    return [
        {**each.cell, "testbed": each.testbed, "at": (at + 0.5) / len(each.series), "rate": rate, "least": least, "most": most}
        for each in result.cells
        for at, (rate, least, most) in enumerate(zip(each.series, each.least, each.most, strict=True))
    ]


def table(result: SteadyStates) -> Tabular:
    """A row a cell and testbed, with shares in per cent."""
    heads = (
        "Cell",
        "Testbed",
        "runs",
        "of",
        "warm-up",
        "without it",
        "drift",
        "settles",
        "sd of runs",
        "inside",
        "between",
        "an hour",
    )
    lines = [
        (
            cell_title(each.cell),
            each.testbed,
            str(each.runs),
            duration(each.seconds),
            f"{100 * each.cut:.0f} %" if each.warm_up.shown else NONE,
            _text(each.warm_up) if each.warm_up.shown else NONE,
            _text(each.drift),
            f"{MEANS[each.settles]}{', one not' if each.astray and each.settles is not False else ''}",
            *_budget(each.budget),
        )
        for each in result.cells
    ]
    return Tabular("Inside runs", caption(result), heads, tuple(lines), texts=2)


def _text(of: Share) -> str:
    """``+4.1 % [1.2, 7.0]``."""
    bounds = f" [{two_digits(100 * of.interval.low, '+')}, {two_digits(100 * of.interval.high, '+')}]" if of.interval else ""
    return f"{two_digits(100 * of.mean, '+')} %{bounds}"


def _budget(budget: Budget | None) -> tuple[str, ...]:
    if budget is None:
        return (NONE,) * 4
    parts = (f"{two_digits(100 * value)} %" for value in (budget.deviation, budget.within, budget.between))
    return (*parts, f"{budget.runs_an_hour:,} of {duration(budget.seconds)}: ±{two_digits(200 * budget.error_in_an_hour)} %")


def caption(result: SteadyStates) -> str:
    of = {"exchanges": "answers a second, by captures", "intervals": "iperf3's intervals"}[result.source]
    return (
        f"The rate inside runs ({of}). Warm-up: the share of a run that MSER-5 cuts off, and by how much the mean is more "
        "without it, where that is shown. Drift: from the middle of runs to their end, with its interval. Runs settle where "
        f"that rules out a drift of more than {share(result.margin)}; they do not where it shows one. The deviation of "
        "runs' means is split into what is inside runs and what comes between them. An hour: how many runs of which length fit "
        "into it for the least error of their mean, with what a run takes besides, and two standard errors of that mean."
    )


def sentence(result: SteadyStates) -> str:
    """Which cells are in no steady state, and where the warm-up matters."""
    unsettled = [each for each in result.cells if each.settles is False]
    astray = [each for each in result.cells if each.astray and each.settles is not False]
    warm = [each for each in result.cells if each.warm_up.shown and abs(each.warm_up.mean) > result.margin / 10]
    parts = []
    if unsettled:
        parts.append(f"in {len(unsettled)} of {len(result.cells)} cells runs never settle")
    if astray:
        parts.append(f"in {len(astray)} of {len(result.cells)} cells one run drifts unlike the others")
    if warm:
        most = max(warm, key=lambda each: abs(each.warm_up.mean))
        where = f" at {cell_title(most.cell)}" if most.cell else ""
        parts.append(
            f"in {len(warm)} of {len(result.cells)} cells the warm-up moves the mean, most on {most.testbed}{where}: "
            f"{_text(most.warm_up)} without it"
        )
    text = "; ".join(parts) or f"no cell is shown to drift by more than {share(result.margin)}, or to warm up"
    return f"{text[0].upper()}{text[1:]}."
