"""Read traces made elsewhere as chains of each program, draw them, and compare two sides."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from twinbed import _core
from twinbed._core import Transitions
from twinbed.analyses.chain.draw import svg
from twinbed.analyses.chain.formats import dot, graphml
from twinbed.analyses.chain.graph import graph, most_used
from twinbed.analyses.chain.method import compare_chains
from twinbed.analyses.chain.result import Graph
from twinbed.analyses.chain.walks import Rules
from twinbed.analyses.chain.words import one_chain, two_chains
from twinbed.model.error import TwinbedError
from twinbed.readers.refusals import refusals
from twinbed.render.colours import light
from twinbed.show.section import Section
from twinbed.terminal import say

if TYPE_CHECKING:
    from twinbed._core import TraceSummary, Walk


@dataclass(frozen=True, slots=True)
class Traces:
    """Traces of one side. ``programs``: name -> the counts of each trace; ``seconds``: name -> call -> known time in it."""

    paths: Sequence[Path]
    summaries: Sequence[TraceSummary]
    programs: Mapping[str | None, Sequence[Transitions]]
    seconds: Mapping[str | None, Mapping[str, float]]
    architecture: str | None
    """The architecture that the user names; None if none."""

    def pooled(self, name: str | None) -> Transitions:
        """Return the chain of a program over all traces."""
        return Transitions.pool(self.programs[name])


def read(paths: Sequence[Path], skip: int, limit: int | None, architecture: str | None) -> Traces:
    """Read traces: of each thread ``limit`` calls after the skipped ones. Raises TwinbedError for a file that is no trace."""
    counted: dict[str | None, list[Transitions]] = {}
    seconds: dict[str | None, dict[str, float]] = {}
    summaries: list[TraceSummary] = []
    for path in paths:
        with refusals():
            by_program, summary = _core.system_calls(str(path), architecture=architecture or "x86_64", skip=skip, limit=limit)
        summaries.append(summary)
        for name, counts, calls in by_program:
            counted.setdefault(name, []).append(counts)
            times = seconds.setdefault(name, {})
            for call, spent in zip(calls["call"].to_pylist(), calls["seconds"].to_pylist(), strict=True):
                if spent is not None:
                    times[call] = times.get(call, 0.0) + spent
    return Traces(paths, summaries, counted, seconds, architecture)


def programs(traces: Traces, other: Traces | None, wanted: str | None) -> list[str | None]:
    """Return the programs to show: with two sides, those that both have. Raises TwinbedError if there is none."""
    names = [name for name in traces.programs if (other is None or name in other.programs) and wanted in (None, name)]
    if not names:
        present = [", ".join(sorted(str(name) for name in side.programs)) or "none" for side in (traces, other) if side]
        both = "in both traces" if other else "in the traces"
        raise TwinbedError(f"no program {wanted or ''} {both}".replace("  ", " "), advice=f"programs: {' and '.join(present)}")
    return names


def picture(traces: Traces, other: Traces | None, name: str | None, rules: Rules, style: str) -> str:
    """Return the chain of a program, or both chains in one, as DOT, GraphML or SVG."""
    drawn, title = _graph(traces, other, name, rules), name or "chain"
    if style == "dot":
        return dot(drawn, title)
    if style == "graphml":
        return graphml(drawn, title)
    shown = most_used(drawn)
    if shown.note:
        say(shown.note, err=True)
    names = (title,) if other is None else ("first", "second")
    return svg(shown, f"System calls of {title} as a Markov chain", names, light()) + "\n"


def _graph(traces: Traces, other: Traces | None, name: str | None, rules: Rules) -> Graph:
    two = other.pooled(name) if other else None
    seconds = (traces.seconds.get(name), other.seconds.get(name) if other else None)
    return graph(traces.pooled(name), two, order=rules.order, threshold=rules.threshold, seconds=seconds)


@dataclass(frozen=True, slots=True)
class Program:
    """A program's output, for readers and as data."""

    section: Section
    data: Mapping[str, object]


def shown(traces: Traces, other: Traces | None, name: str | None, rules: Rules) -> Program:
    """Return the chain of a program, or its chains of both sides compared."""
    first, order, threshold = traces.pooled(name), rules.order, rules.threshold
    settings: dict[str, object] = {"program": name, "order": order, "threshold": threshold}
    if other is None:
        states, edges = first.states(order, threshold).to_pylist(), first.edges(order, threshold).to_pylist()
        data = {**settings, "calls": first.calls, "sequences": first.sequences, "states": states, "edges": edges}
        return Program(one_chain(name, first, _graph(traces, None, name, rules), order), data)
    compared = compare_chains(traces.programs[name], other.programs[name], order=order, threshold=threshold)
    second = other.pooled(name)
    walks = {
        "first through second": (_walk(second, first, rules), _walk(second, second, rules)),
        "second through first": (_walk(first, second, rules), _walk(first, first, rules)),
    }
    data = {
        **settings,
        **compared.summary,
        "stationary_distance": compared.stationary_distance,
        "use_distance": compared.use_distance,
        "spectral_gaps": [side.gap for side in compared.spectra] if compared.spectra else None,
        "sameness": asdict(compared.sameness),
        "walks": {way: {"walk": _finite(walk), "own": _finite(own)} for way, (walk, own) in walks.items()},
        "edges": compared.edges.to_pylist(),
    }
    return Program(two_chains(name, compared, walks), data)


def _walk(chain: Transitions, sequence: Transitions, rules: Rules) -> Walk:
    return chain.walk(sequence, rules.order, rules.threshold, alpha=rules.alpha)


def _finite(walk: Walk) -> dict[str, object]:
    """Return the walk without infinity, which JSON lacks: an impossible walk has no logarithm."""
    return {name: None if value == float("-inf") else value for name, value in walk.items()}
