"""`twinbed analyse`: what explains a response, in a results folder or a table of one's own."""

from __future__ import annotations

from collections.abc import Mapping

import click

from twinbed.cli.lazy import Lazy, LazyGroup

COMMANDS: Mapping[str, Lazy] = {
    "anova": Lazy("twinbed.cli.analyse.anova", "command", "Which factors matter: analysis of variance."),
    "regression": Lazy("twinbed.cli.analyse.regression", "command", "By how much: a linear model of factors and numbers."),
    "capacity": Lazy("twinbed.cli.analyse.capacity", "command", "How many fit: the largest N that keeps an objective."),
    "contention": Lazy("twinbed.cli.analyse.contention", "command", "Where rates bend, and whether the machine shows it."),
    "anomaly": Lazy("twinbed.cli.analyse.anomaly", "command", "Are several faster than one, and what moves with it."),
}


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
