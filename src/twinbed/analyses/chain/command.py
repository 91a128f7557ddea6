"""`twinbed chain`: system calls as Markov chains, from traces or from a results folder."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

import click

from twinbed.contracts import exit_codes as codes
from twinbed.contracts.analysis import Inputs
from twinbed.model.amount import amount
from twinbed.model.error import TwinbedError
from twinbed.observations.pages import no_page, write_page
from twinbed.terminal import as_json, say

if TYPE_CHECKING:
    from twinbed._core import TraceSummary, Transitions, Walk
    from twinbed.analyses.chain.method import ChainParams
    from twinbed.analyses.chain.result import ChainRow, Chains, Graph

STYLES = ["text", "json", "dot", "graphml", "svg"]
OF_ONE_PROGRAM = ("dot", "graphml", "svg")
NUMBERED = ("perf_script", "trace_cmd")
"""Kinds of traces that have numbers for calls, and do not say on which machine they were made."""
BY_NUMBER = "call_by_number"
"""The core's note of numbers in a plain sequence."""
SUFFIXES = {".json": "json", ".dot": "dot", ".gv": "dot", ".graphml": "graphml", ".svg": "svg"}


@click.command(name="chain", epilog="docs/chain.md says what each number means, and how to make traces.")
@click.argument("traces", metavar="TRACE... | RESULTS", nargs=-1, required=True, type=click.Path(path_type=Path))
@click.option("--order", type=click.IntRange(1, 3), default=1, help="How many calls make a state.")
@click.option("--program", help="Only this program.")
@click.option("--skip", type=click.IntRange(0), metavar="N", default=0, help="Without the first N calls of each thread.")
@click.option("--limit", type=click.IntRange(1), metavar="N", help="Only N calls of each thread, after those skipped.")
@click.option(
    "--architecture",
    type=click.Choice(["x86_64", "aarch64", "i386"]),
    help="Whose call numbers a trace holds that does not say: of perf script, trace-cmd, or a plain sequence. Default: x86_64.",
)
@click.option("--threshold", type=click.FloatRange(0, 1, max_open=True), default=0.0, help="Drop less likely transitions.")
@click.option("--smoothing", type=click.FloatRange(0, min_open=True), help="Count each transition so often more in walks.")
@click.option("--against", type=click.Path(path_type=Path), multiple=True, help="Compare with this trace; may be repeated.")
@click.option("--format", "style", type=click.Choice(STYLES), help="How to write it. Default: by the output's name, else text.")
@click.option("-o", "--output", type=click.Path(path_type=Path), help="File to write. Default: standard output.")
@click.pass_obj
def command(
    inputs: Inputs,
    /,
    traces: tuple[Path, ...],
    order: int,
    program: str | None,
    skip: int,
    limit: int | None,
    architecture: str | None,
    threshold: float,
    smoothing: float | None,
    against: tuple[Path, ...],
    style: str | None,
    output: Path | None,
) -> int:
    """What programs ask of the kernel as Markov chains: of traces TRACE..., or of the RESULTS of a study.

    Traces are of strace, perf, trace-cmd, sysdig or twinbed-probe, or plain sequences of numbers or names, or lines of a
    process and its call; several are replicates of one thing. Each testbed of RESULTS is compared with the reference. Exit
    code 1: a trace is cut off; of RESULTS 4: some chain is shown to differ; 5: too few replicates to show it.

    \b
    strace -f -ttt -T -o ab.strace ab -n 1000 http://server/
    twinbed chain ab.strace                                the chain of each program
    twinbed chain a.strace --against b.strace              what differs
    twinbed chain ab.strace --program ab -o ab.svg         a picture
    twinbed chain results/                                 every testbed against the reference
    """
    style = style or SUFFIXES.get(output.suffix if output else "", "text")
    if any(inputs.is_results(trace) for trace in traces):
        if len(traces) > 1 or against or skip or limit or architecture:
            raise TwinbedError(
                "a results folder is analysed alone", advice="its skip and limit are settings of the instrument syscalls"
            )
        if style in OF_ONE_PROGRAM:
            raise TwinbedError(
                f"{style} is of one program, and RESULTS have several",
                advice="`twinbed export RESULTS -o DIR --chains --figures` writes all of them, and their pictures",
            )
        from twinbed.analyses.chain.method import ChainParams

        params = ChainParams(order=order, threshold=threshold, alpha=smoothing)
        return _of_results(inputs, traces[0], params, program, style, output)
    no_page("traces", "-o FILE.svg draws a chain; pages are of RESULTS")
    first = _read(traces, skip, limit, architecture)
    other = _read(against, skip, limit, architecture) if against else None
    names = _programs(first, other, program)
    if style in OF_ONE_PROGRAM:
        if len(names) > 1:
            program_names = ", ".join(str(name) for name in names)
            raise TwinbedError(f"{style} is of one program, and there are {program_names}", advice="choose one with --program")
        _write(_picture(first, other, names[0], order, threshold, style), output)
    else:
        shown = [_shown(first, other, name, order, threshold, smoothing) for name in names]
        _write(_json(shown) if style == "json" else "\n".join(each.text for each in shown), output)
    return max(_report_reading(first), _report_reading(other) if other else codes.DONE)


@dataclass(frozen=True, slots=True)
class Traces:
    """``programs``: name -> the counts of each trace that has it; ``seconds``: name -> call -> time in it, where known."""

    paths: Sequence[Path]
    summaries: Sequence[TraceSummary]
    programs: Mapping[str | None, Sequence[Transitions]]
    seconds: Mapping[str | None, Mapping[str, float]]
    architecture: str | None
    """Whose numbers the user says they have; None where nobody says it."""


def _read(paths: Sequence[Path], skip: int, limit: int | None, architecture: str | None) -> Traces:
    from twinbed import _core
    from twinbed.readers.refusals import refusals

    programs: dict[str | None, list[Transitions]] = {}
    seconds: dict[str | None, dict[str, float]] = {}
    summaries: list[TraceSummary] = []
    for path in paths:
        with refusals():
            by_program, summary = _core.system_calls(str(path), architecture=architecture or "x86_64", skip=skip, limit=limit)
        summaries.append(summary)
        for name, counts, calls in by_program:
            programs.setdefault(name, []).append(counts)
            times = seconds.setdefault(name, {})
            for call, spent in zip(calls["call"].to_pylist(), calls["seconds"].to_pylist(), strict=True):
                if spent is not None:
                    times[call] = times.get(call, 0.0) + spent
    return Traces(paths, summaries, programs, seconds, architecture)


def _programs(traces: Traces, other: Traces | None, wanted: str | None) -> list[str | None]:
    """The programs to show: with two sides, those that both have."""
    names = [name for name in traces.programs if other is None or name in other.programs]
    if wanted is not None:
        names = [name for name in names if name == wanted]
    if not names:
        there = [", ".join(sorted(str(name) for name in side.programs)) or "none" for side in (traces, other) if side]
        both = "in both traces" if other else "in the traces"
        raise TwinbedError(f"no program {wanted or ''} {both}".replace("  ", " "), advice=f"there are: {' and '.join(there)}")
    return names


def _graph(traces: Traces, other: Traces | None, name: str | None, order: int, threshold: float) -> Graph:
    from twinbed._core import Transitions

    two = Transitions.pool(other.programs[name]) if other else None
    seconds = (traces.seconds.get(name), other.seconds.get(name) if other else None)
    one = Transitions.pool(traces.programs[name])
    from twinbed.analyses.chain.graph import graph

    return graph(one, two, order=order, threshold=threshold, seconds=seconds)


def _picture(traces: Traces, other: Traces | None, name: str | None, order: int, threshold: float, style: str) -> str:
    from twinbed.analyses.chain import drawing as chain_drawing
    from twinbed.analyses.chain import formats as chain_formats

    drawn = _graph(traces, other, name, order, threshold)
    title = name or "chain"
    if style == "dot":
        return chain_formats.dot(drawn, title)
    if style == "graphml":
        return chain_formats.graphml(drawn, title)
    shown = chain_drawing.most_used(drawn)
    if shown.note:
        say(shown.note, err=True)
    names = (title,) if other is None else ("first", "second")
    return chain_drawing.svg(shown, f"System calls of {title} as a Markov chain", names, chain_drawing.FILE) + "\n"


@dataclass(frozen=True, slots=True)
class Shown:
    """What is shown of a program, in text and as data."""

    text: str
    data: Mapping[str, object]


def _shown(
    traces: Traces, other: Traces | None, name: str | None, order: int, threshold: float, smoothing: float | None
) -> Shown:
    from twinbed._core import Transitions
    from twinbed.analyses.chain import text as chain_tables

    one = Transitions.pool(traces.programs[name])
    about: dict[str, object] = {"program": name, "order": order, "threshold": threshold}
    if other is None:
        drawn = _graph(traces, None, name, order, threshold)
        states, edges = one.states(order, threshold).to_pylist(), one.edges(order, threshold).to_pylist()
        data = {**about, "calls": one.calls, "sequences": one.sequences, "states": states, "edges": edges}
        return Shown("".join(chain_tables.one_chain(name, one, drawn, order)), data)
    from twinbed.analyses.chain.method import compare_chains

    compared = compare_chains(traces.programs[name], other.programs[name], order=order, threshold=threshold)
    two = Transitions.pool(other.programs[name])
    walks = {
        "first through second": (_walk(two, one, order, threshold, smoothing), _walk(two, two, order, threshold, smoothing)),
        "second through first": (_walk(one, two, order, threshold, smoothing), _walk(one, one, order, threshold, smoothing)),
    }
    data = {
        **about,
        **compared.summary,
        "stationary_distance": compared.stationary_distance,
        "use_distance": compared.use_distance,
        "spectral_gaps": [each.gap for each in compared.spectra] if compared.spectra else None,
        "sameness": asdict(compared.sameness),
        "walks": {way: {"walk": _finite(walk), "own": _finite(own)} for way, (walk, own) in walks.items()},
        "edges": compared.edges.to_pylist(),
    }
    return Shown("".join(chain_tables.two_chains(name, compared, walks)), data)


def _walk(chain: Transitions, sequence: Transitions, order: int, threshold: float, smoothing: float | None) -> Walk:
    return chain.walk(sequence, order, threshold, alpha=smoothing)


def _finite(walk: Walk) -> dict[str, object]:
    """JSON has no infinity: an impossible walk has no logarithm."""
    return {name: None if value == float("-inf") else value for name, value in walk.items()}


def _json(shown: Sequence[Shown]) -> str:
    return as_json([each.data for each in shown], allow_nan=False) + "\n"


def _of_results(
    inputs: Inputs, results: Path, params: ChainParams, program: str | None, style: str, output: Path | None
) -> int:
    from twinbed.analyses.chain import text as chain_tables
    from twinbed.analyses.chain.method import analysis

    tables = inputs.tables(results)
    if not tables.table("transitions").num_rows:
        raise TwinbedError(f"{results} has no system calls", advice="put syscalls into the study's instruments, and run it")
    result = analysis.run(tables, params)
    kept = replace(
        result,
        chains=tuple(row for row in result.chains if program is None or row.program == program),
        graphs=tuple(graph for row, graph in zip(result.chains, result.graphs, strict=True) if program in (None, row.program)),
        walks=tuple(row for row in result.walks if program is None or row.program == program),
    )
    if not kept.chains:
        there = ", ".join(sorted({str(row.program) for row in result.chains})) or "none"
        raise TwinbedError("no program to compare with the reference's", advice=f"there are: {there}")
    write_page(lambda: analysis.section(kept), kept, results)
    if style == "json":
        cautions = [caution.to_json() for caution in result.cautions]
        _write(as_json({**analysis.tables(kept), "cautions": cautions}) + "\n", output)
    else:
        _write("".join([*chain_tables.results(kept.chains, kept.walks), *_cautions(result)]), output)
    return exit_code(kept.chains, tables.outline.confidence)


def _cautions(result: Chains) -> Iterator[str]:
    yield from (f"\n! {caution.subject}: {caution.kind.meaning}: {caution.detail}\n" for caution in result.cautions)


def exit_code(rows: Sequence[ChainRow], confidence: float) -> int:
    """Different where one chain is shown to be; inconclusive where so few replicates could not have shown it."""
    if any(row.different for row in rows):
        return codes.DIFFERENT
    if any(row.different is None or row.least_p * len(rows) > 1 - confidence for row in rows):
        return codes.INCONCLUSIVE
    return codes.DONE


def _report_reading(traces: Traces) -> int:
    """Says on standard error what was read, and returns the exit code."""
    for path, summary in zip(traces.paths, traces.summaries, strict=True):
        say(f"{path}: {amount(summary['calls'], 'call')}, {summary['kind'].replace('_', ' ')}", err=True)
        by_number = summary["notes"].get(BY_NUMBER, summary["calls"] if summary["kind"] in NUMBERED else 0)
        if by_number and not traces.architecture:
            machine = summary["architecture"]
            say(f"  {amount(by_number, 'call number')} named as on {machine}; --architecture names another machine", err=True)
        for reasons in (summary["skipped"], summary["notes"]):
            for reason, count in reasons.items():
                if reason != BY_NUMBER:
                    say(f"  {count:,} {reason.replace('_', ' ')}", err=True)
        if summary["lost_events"]:
            say(f"  caution: the tracer lost {amount(summary['lost_events'], 'event')}", err=True)
        if summary["cut_off"]:
            say(f"twinbed: {path}: cut off: {summary['cut_off']}", err=True)
    return codes.INPUT_CUT if any(summary["cut_off"] for summary in traces.summaries) else codes.DONE


def _write(text: str, output: Path | None) -> None:
    from twinbed.render.output import put

    put(text, output)
