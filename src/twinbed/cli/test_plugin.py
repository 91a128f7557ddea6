"""`twinbed test-plugin`: check that plug-ins of an installed package keep what every plug-in promises."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from twinbed.contracts import exit_codes as codes
from twinbed.contracts.installed import KINDS, Offered
from twinbed.model.error import TwinbedError
from twinbed.render.rows import STYLES, print_table

if TYPE_CHECKING:
    from twinbed.lab.suite import Promise

_KEPT, _BROKEN, _NOT_TRIED = "ok", "FAILS", "-"


@click.command("test-plugin")
@click.argument("name", metavar="PACKAGE | NAME")
@click.option("--run/--no-run", "runs", default=True, help="Also make a run on containers. Default: if this machine can.")
@click.option("--format", "style", type=click.Choice(STYLES), default="text", help="Format to print.")
def command(name: str, runs: bool, style: str) -> int:
    """Check the plug-ins of an installed PACKAGE, or the plug-in NAME, as twinbed's own are checked.

    \b
    Examples:
      twinbed test-plugin twinbed-echo     each plug-in of a package
      twinbed test-plugin echo --no-run    one plug-in, without a run

    A workload or an instrument is also used in a run on containers, a driver makes a client and a server.

    Exit code 0: every promise is kept; 1: one is not.
    """
    from twinbed.registry import of_packages

    every = list(of_packages())
    asked = [(offer, plugin) for offer, plugin in every if name in (offer.package, offer.name)]
    if not asked:
        packages = ", ".join(dict.fromkeys(offer.package for offer, _ in every))
        raise TwinbedError(
            f"no installed package {name!r} has a plug-in, and no plug-in has this name",
            advice=f"packages with plug-ins: {packages or 'none'}; install one with pip into this environment",
        )
    rows = [row for offer, plugin in asked for row in _rows(offer, plugin, runs)]
    print_table(rows, style)
    return codes.SOME_FAILED if any(row["result"] == _BROKEN for row in rows) else codes.DONE


def _rows(offered: Offered, plugin: object, runs: bool) -> Iterator[dict[str, object]]:
    head = {"plug-in": f"{KINDS[offered.kind][0]} {offered.name}"}
    if isinstance(plugin, TwinbedError):
        yield {**head, "promise": "it can be loaded", "result": _BROKEN, "reason": plugin.message}
        return
    yield {**head, "promise": "it can be loaded", "result": _KEPT, "reason": offered.requirement}
    for what, wrong in _promises(offered.kind, plugin):
        yield {**head, "promise": what, "result": _BROKEN if wrong else _KEPT, "reason": wrong}
    if offered.kind in ("workloads", "instruments", "drivers"):
        if reason := "not asked for" if not runs else _unable():
            yield {**head, "promise": "a run on containers", "result": _NOT_TRIED, "reason": reason}
        else:
            for what, wrong in _run(offered.kind, plugin):
                yield {**head, "promise": what, "result": _BROKEN if wrong else _KEPT, "reason": wrong}


def _promises(kind: str, plugin: object) -> Sequence[Promise]:
    from twinbed.hosts import scratch
    from twinbed.lab.suite import promises

    with scratch.folder() as folder:
        return list(promises(kind, plugin, folder))


def _unable() -> str:
    """Return why this machine makes no run; empty if it can."""
    from twinbed.image import find
    from twinbed.lab import preflight

    broken = [f"{check.what}: {check.found}" for check in preflight.machine() if check.required and not check.works]
    if broken:
        return broken[0]
    return "" if find() is not None else "there is no image: twinbed image build"


def _run(kind: str, plugin: Any) -> Sequence[Promise]:
    from twinbed.contracts.site import Site
    from twinbed.hosts import scratch
    from twinbed.hosts.passport import own_cpus
    from twinbed.image import find, probe_path
    from twinbed.lab import suite
    from twinbed.model.topology import Topology
    from twinbed.registry import PLUGINS, catalogue

    image = find()
    assert image is not None
    with scratch.folder() as folder:
        site = Site("test", probe_path(), image, Path(folder) / "artifacts", own_cpus())
        if kind != "drivers":
            return list(suite.promises_of_run(kind, plugin, PLUGINS, catalogue(), site))
        try:
            with plugin.up(plugin.params(), Topology(), site) as bed:
                return list(suite.promises_of_hosts(bed))
        except (TwinbedError, ValueError) as error:
            return [("it makes a client and a server", str(error))]
