"""Which machine of a fleet drifted away from its peers. Every block has the reference's cells, whatever machine makes it: what
they measured is the same thing measured by each machine (an A/A comparison), and so tells about the machines."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from statistics import fmean

from twinbed.statistics.moments import apart
from twinbed.study.run import Run

LAST = 3
"""Blocks of a machine that count: its latest, so that a machine that has changed is found out."""
ALPHA = 0.01
"""Probability that any machine of a study is left out where all are alike, at most."""

Rate = Callable[[Run], float | None]
"""What the reference's run measured; None where it is missing."""


@dataclass(slots=True)
class Peers:
    """``blocks`` of the study: each is a time to look, and all together have ALPHA (Bonferroni). ``margin``: less than this is
    no reason, however sure it is."""

    reference: str
    margin: float
    blocks: int
    rate: Rate
    latest: dict[str, list[float]] = field(default_factory=dict)
    """Machine -> means of the logarithms of the rates of its last blocks, as long as it is there."""
    rates: dict[str, float | None] = field(default_factory=dict)
    """Of the reference's runs, by their ids."""

    def made(self, run: Run) -> None:
        """A run was made, and all that was collected of it is there."""
        if run.testbed_name == self.reference:
            self.rates[run.id] = self.rate(run)

    def block(self, machine: str, runs: Sequence[Run]) -> str | None:
        """A block was made. Why the machine is to be left out, if it is. A block that was begun by an earlier command counts
        for nothing."""
        rates = [self.rates.pop(run.id, None) for run in runs if run.testbed_name == self.reference]
        logarithms = [math.log(rate) for rate in rates if rate is not None and rate > 0]
        if not rates or len(logarithms) < len(rates):
            return None
        own = self.latest.setdefault(machine, [])
        own.append(fmean(logarithms))
        del own[:-LAST]
        if len(own) < LAST:
            return None
        peers = [fmean(of) for name, of in self.latest.items() if name != machine and len(of) == LAST]
        found = apart(fmean(own), peers, ALPHA / self.blocks, math.log1p(self.margin))
        if found is None:
            return None
        how = f"{abs(math.expm1(found)):.0%} {'above' if found > 0 else 'below'} that of {len(peers)} others"
        return f"it drifted away from its peers: in its last {LAST} blocks {self.reference} is {how}"

    def forget(self, machine: str) -> None:
        """One that was left out is nobody's peer."""
        self.latest.pop(machine, None)
