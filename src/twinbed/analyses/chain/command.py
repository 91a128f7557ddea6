"""`twinbed chain`: system calls as Markov chains, from traces or results."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from twinbed.contracts import exit_codes as codes
from twinbed.contracts.analysis import Inputs
from twinbed.model.amount import amount
from twinbed.model.error import TwinbedError
from twinbed.observations.options import write
from twinbed.observations.pages import no_page
from twinbed.terminal import as_json, say

if TYPE_CHECKING:
    from twinbed.analyses.chain.method import ChainParams
    from twinbed.analyses.chain.traces import Traces

STYLES = ["text", "json", "dot", "graphml", "svg"]
OF_ONE_PROGRAM = ("dot", "graphml", "svg")
NUMBERED = ("perf_script", "trace_cmd")
"""Kinds of traces with numbers for calls, without the machine's architecture."""
BY_NUMBER = "call_by_number"
"""The core's note of numbers in a plain sequence."""
SUFFIXES = {".json": "json", ".dot": "dot", ".gv": "dot", ".graphml": "graphml", ".svg": "svg"}


@click.command(name="chain", epilog="docs/chain.md explains each number, and how to make traces.")
@click.argument("traces", metavar="TRACE... | RESULTS", nargs=-1, required=True, type=click.Path(path_type=Path))
@click.option("--order", type=click.IntRange(1, 3), default=1, help="Calls in a state.")
@click.option("--program", help="Show only this program.")
@click.option("--skip", type=click.IntRange(0), metavar="N", default=0, help="Skip the first N calls of each thread.")
@click.option("--limit", type=click.IntRange(1), metavar="N", help="Use only N calls of each thread, after the skipped ones.")
@click.option(
    "--architecture",
    type=click.Choice(["x86_64", "aarch64", "i386"]),
    help="Architecture of call numbers in traces without one: perf script, trace-cmd, plain sequences. Default: x86_64.",
)
@click.option(
    "--threshold", type=click.FloatRange(0, 1, max_open=True), default=0.0, help="Drop transitions below this probability."
)
@click.option("--smoothing", type=click.FloatRange(0, min_open=True), help="Add this count to each transition in walks.")
@click.option("--against", type=click.Path(path_type=Path), multiple=True, help="Compare with this trace; may be repeated.")
@click.option("--format", "style", type=click.Choice(STYLES), help="Default: by the name of -o, else text.")
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
    """Show system calls as Markov chains, from traces or from the RESULTS of a study.

    Traces come from strace, perf, trace-cmd, sysdig or twinbed-probe. Plain sequences of numbers or names, or lines of a
    process and its call, work too. Several traces are replicates. With RESULTS, each testbed is compared with the reference.

    Exit code 1: a trace is cut off. With RESULTS, 4: a chain is shown to differ; 5: too few replicates to show it.

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
                "RESULTS must be given alone, without options of traces",
                advice="skip and limit are settings of the instrument syscalls in the study",
            )
        if style in OF_ONE_PROGRAM:
            raise TwinbedError(
                f"{style} holds one program, and RESULTS have several",
                advice="`twinbed export RESULTS -o DIR --chains --figures` writes all chains and their pictures",
            )
        from twinbed.analyses.chain.method import ChainParams

        params = ChainParams(order=order, threshold=threshold, alpha=smoothing)
        return _of_results(inputs, traces[0], params, program, style, output)
    no_page("traces", "-o FILE.svg draws a chain; only RESULTS make a page")
    from twinbed.analyses.chain import traces as of
    from twinbed.analyses.chain.walks import Rules
    from twinbed.render.output import put
    from twinbed.render.sections import lines

    first = of.read(traces, skip, limit, architecture)
    other = of.read(against, skip, limit, architecture) if against else None
    names = of.programs(first, other, program)
    rules = Rules(order, threshold, smoothing)
    if style in OF_ONE_PROGRAM:
        if len(names) > 1:
            program_names = ", ".join(str(name) for name in names)
            raise TwinbedError(
                f"{style} holds one program, and the traces have {program_names}", advice="choose one with --program"
            )
        put(of.picture(first, other, names[0], rules, style), output)
    else:
        shown = [of.shown(first, other, name, rules) for name in names]
        text = "\n".join("".join(f"{line}\n" for line in lines(alone.section)) for alone in shown)
        put(as_json([alone.data for alone in shown], allow_nan=False) + "\n" if style == "json" else text, output)
    return max(_report_reading(first), _report_reading(other) if other else codes.DONE)


def _of_results(
    inputs: Inputs, results: Path, params: ChainParams, program: str | None, style: str, output: Path | None
) -> int:
    from twinbed.analyses.chain.method import analysis

    tables = inputs.tables(results)
    if not tables.table("transitions").num_rows:
        raise TwinbedError(f"{results} has no system calls", advice="run the study with instruments: [syscalls]")
    result = analysis.run(tables, params)
    kept = result if program is None else result.of(program)
    if not kept.chains:
        names = ", ".join(sorted({str(row.program) for row in result.chains})) or "none"
        raise TwinbedError(f"no chain of {program or 'any program'} to compare with the reference", advice=f"programs: {names}")
    write(analysis, kept, results, style, "", None, output)
    return analysis.exit_code(kept)


def _report_reading(traces: Traces) -> int:
    """Print what was read to standard error, and return the exit code."""
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
