"""The link check measures a bed's links, with the bed's own hosts and settings, before the first run of a cell.

A train of packets (irtt, ``train``) shows delay, jitter and loss.  A flow each way (iperf3, ``flow``, planned by
``probe_flow``) that is faster than the link shows rate and burst, which ``judge_rate`` judges.  Flows are captured behind the
shaper: at the machine's port of the receiving host's link, or on the host where there is no machine (``ends``).

Pairs are measured one after another while that takes little time. The links of other pairs are only read back, and the check
names the measured ones.
"""

from __future__ import annotations

import time
from collections.abc import Sequence

from twinbed.contracts.bed import Bed
from twinbed.contracts.host import Host
from twinbed.contracts.site import Site
from twinbed.hosts.stage import Stage
from twinbed.linkcheck.ends import Ends, find_ends
from twinbed.model.caution import Caution, Kind
from twinbed.model.linkcheck import Depends, Figure, LinkCheck, Verdict
from twinbed.model.topology import Link
from twinbed.study.run import Run

LIMIT_S = 60.0
OTHERS_S = 5.0
"""The time after the start until which another pair is begun: enough for about five pairs."""
_FLUSH = ("ip", "tcp_metrics", "flush", "all")
_NOT_KEPT = "/proc/sys/net/ipv4/tcp_no_metrics_save"


def asks(link: Link) -> bool:
    """Return whether the study sets anything on its links that can be measured."""
    return link.rate is not None or link.emulates


def programs(link: Link) -> list[str]:
    """Return the programs that hosts need for the check, in addition to those of every run."""
    return ["iperf3"] * (link.rate is not None) + ["irtt"] * link.emulates


def depends_on(run: Run) -> Depends:
    """Return the settings of a run on which a check of its links depends."""
    settings = run.settings()
    return {"testbed": settings["testbed"], "topology": settings["topology"]}


def measure(run: Run, bed: Bed, site: Site) -> LinkCheck | None:
    """Measure pair after pair, while there is time. Return None where the testbed has no place to capture its links. Raises
    HostError where a program fails."""
    # These need NumPy, which a study without missing runs does not.
    from twinbed.linkcheck.flow import flow_figures
    from twinbed.linkcheck.train import train_figures

    link: Link = run.topology.link
    pairs = run.topology.names()
    ends_of_pairs = [find_ends(run, bed, client, server) for client, server in pairs]
    if ends_of_pairs[0] is None:
        return None
    figures: list[Figure] = []
    done: list[Ends] = []
    stage = Stage(bed, site)
    begun = time.monotonic()
    forgetful: dict[str, _Forgetful] = {}
    try:
        for ends in ends_of_pairs:
            if ends is None or (figures and time.monotonic() - begun > OTHERS_S):
                break
            forgetful |= {name: _Forgetful(bed.hosts[name]) for name in (ends.client, ends.server) if name not in forgetful}
            of_pair = train_figures(ends, run.topology, bed, stage) if link.emulates else []
            if link.rate is not None:
                of_pair += flow_figures(ends, run.topology, bed, stage)
            figures += of_pair
            if all(figure.measured is None for figure in of_pair):
                break
            done.append(ends)
    finally:
        stage.kill()
    for host in forgetful.values():
        host.forget()
    names = [f"{ends.client} and {ends.server}" for ends in done]
    return LinkCheck(run.cell, run.id, depends_on(run), figures, _cautions(figures), _reason(figures), names, len(pairs))


class _Forgetful:
    """A host whose kernel forgets what the check's connections taught it about their peers (congestion windows).

    Otherwise the first run of a cell would differ from later ones. Where only real root may delete this memory, as in a lab
    made without root, the kernel is set to keep nothing."""

    def __init__(self, host: Host) -> None:
        self.host = host
        self.kept: bytes | None = None
        if host.run(_FLUSH, check=False).code:
            self.kept = host.read(_NOT_KEPT)
            host.write(_NOT_KEPT, b"1")

    def forget(self) -> None:
        if self.kept is None:
            self.host.run(_FLUSH)
        else:
            self.host.write(_NOT_KEPT, self.kept)


def _reason(figures: Sequence[Figure]) -> str | None:
    out_of_tolerance = [figure for figure in figures if figure.verdict is Verdict.OUT]
    if not out_of_tolerance:
        return None
    return "; ".join(
        f"{figure.path}: {figure.quantity} should be {figure.asked:.6g} {figure.unit} but {figure.measured:.6g} {figure.unit}"
        f" was measured ({_range(figure)} is within tolerance): {figure.note}"
        for figure in out_of_tolerance
    )


def _range(figure: Figure) -> str:
    if figure.least is None:
        return f"up to {figure.most:.6g}"
    return f"{figure.least:.6g} to {figure.most:.6g}"


def _cautions(figures: Sequence[Figure]) -> list[Caution]:
    result = []
    for figure in figures:
        with_its_rate = figure.quantity == "burst" and figure.measured is None
        if figure.verdict is Verdict.INCONCLUSIVE and not with_its_rate:
            kind = Kind.LINK_NOT_FILLED if figure.quantity == "rate" else Kind.LINK_UNTOLD
            if figure.measured is None:
                kind = Kind.LINK_NOT_MEASURED
            measured_text = "nothing" if figure.measured is None else f"{figure.measured:.6g} {figure.unit}"
            detail = (
                f"{figure.path}: {figure.quantity} {measured_text} of {figure.asked:.6g} {figure.unit} asked; {figure.note}"
            )
            result.append(Caution(kind, detail))
    return result
