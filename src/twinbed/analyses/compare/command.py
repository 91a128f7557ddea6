"""`twinbed compare`: the verdict on each testbed against the reference."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from twinbed.contracts import exit_codes as codes
from twinbed.contracts.analysis import Inputs
from twinbed.model.caution import OF_RUNS

if TYPE_CHECKING:
    from twinbed.analyses.compare.result import Comparison, Comparisons


@click.command(name="compare")
@click.argument("results", type=click.Path(path_type=Path))
@click.option(
    "--margin", metavar="SHARE", help="How far apart still counts as equivalent, such as 10% or 0.1. Default: the study's."
)
@click.option("--reference", metavar="TESTBED", help="Hold the others against this one. Default: the study's reference.")
@click.option("--metric", "metrics", multiple=True, help="Only this metric, with its table; may be given more than once.")
@click.option("--all", "everything", is_flag=True, help="Every metric, not only the headlines, with tables.")
@click.option("-q", "--quiet", is_flag=True, help="The verdict lines alone.")
@click.option(
    "--sessions",
    metavar="FACTOR",
    help="Compare sessions, not runs: FACTOR says in which one (day, boot) a run was made; time: by pauses between runs.",
)
@click.option(
    "--exclude",
    type=click.Choice(OF_RUNS),
    multiple=True,
    metavar="CAUTION",
    help="Leave runs with this caution (stall, nic_reset ...) out of the main result; may be given more than once. Default: "
    "what the study says.",
)
@click.option("--all-settings", is_flag=True, help="With the runs of RESULTS that the study does not ask for any more.")
@click.option("--format", "style", type=click.Choice(["text", "json", "csv"]), default="text", help="How to print it.")
@click.pass_obj
def command(
    inputs: Inputs,
    /,
    results: Path,
    margin: str | None,
    reference: str | None,
    metrics: tuple[str, ...],
    everything: bool,
    quiet: bool,
    sessions: str | None,
    exclude: tuple[str, ...],
    all_settings: bool,
    style: str,
) -> int:
    """Compare the testbeds of RESULTS with its reference, metric by metric and cell by cell.

    Exit code 4: some headline metric is shown to differ by more than the margin; 5: none is, but some cannot be decided; 0: all
    are shown to be within it.  Read docs/statistics.md for what the numbers mean.
    """
    from twinbed.analyses.compare.analysis import CompareParams, analysis
    from twinbed.model.error import TwinbedError
    from twinbed.model.units import QuantityError, parse_share

    try:
        params = CompareParams(margin=None if margin is None else parse_share(margin), sessions=sessions, exclude=exclude)
    except (QuantityError, ValueError) as error:
        raise TwinbedError(f"--margin: {margin!r} is not a share above 0", advice="such as 10% or 0.1") from error
    result = analysis.run(inputs.tables(results, reference, all_settings=all_settings), params)
    shown = chosen(result, metrics, everything)
    if style == "text":
        _print_text(result, shown, bool(metrics) or everything, quiet)
    elif style == "json":
        _print_json(result, shown)
    else:
        from twinbed.analyses.compare.rows import as_csv

        click.echo(as_csv(shown), nl=False)
    return exit_code(result)


def chosen(result: Comparisons, metrics: tuple[str, ...], everything: bool) -> list[Comparison]:
    """What was asked to be shown. Raises TwinbedError for a metric that there is not."""
    from twinbed.model.error import TwinbedError

    known = sorted({each.metric for each in result.comparisons})
    for metric in metrics:
        if metric not in known:
            raise TwinbedError(f"there is no metric {metric!r} to compare", advice=f"there are: {', '.join(known) or 'none'}")
    if metrics:
        return [each for each in result.comparisons if each.metric in metrics]
    return [each for each in result.comparisons if everything or each.headline]


def exit_code(result: Comparisons) -> int:
    """By the headline verdicts."""
    from twinbed.analyses.compare.words import overall
    from twinbed.model.result import Verdict

    verdict = overall(result)
    if verdict is Verdict.EQUIVALENT:
        return codes.DONE
    return codes.DIFFERENT if verdict is Verdict.DIFFERENT else codes.INCONCLUSIVE


def _print_text(result: Comparisons, shown: list[Comparison], asked: bool, quiet: bool) -> None:
    from twinbed.analyses.compare.terminal import verdict_lines, verdict_table
    from twinbed.render.terminal import console

    if quiet:
        verdict_lines(result, console())
    else:
        verdict_table(result, console(), shown if asked else None)


def _print_json(result: Comparisons, shown: list[Comparison]) -> None:
    import json
    from dataclasses import asdict

    from twinbed.analyses.compare.rows import order_rows, rows
    from twinbed.analyses.compare.words import summaries

    data = {
        "summary": [
            {
                "testbed": each.testbed,
                "reference": each.reference,
                "verdict": str(each.verdict),
                "equivalent": len(each.equivalent),
                "different": len(each.different),
                "inconclusive": len(each.inconclusive),
                "sentence": each.sentence,
                "spread": each.spread_sentence or None,
                "advice": list(each.advice),
            }
            for each in summaries(result)
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
        "pooled": [asdict(each) for each in result.pooled],
        "order": order_rows(result.orderings),
        "cautions": [
            {**caution.to_json(), "meaning": caution.kind.meaning, "advice": caution.kind.advice} for caution in result.cautions
        ],
    }
    click.echo(json.dumps(data, indent=1, ensure_ascii=False))
