"""`twinbed analyse monitor`: what a security monitor sees."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import click

from twinbed.contracts import exit_codes as codes
from twinbed.contracts.analysis import Inputs
from twinbed.observations.options import STYLES, write

if TYPE_CHECKING:
    from twinbed.analyses.monitor.result import Monitored


@click.command(name="monitor", epilog="docs/observer.md says what each class is and how alerts are compared.")
@click.argument("results", metavar="RESULTS", type=click.Path(path_type=Path))
@click.option("--table", type=click.Choice(["classes", "alerts"]), default="classes", help="Which table CSV is of.")
@click.option("--format", "style", type=click.Choice(STYLES), help="Default: by the name of -o, else text.")
@click.option("-o", "--output", type=click.Path(path_type=Path), help="File to write; .html makes a page.")
@click.pass_obj
def command(inputs: Inputs, /, results: Path, table: str, style: str | None, output: Path | None) -> int:
    """What a security monitor sees on each testbed: connections that are not the workload's by class, and alerts that differ.

    The study needs the instrument monitor; alerts need its engine suricata.

    \b
    twinbed analyse monitor results/
    twinbed analyse monitor results/ -o monitor.html              as a page
    twinbed analyse monitor results/ --table alerts -o alerts.csv the alerts as rows
    """
    from twinbed.analyses.monitor.method import analysis as monitor

    result = monitor.run(inputs.tables(results))
    write(monitor, result, results, style, table, _text(result), output)
    return codes.DONE


def _text(result: Monitored) -> Iterator[str]:
    from twinbed.analyses.monitor.tables import CAPTION, OF_ALERTS, alerts, classes, sentence

    yield sentence(result)
    if result.classes:
        yield ""
        yield classes(result).as_text()
        yield CAPTION
    if result.alerts:
        yield ""
        yield alerts(result).as_text()
        yield OF_ALERTS
