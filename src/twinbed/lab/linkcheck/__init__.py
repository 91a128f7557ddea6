"""Measures what a bed's links really do, with the bed's own hosts and settings, before the first run of a cell.

A train of packets (irtt) shows delay, jitter and loss; a flow each way (iperf3) that is faster than the link shows rate and
burst.  Flows are captured behind the shaper: at the machine's port of the receiving host's link, or on that host where there is
no machine.  The links of the first pair stand for all: all are made by one plan, and each is read back.  What is judged, and
how, is in ``links.measured``.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from twinbed.hosts.site import Site
from twinbed.lab.linkcheck.ends import find_ends
from twinbed.lab.linkcheck.flow import flow_figures
from twinbed.lab.linkcheck.train import train_figures
from twinbed.lab.stage import Stage
from twinbed.model.caution import Caution, Kind
from twinbed.model.linkcheck import Figure, LinkCheck, Verdict
from twinbed.model.plugin import Bed
from twinbed.model.run import Run
from twinbed.model.topology import Link

LIMIT_S = 60.0


def asks(link: Link) -> bool:
    """Whether anything is asked of the links that can be measured."""
    return link.rate is not None or link.emulates


def depends_on(run: Run) -> dict[str, Any]:
    """The settings of a run that a check of its links depends on."""
    settings = run.settings()
    return {"testbed": settings["testbed"], "topology": settings["topology"]}


def measure(run: Run, bed: Bed, site: Site) -> LinkCheck | None:
    """None where the testbed has no place to see its links from. Raises HostError where a program fails."""
    ends = find_ends(run, bed)
    if ends is None:
        return None
    link: Link = run.topology.link
    figures: list[Figure] = []
    stage = Stage(bed, site)
    try:
        if link.emulates:
            figures += train_figures(ends, link, bed, stage)
        if link.rate is not None:
            figures += flow_figures(ends, link, bed, stage)
    finally:
        stage.kill()
    for host in (ends.client, ends.server):
        # What the kernel remembers of a peer (its congestion window) would make the first run unlike the others.
        bed.hosts[host].run(["ip", "tcp_metrics", "flush", "all"])
    return LinkCheck(run.cell, run.id, depends_on(run), figures, _cautions(figures), _reason(figures))


def _reason(figures: Sequence[Figure]) -> str | None:
    wrong = [figure for figure in figures if figure.verdict is Verdict.OUT]
    if not wrong:
        return None
    return "; ".join(
        f"{figure.path}: {figure.quantity} should be {figure.asked:.6g} {figure.unit} but {figure.measured:.6g} {figure.unit}"
        f" was measured ({_range(figure)} is within tolerance): {figure.note}"
        for figure in wrong
    )


def _range(figure: Figure) -> str:
    if figure.least is None:
        return f"up to {figure.most:.6g}"
    return f"{figure.least:.6g} to {figure.most:.6g}"


def _cautions(figures: Sequence[Figure]) -> list[Caution]:
    result = []
    for figure in figures:
        if figure.verdict is Verdict.UNTOLD:
            kind = Kind.LINK_NOT_FILLED if figure.quantity == "rate" else Kind.LINK_UNTOLD
            measured_text = "nothing" if figure.measured is None else f"{figure.measured:.6g} {figure.unit}"
            detail = (
                f"{figure.path}: {figure.quantity} {measured_text} of {figure.asked:.6g} {figure.unit} asked; {figure.note}"
            )
            result.append(Caution(kind, detail))
    return result
