"""`twinbed sweep`: remove leftovers of killed labs and undo leases on hosts, by their ids only."""

from __future__ import annotations

from pathlib import Path

import click

from twinbed.terminal import say


@click.command(name="sweep")
@click.option("--dry-run", is_flag=True, help="Print what would be removed; change nothing.")
@click.option(
    "--host",
    "hosts",
    multiple=True,
    metavar="USER@HOST",
    help="Sweep this host over SSH in place of this machine; may be repeated.",
)
@click.option("--ssh-config", type=click.Path(path_type=Path), help="With --host: another ssh configuration than yours.")
@click.option("--folder", help="With --host: twinbed's folder there, if the study names another.")
def command(dry_run: bool, hosts: tuple[str, ...], ssh_config: Path | None, folder: str | None) -> None:
    """Remove scratch folders, control groups and other leftovers of killed labs.

    \b
    Examples:
      twinbed sweep --dry-run
      twinbed sweep
      twinbed sweep --host root@c1       undo a lease there

    A lab removes these itself, even if twinbed is killed. They stay only if the lab's keeper was killed too, or outside this
    machine (a namespace of minimega). Anything without a lab's id is never touched. Runs made for a fleet and not fetched for
    a week are removed too.

    A leased host is restored by the lease's keeper on that host. --host does it for a keeper that was killed.
    """
    if hosts:
        _hosts(hosts, ssh_config, folder, dry_run)
        return
    import shutil

    from twinbed.cli.envelope import tell
    from twinbed.fleet.member import forgotten
    from twinbed.hosts.error import HostError
    from twinbed.hosts.lab import leftovers, remove
    from twinbed.registry import PLUGINS

    dead = leftovers()
    removed: list[str] = []
    for scratch, groups in dead:
        what = ", ".join(str(path) for path in (scratch, *groups) if path.exists())
        say(f"{'would remove' if dry_run else 'removing'} {what}")
        if not dry_run:
            remove(scratch, groups)
        removed.append(what)
    spools = forgotten()
    for spool in spools:
        say(f"{'would remove' if dry_run else 'removing'} {spool}: runs made for a fleet and not fetched for a week")
        if not dry_run:
            shutil.rmtree(spool)
        removed.append(str(spool))
    stays: list[str] = []
    elsewhere = [left for driver in PLUGINS.drivers.values() for left in driver.leftovers()]
    for left in elsewhere:
        say(f"{'would remove' if dry_run else 'removing'} {left.what}")
        if not dry_run:
            try:
                left.remove()
            except HostError as error:  # the others are swept all the same
                stays.append(f"{left.what} cannot be removed: {error}")
                continue
        removed.append(left.what)
    if stays:
        raise click.ClickException("\n".join(stays))
    tell({"dry_run": dry_run, "removed": removed})
    if not dead and not elsewhere and not spools:
        say("Nothing to remove.")


def _hosts(hosts: tuple[str, ...], config: Path | None, folder: str | None, dry_run: bool) -> None:
    from twinbed.cli.envelope import tell
    from twinbed.hosts import ssh_config
    from twinbed.hosts.lease import sweep
    from twinbed.hosts.session import FOLDER
    from twinbed.hosts.ssh import Address

    ssh_config.allow([config] if config else [])
    removed: list[str] = []
    for host in hosts:
        for lease in sweep(Address(host, host, config=config), folder or FOLDER, only_list=dry_run):
            say(f"{'would undo' if dry_run else 'undid'} {lease} on {host}")
            removed.append(f"{lease} on {host}")
    tell({"dry_run": dry_run, "removed": removed})
    if not removed:
        say("Nothing to remove.")
