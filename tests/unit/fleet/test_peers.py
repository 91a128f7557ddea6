"""A machine that drifts away from its peers is found, and where all are alike hardly ever one is."""

from __future__ import annotations

import math

import numpy as np
import pytest

from twinbed import design
from twinbed.fleet.peers import ALPHA, LAST, Peers
from twinbed.registry import catalogue
from twinbed.study.loading import load
from twinbed.study.run import Run

STUDY = """
study: peers
testbeds: {a: {driver: fake}, b: {driver: fake}}
workload: {kind: planted}
factors: {testbed: [a, b]}
replicates: 2
"""
RUNS = design.runs(load(STUDY, "peers.yaml", catalogue()))
BLOCK = [run for run in RUNS if run.block == 1]


class Fleet:
    """Machines that take turns. ``levels``: what is the machine's own; ``slow``: from which block on it has which share."""

    def __init__(self, seed: int, machines: int, blocks: int, between: float = 0.02, within: float = 0.02) -> None:
        self.noise = np.random.default_rng(seed)
        self.levels = self.noise.normal(0, between, machines)
        self.within = within
        self.value: float | None = None
        self.peers = Peers("a", 0.01, machines * blocks, self._rate)
        self.blocks = blocks

    def _rate(self, run: Run) -> float | None:
        assert run.testbed_name == "a"
        return self.value

    def made(self) -> None:
        for run in BLOCK:
            self.peers.made(run)

    def left_out(self, slow: dict[int, float] | None = None, since: int = 0) -> dict[int, tuple[int, str]]:
        """Machine -> in which of its blocks it was left out, and why."""
        found: dict[int, tuple[int, str]] = {}
        for block in range(self.blocks):
            for machine, level in enumerate(self.levels):
                if machine in found:
                    continue
                share = (slow or {}).get(machine, 1.0) if block >= since else 1.0
                self.value = 1000 * share * math.exp(level + self.noise.normal(0, self.within))
                self.made()
                if reason := self.peers.block(f"m{machine}", BLOCK):
                    found[machine] = block, reason
                    self.peers.forget(f"m{machine}")
        return found


def test_alike_machines_are_hardly_ever_left_out() -> None:
    """At most ALPHA of studies: with 400, more than 11 would have a probability below 0.1 %."""
    wrong = sum(bool(Fleet(seed, machines=6, blocks=10).left_out()) for seed in range(400))
    assert ALPHA == 0.01
    assert wrong <= 11


@pytest.mark.parametrize("share", [0.7, 1.5])
def test_a_machine_that_changes_is_left_out_once_it_has(share: float) -> None:
    found = Fleet(3, machines=10, blocks=12, between=0.01, within=0.01).left_out({4: share}, since=6)
    assert found.keys() == {4}
    block, reason = found[4]
    assert 6 <= block < 6 + LAST
    assert "drifted away from its peers" in reason and "of 9 others" in reason
    assert ("below" in reason) == (share < 1)


def test_a_block_without_a_value_counts_for_nothing() -> None:
    fleet = Fleet(4, machines=5, blocks=4)
    for value in (None, 0.0):
        fleet.value = value
        fleet.made()
        assert fleet.peers.block("m0", BLOCK) is None
    # Nor does one of which an earlier command made a part.
    assert fleet.peers.block("m0", BLOCK) is None
    assert not fleet.peers.latest
