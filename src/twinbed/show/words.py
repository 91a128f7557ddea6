"""Names of metrics and cells, layers, p-values and cautions in words."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING

from twinbed.model.caution import Caution
from twinbed.model.result import Interval, Verdict
from twinbed.model.run import Level, level_text
from twinbed.show.quantities import NONE

if TYPE_CHECKING:
    from twinbed.model.interim import InterimAnalysis

LAYERS = {
    "application": "Application: what the user of the service sees",
    "os": "Operating system: what the hosts' kernels did for it",
    "network": "Network: what was on the wire",
    "host": "Hosts and machine: what it cost",
}


SYMBOLS: Mapping[str, str] = {Verdict.EQUIVALENT: "=", Verdict.DIFFERENT: "≠", Verdict.INCONCLUSIVE: "?"}
"""Verdict -> its sign."""


def metric_name(metric: str) -> str:
    """``requests_per_second`` -> ``requests per second``."""
    return " ".join("CPU" if word == "cpu" else word for word in metric.split("_"))


def place(host: str, direction: str) -> str:
    """``on server``, ``client to server``, or empty."""
    parts = [f"on {host}"] if host else []
    return ", ".join([*parts, direction.replace("_", " ")] if direction else parts)


def metric_title(metric: str, host: str = "", direction: str = "") -> str:
    where = place(host, direction)
    return f"{metric_name(metric)} ({where})" if where else metric_name(metric)


def heading(text: str) -> str:
    """The text with a capital at its beginning; other letters stay as they are."""
    return text[:1].upper() + text[1:]


def listed(names: Sequence[str]) -> str:
    """Return ``a``, ``a and b`` or ``a, b and c``."""
    return names[0] if len(names) == 1 else f"{', '.join(names[:-1])} and {names[-1]}"


def cell_title(cell: Mapping[str, Level]) -> str:
    """``payload 500B, offload on``; ``all runs`` for the one cell of a study without factors."""
    return ", ".join(f"{factor} {level_text(level)}" for factor, level in cell.items()) or "all runs"


def at_cell(cell: Mapping[str, Level]) -> str:
    """Return `` at payload 500B, offload on``; nothing for the one cell of a study without factors."""
    return f" at {cell_title(cell)}" if cell else ""


def _bounds(interval: Interval | None, say: Callable[[float], str]) -> str:
    return f" [{say(interval.low)}, {say(interval.high)}]" if interval else ""


def times(value: float) -> str:
    """A ratio of spreads with two digits; nobody knows more of it."""
    return f"{value:#.2g}".removesuffix(".") if value < 99.5 else f"{value:,.0f}"


def p_text(value: float | None) -> str:
    """``< 0.001``, ``0.012``; a dash where there is none."""
    if value is None:
        return NONE
    return "< 0.001" if value < 0.001 else f"{value:.3f}" if value < 0.1 else f"{value:.2f}"


def other_settings(count: int) -> str:
    """``14 runs here are of other settings: left out``."""
    return f"{count} run{'s' if count > 1 else ''} here {'are' if count > 1 else 'is'} of other settings: left out"


def left_out(counts: Mapping[str, int]) -> Iterator[str]:
    """Reason -> number, of runs or rows that are not in what is shown, one sentence each."""
    return (f"Left out: {count} {reason}." for reason, count in counts.items())


def caution_sentences(cautions: Sequence[Caution]) -> Iterator[str]:
    """What the runs carried, one sentence each: of what, what it means, what to do."""
    for each in cautions:
        where = ", ".join(part for part in (each.subject, each.detail) if part)
        yield f"{heading(each.kind.meaning)}" + (f" ({where})" if where else "") + f". To do: {each.kind.advice}."


_ENDS = {
    "": "the study goes on",
    "decided": "every headline verdict is reached",
    "most": "there are no more replicates to come",
    "budget": "the budget is spent",
}


def interim_sentence(look: InterimAnalysis) -> str:
    """``Look 3 of 6, after 15 blocks: 7 of 8 headline verdicts; alpha spent 0.031 of 0.05; the study goes on.``"""
    return (
        f"Look {look.number} of {look.planned}, after {look.blocks} blocks: {look.decided} of {look.decided + look.open} "
        f"headline verdicts; alpha spent {look.spent:.2g} of {look.alpha:g}; {_ENDS[look.ended]}."
    )
