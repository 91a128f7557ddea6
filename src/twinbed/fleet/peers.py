"""Finds a machine of a fleet that drifted away from its peers.

Every block has the reference's cells, whatever machine makes it. So each machine measures the same thing (an A/A comparison),
and differences come from the machines.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from statistics import fmean

from twinbed.statistics.moments import apart
from twinbed.study.run import Run

LAST = 3
"""The latest blocks of a machine that count, so that a later change is found."""
ALPHA = 0.01
"""The largest probability that any machine of a study is left out if all are alike."""

Rate = Callable[[Run], float | None]
"""Returns the rate that the reference's run measured; None if it is missing."""


@dataclass(slots=True)
class Peers:
    """``blocks`` of the study: there is one test per block, and all together have ALPHA (Bonferroni). ``margin``: a smaller
    difference is no reason to leave a machine out, however certain it is."""

    reference: str
    margin: float
    blocks: int
    rate: Rate
    latest: dict[str, list[float]] = field(default_factory=dict)
    """Means of the logarithms of the rates of each present machine's last blocks."""
    rates: dict[str, float | None] = field(default_factory=dict)
    """Rates of the reference's runs by id."""

    def made(self, run: Run) -> None:
        """Take the rate of a finished run."""
        if run.testbed_name == self.reference:
            self.rates[run.id] = self.rate(run)

    def block(self, machine: str, runs: Sequence[Run]) -> str | None:
        """Take a finished block. Return why the machine must be left out; None if it need not. A block that an earlier command
        started does not count."""
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
        difference = apart(fmean(own), peers, ALPHA / self.blocks, math.log1p(self.margin))
        if difference is None:
            return None
        how = f"{abs(math.expm1(difference)):.0%} {'above' if difference > 0 else 'below'} that of {len(peers)} others"
        return f"it drifted away from its peers: in its last {LAST} blocks {self.reference} is {how}"

    def forget(self, machine: str) -> None:
        """Drop a machine that was left out: it is nobody's peer."""
        self.latest.pop(machine, None)
