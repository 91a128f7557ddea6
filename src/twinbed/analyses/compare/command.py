"""`twinbed compare`: the verdict on each testbed against the reference."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from twinbed.contracts import exit_codes as codes
from twinbed.contracts.analysis import Inputs
from twinbed.model.caution import OF_RUNS
from twinbed.model.near import instead
from twinbed.observations.pages import write_page
from twinbed.terminal import say_text

if TYPE_CHECKING:
    from twinbed.analyses.compare.two import Two
    from twinbed.model.comparison import Comparison, Comparisons


_A_LINE = 10_000
"""Columns: more than any sentence has."""


@click.command(name="compare")
@click.argument("sides", metavar="RESULTS [LATER]", nargs=-1, required=True, type=click.Path(path_type=Path))
@click.option(
    "--margin", metavar="SHARE", help="How far apart still counts as equivalent, such as 10% or 0.1. Default: the study's."
)
@click.option(
    "--by",
    metavar="FACTOR",
    help="Compare the levels of this factor, such as workload.keep_alive. Default: testbeds; with one testbed, the switch or "
    "choice that varies (not sizes, numbers or times of the workload).",
)
@click.option(
    "--reference",
    metavar="NAME",
    help="Compare the others with this testbed, or this level. Default: the study's reference, or the first level.",
)
@click.option("--metric", "metrics", multiple=True, help="Show only this metric, with its table; may be given more than once.")
@click.option("--why", "explains", is_flag=True, help="Explain each verdict: interval, values, method, correction.")
@click.option("--all", "everything", is_flag=True, help="Show every metric, not only the headlines, with tables.")
@click.option("-q", "--quiet", is_flag=True, help="Print only the verdict lines.")
@click.option(
    "--sessions",
    metavar="FACTOR",
    help="Compare sessions instead of runs. FACTOR: the factor that names a run's session (day, boot); time: sessions end at "
    "pauses; machine: each machine of a fleet is one; none: runs do not depend on when they were made.",
)
@click.option(
    "--exclude",
    type=click.Choice(OF_RUNS),
    multiple=True,
    metavar="CAUTION",
    help="Leave runs with this caution (stall, nic_reset ...) out of the main result; may be given more than once. Default: "
    "the study's choice.",
)
@click.option("--all-settings", is_flag=True, help="Include runs whose settings the study no longer has.")
@click.option("--format", "style", type=click.Choice(["text", "json", "csv"]), default="text", help="The form to print.")
@click.pass_obj
def command(
    inputs: Inputs,
    /,
    sides: tuple[Path, ...],
    margin: str | None,
    by: str | None,
    reference: str | None,
    metrics: tuple[str, ...],
    explains: bool,
    everything: bool,
    quiet: bool,
    sessions: str | None,
    exclude: tuple[str, ...],
    all_settings: bool,
    style: str,
) -> int:
    """Compare testbeds with the reference, metric by metric and cell by cell, and say what each can be used for.

    With LATER, compare the testbeds of other results with those of RESULTS, in the cells that both have: is today's kernel as
    good as last month's? Differences between their passports are printed too.

    Exit code 0: all headline metrics are within the margin; 4: some differ by more; 5: some are inconclusive.

    \b
    Examples:
      twinbed compare results/quickstart
      twinbed compare results/quickstart --why --metric requests_per_second
      twinbed compare results/march results/june
    """
    from twinbed.analyses.compare.gathered import CompareParams
    from twinbed.analyses.compare.method import analysis
    from twinbed.analyses.compare.section import section
    from twinbed.model.error import TwinbedError
    from twinbed.model.units import QuantityError, parse_share

    try:
        share = None if margin is None else parse_share(margin)
        params = CompareParams(by=by, reference=reference, margin=share, sessions=sessions, exclude=exclude)
    except (QuantityError, ValueError) as error:
        raise TwinbedError(f"--margin: {margin!r} is not a share above 0", advice="such as 10% or 0.1") from error
    two = _two(inputs, sides, by, all_settings) if len(sides) > 1 else None
    if two is None:
        result = analysis.run_on(inputs.executor, inputs.tables(sides[0], all_settings=all_settings), params)
    else:
        result = two.compared(inputs.executor, params)
    shown = chosen(result, metrics, everything)
    write_page(lambda: section(result, shown), result, Path(" and ".join(map(str, sides))), of_one=two is None)
    if style == "text":
        _print_text(result, shown, asked=bool(metrics) or everything, quiet=quiet, explains=explains, two=two)
    elif style == "json":
        _print_json(result, shown, two)
    else:
        from twinbed.analyses.compare.rows import as_csv

        say_text(as_csv(shown))
    return exit_code(result)


def _two(inputs: Inputs, sides: tuple[Path, ...], by: str | None, all_settings: bool) -> Two:
    from twinbed.analyses.compare.two import Two

    if len(sides) > 2:
        raise click.UsageError("give one or two RESULTS; `twinbed merge` combines more")
    if by is not None:
        raise click.UsageError("--by needs one RESULTS; two RESULTS are compared with each other")
    return Two(inputs.side_by_side(*sides, all_settings=all_settings), sides)


def chosen(result: Comparisons, metrics: tuple[str, ...], everything: bool) -> list[Comparison]:
    """Return the comparisons asked for. Raises TwinbedError for an unknown metric."""
    from twinbed.model.error import TwinbedError

    known = sorted({comparison.metric for comparison in result.comparisons})
    for metric in metrics:
        if metric not in known:
            raise TwinbedError(f"there is no metric {metric!r} to compare", advice=instead(metric, known))
    if metrics:
        return [comparison for comparison in result.comparisons if comparison.metric in metrics]
    return [comparison for comparison in result.comparisons if everything or comparison.headline]


def exit_code(result: Comparisons) -> int:
    """Return the exit code of the headline verdicts."""
    from twinbed.analyses.compare.words import overall
    from twinbed.model.result import Verdict

    verdict = overall(result)
    if verdict is Verdict.EQUIVALENT:
        return codes.DONE
    return codes.DIFFERENT if verdict is Verdict.DIFFERENT else codes.INCONCLUSIVE


def _print_text(
    result: Comparisons, shown: list[Comparison], *, asked: bool, quiet: bool, explains: bool, two: Two | None
) -> None:
    from twinbed.analyses.compare.terminal import print_comparison, print_why, verdict_lines
    from twinbed.render.terminal import Terminal

    if quiet:
        whole = Terminal()
        whole.width = _A_LINE  # one for each testbed, which a program reads
        verdict_lines(result, whole, each_testbed=True)
    elif explains:
        print_why(result, Terminal(), shown)
    else:
        print_comparison(result, Terminal(), shown if asked else None, two.lines(result) if two else ())


def _print_json(result: Comparisons, shown: list[Comparison], two: Two | None) -> None:
    from dataclasses import asdict

    from twinbed.analyses.compare.conclusion import conclusions
    from twinbed.analyses.compare.ranked import touching
    from twinbed.analyses.compare.rows import order_rows, rows
    from twinbed.model.tables import TESTBED

    touched = {kind: len(touching(kind, result, shown)) for kind in {caution.kind for caution in result.cautions}}
    data = {
        **({} if result.by == TESTBED else {"by": result.by}),
        **(two.document(result) if two else {}),
        "summary": [
            {
                "testbed": conclusion.testbed,
                "reference": conclusion.reference,
                "verdict": str(conclusion.verdict),
                "equivalent": len(conclusion.equivalent),
                "different": len(conclusion.different),
                "inconclusive": len(conclusion.inconclusive),
                "sentence": conclusion.sentence,
                "use_for": list(conclusion.use_for),
                "do_not_use_for": list(conclusion.avoid_for),
                "cannot_tell": list(conclusion.cannot_tell),
                "spread": conclusion.spread_sentence or None,
                "advice": list(conclusion.advice),
            }
            for conclusion in conclusions(result)
        ],
        **({"left_out": dict(result.left_out)} if result.left_out else {}),
        **(
            {
                "excluded": {
                    "cautions": list(out.kinds),
                    "runs": sorted(out.ids),
                    "decided_after": out.decided_after,
                    "asked_now": out.asked_now,
                }
            }
            if (out := result.excluded)
            else {}
        ),
        "look": asdict(result.interim) if result.interim else None,
        "comparisons": rows(shown),
        "pooled": [asdict(comparison) for comparison in result.pooled],
        "order": order_rows(result.orderings),
        "cautions": [
            {
                **caution.to_json(),
                "rank": str(caution.kind.rank),
                "comparisons": touched[caution.kind],
                "meaning": caution.kind.meaning,
                "advice": caution.kind.advice,
            }
            for caution in result.cautions
        ],
    }
    from twinbed.render.rows import print_json

    print_json(data)
