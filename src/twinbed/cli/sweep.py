"""`twinbed sweep`: remove what dead labs left, by their ids only."""

from __future__ import annotations

import click


@click.command(name="sweep")
@click.option("--dry-run", is_flag=True, help="Only say what would be removed.")
def command(dry_run: bool) -> None:
    """Remove scratch folders and control groups of labs that no living process holds, and what such labs left elsewhere.

    A lab removes these itself, also when twinbed is killed. They stay only when the lab's keeper was killed too. What is
    elsewhere (a namespace of minimega's) outlives a killed twinbed. What does not carry a lab's id is never touched.
    """
    from twinbed.hosts.lab import leftovers, remove
    from twinbed.registry import PLUGINS

    found = leftovers()
    for scratch, groups in found:
        what = ", ".join(str(path) for path in (scratch, *groups) if path.exists())
        click.echo(f"{'would remove' if dry_run else 'removing'} {what}")
        if not dry_run:
            remove(scratch, groups)
    elsewhere = [left for driver in PLUGINS.drivers.values() if hasattr(driver, "leftovers") for left in driver.leftovers()]
    for left in elsewhere:
        click.echo(f"{'would remove' if dry_run else 'removing'} {left.what}")
        if not dry_run:
            left.remove()
    if not found and not elsewhere:
        click.echo("Nothing to remove.")
