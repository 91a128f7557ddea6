"""`twinbed analyse`: explain a response, in a results folder or in a table of your own."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

import click

from twinbed.analyses import ANALYSES
from twinbed.cli.lazy import Lazy, LazyGroup, of_analysis
from twinbed.contracts.installed import Both, offered

COMMANDS: Mapping[str, Lazy] = {name: of_analysis(name) for name, entry in ANALYSES.items() if not entry.own_command}


class OfPackage(Lazy):
    """Makes the command of an analysis of an installed package."""

    def command(self) -> click.Command:
        """Return the command itself. Raises PluginError."""
        from twinbed.cli.analysis_command import command_of
        from twinbed.registry import analysis

        return command_of(analysis(self.attribute))


class OfPackages(Mapping[str, Lazy]):
    """The analyses of installed packages; listing them imports none."""

    def __getitem__(self, name: str) -> Lazy:
        several = offered("analyses")[name]
        return OfPackage(
            "", name, f"Of {' and '.join(f'{offer.package} {offer.version}' for offer in several)}.", has_page=True
        )

    def __iter__(self) -> Iterator[str]:
        return iter(offered("analyses"))

    def __len__(self) -> int:
        return len(offered("analyses"))


@click.command(name="analyse", cls=LazyGroup, lazy=Both(COMMANDS, OfPackages()))
def group() -> None:
    """Explain a metric in RESULTS, or a column of a table with a row for each observation.

    \b
    Examples:
      twinbed analyse anova results/quickstart                                  which factors matter?
      twinbed analyse regression measurements.csv --formula "loss ~ receivers"   by how much?
      twinbed analyse capacity results/oversubscription --response loss --at-most 0.01   how many pairs fit?
    """
