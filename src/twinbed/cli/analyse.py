"""`twinbed analyse`: explain a response, in a results folder or in a table of your own."""

from __future__ import annotations

from collections.abc import Mapping

import click

from twinbed.analyses import ANALYSES
from twinbed.cli.lazy import Lazy, LazyGroup, of_analysis

COMMANDS: Mapping[str, Lazy] = {name: of_analysis(name) for name, entry in ANALYSES.items() if not entry.own_command}


@click.command(name="analyse", cls=LazyGroup, lazy=COMMANDS)
def group() -> None:
    """Explain a metric in RESULTS, or a column of a table with a row for each observation.

    \b
    Examples:
      twinbed analyse anova results/quickstart                                  which factors matter?
      twinbed analyse regression measurements.csv --formula "loss ~ receivers"   by how much?
      twinbed analyse capacity results/oversubscription --response loss --at-most 0.01   how many pairs fit?
    """
