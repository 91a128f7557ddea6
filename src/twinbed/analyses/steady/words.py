"""Write steady states as a section: a sentence, a row for each cell and testbed, and the rate over time."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from twinbed.analyses.steady import draw
from twinbed.analyses.steady.result import Share, Steady, SteadyStates
from twinbed.show.quantities import NONE, duration, share, two_digits
from twinbed.show.section import Section
from twinbed.show.table import Column, Table, cell_columns, plain
from twinbed.show.words import at_cell, heading

SETTLES = {True: "yes", False: "no", None: "cannot tell"}
SOURCES = {"exchanges": "answers a second, from captures", "intervals": "iperf3's intervals", "requests": "requests a second"}


def section(result: SteadyStates) -> Section:
    """Return the section of the rate inside runs."""
    items = (cells(result), series(result), *draw.over_time(result.cells))
    kicker = "Warm-up, drift, and how long runs should last"
    return Section("steady", "Inside runs", sentence(result), items, kicker=kicker)


def cells(result: SteadyStates) -> Table:
    """Return a row a cell and testbed."""
    columns = (
        *cell_columns(result.cells),
        Column("testbed", "Testbed"),
        Column("runs", "runs", format="d"),
        # Programs get the length of the proposed runs.
        Column("seconds", value="budget.seconds"),
        Column(head="length", value="seconds", format=duration),
        Column("overhead_seconds", value="overhead_s"),
        Column("cut"),
        Column(head="warm-up", format="s", value=lambda state: f"{100 * state.cut:.0f} %" if state.warm_up.shown else NONE),
        *_share("warm_up"),
        Column(head="mean without it", format="s", value=lambda state: _text(state.warm_up) if state.warm_up.shown else NONE),
        *_share("drift"),
        Column(head="drift", format=_text, value="drift"),
        Column("settles"),
        Column(head="settles", format="s", value=_settles),
        Column("astray", value="astray.run"),
        Column("astray_drift", value="astray.drift"),
        Column("deviation", "sd of runs", value="budget.deviation", format=_percent),
        Column("within", "inside runs", value="budget.within", format=_percent),
        Column("between", "between runs", value="budget.between", format=_percent),
        Column("best_seconds", value="budget.best_seconds"),
        Column("runs_an_hour", value="budget.runs_an_hour"),
        Column("error_in_an_hour", value="budget.error_in_an_hour"),
        Column(head="best use of an hour", format="s", value=_hour),
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


def _settles(state: Steady) -> str:
    return f"{SETTLES[state.settles]}{', one not' if state.astray and state.settles is not False else ''}"


def _hour(state: Steady) -> str | None:
    if (budget := state.budget) is None:
        return None
    return f"{budget.runs_an_hour:,} of {duration(budget.seconds)}: ±{_percent(2 * budget.error_in_an_hour)}"


def series(result: SteadyStates) -> Table:
    """Return a row a part of the time, for programs."""
    rows = [
        {
            **state.cell,
            "testbed": state.testbed,
            "at": (at + 0.5) / len(state.series),
            "rate": rate,
            "least": least,
            "most": most,
        }
        for state in result.cells
        for at, (rate, least, most) in enumerate(zip(state.series, state.least, state.most, strict=True))
    ]
    return plain("series", rows)


def _caption(result: SteadyStates) -> str:
    return (
        f"The rate inside runs ({SOURCES[result.source]}). Warm-up: the share of a run that MSER-5 cuts off, and the change of "
        "the mean without it, if one is shown. Drift: the change from the middle of runs to their end, with its interval. "
        f"Settles: yes if the interval rules out a drift of more than {share(result.margin)}, no if it shows one. The standard "
        "deviation of runs' means (sd) is split into a part inside runs and a part between runs. Best use of an hour: the "
        "number and length of runs with the least error of their mean, overhead included, and two standard errors of that mean."
    )


def sentence(result: SteadyStates) -> str:
    """Return how many cells reach no steady state or warm up, and how many cannot tell."""
    parts, whole = list[str](), len(result.cells)

    def count(finding: str, holds: Callable[[Steady], bool]) -> list[Steady]:
        cells = [state for state in result.cells if holds(state)]
        if cells:
            parts.append(f"{finding} in {len(cells)} of {whole} cells")
        return cells

    count("runs never settle", lambda state: state.settles is False)
    count("one run drifts unlike the others", lambda state: state.astray is not None and state.settles is not False)
    moved = "the warm-up moves the mean"
    if warm := count(moved, lambda state: state.warm_up.shown and abs(state.warm_up.mean) > result.margin / 10):
        most = max(warm, key=lambda state: abs(state.warm_up.mean))
        parts[-1] += f", most on {most.testbed}{at_cell(most.cell)}: {_text(most.warm_up)} without it"
    if not parts:
        parts.append(f"no cell is shown to drift by more than {share(result.margin)}, or to warm up")
    if unknown := sum(state.settles is None for state in result.cells):
        parts.append(f"longer runs or more replicates are needed to tell whether runs settle in {unknown} of {whole} cells")
    return f"{heading('; '.join(parts))}."
