"""`twinbed analyse`: what explains a response, in a results folder or a table of one's own."""

from __future__ import annotations

from collections.abc import Mapping

import click

from twinbed.analyses import ANALYSES
from twinbed.cli.lazy import Lazy, LazyGroup, of_analysis

COMMANDS: Mapping[str, Lazy] = {name: of_analysis(name) for name, entry in ANALYSES.items() if not entry.own_command}


@click.command(name="analyse", cls=LazyGroup, lazy=COMMANDS)
def group() -> None:
    """What explains a response: in the RESULTS of a study, or in a table of one row an observation.

    \b
    twinbed analyse anova results/                                        all factors of the study
    twinbed analyse anova results/ --response requests_per_second --factor testbed --factor payload
    twinbed analyse anova measurements.csv --response loss --factor receivers
    twinbed analyse regression results/ --formula "log(requests_per_second) ~ testbed * payload"
    twinbed analyse capacity results/ --response loss --at-most 0.01      how many pairs fit
    """
