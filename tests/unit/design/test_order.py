"""Which runs a study makes, in what order, and what they will take."""

from __future__ import annotations

from collections import Counter
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from twinbed import design
from twinbed.contracts.params import DriverParams, InstrumentParams, WorkloadParams
from twinbed.instruments.packets import PacketsParams
from twinbed.model.topology import Link, Topology
from twinbed.study.catalogue import Catalogue
from twinbed.study.loading import load
from twinbed.study.run import Choice, Run
from twinbed.study.study import Study


class Bed(DriverParams):
    pass


class QuickBed(DriverParams):
    def estimate_seconds(self) -> float:
        return 2.0


class Work(WorkloadParams):
    pass


class Timed(WorkloadParams):
    duration: float = 30.0

    def estimate_seconds(self) -> float:
        return self.duration


class QuickWork(WorkloadParams):
    def estimate_seconds(self) -> float:
        return 2.0

    def estimate_bytes(self, link_rate: int) -> float:
        return link_rate / 1_000_000


class Modest(InstrumentParams):
    def estimate_seconds(self) -> float:
        return 2.0

    def estimate_bytes(self, link_rate: int) -> float:
        return link_rate / 1_000_000


CAPTURE = PacketsParams(snaplen=84)
CATALOGUE = Catalogue(drivers={"d": Bed}, workloads={"w": Timed}, instruments={"capture": PacketsParams})


def study(testbeds: str = "abc", replicates: int = 3, order: str = "randomized-blocks", seed: int = 7) -> Study:
    text = f"""
study: x
testbeds: {{{", ".join(f"{name}: {{driver: d}}" for name in testbeds)}}}
workload: {{kind: w}}
replicates: {replicates}
order: {order}
seed: {seed}
"""
    return load(text, "x.yaml", CATALOGUE)


def blocks(runs: tuple[Run, ...]) -> list[str]:
    found: dict[int, str] = {}
    for run in runs:
        found[run.block] = found.get(run.block, "") + run.testbed_name
    return list(found.values())


def test_blocks_follow_the_documented_hash() -> None:
    # printf '[7,0,0,{"testbed":"a"}]' | sha256sum, and so on:
    # block 0: a 24c1191e, b 83a59169, c 8a8f4c49; block 1: a 118fba6e, b ddd09f1a, c 3473f250;
    # block 2: a d1db9fc2, b 3f125603, c c59fb806
    runs = design.runs(study())
    assert blocks(runs) == ["abc", "acb", "bca"]
    assert [run.replicate for run in runs] == [run.block for run in runs] == [0] * 3 + [1] * 3 + [2] * 3
    assert [run.position for run in runs] == list(range(9))


def test_complete_randomisation_follows_the_documented_hash() -> None:
    # [7,0,0,a] 24c1191e, [7,0,0,b] 83a59169, [7,0,1,a] d8ec98c8, [7,0,1,b] ff5d8d31
    runs = design.runs(study("ab", 2, "random"))
    assert [(run.testbed_name, run.replicate, run.block) for run in runs] == [
        ("a", 0, 0),
        ("b", 0, 0),
        ("a", 1, 0),
        ("b", 1, 0),
    ]


def test_sequential_is_as_written() -> None:
    runs = design.runs(study("ba", 2, "sequential"))
    assert [(run.testbed_name, run.replicate) for run in runs] == [("b", 0), ("b", 1), ("a", 0), ("a", 1)]


@given(
    st.integers(1, 6), st.integers(1, 6), st.integers(0, 2**40), st.sampled_from(["randomized-blocks", "random", "sequential"])
)
def test_every_cell_is_made_in_every_replicate_once(cells: int, replicates: int, seed: int, order: str) -> None:
    runs = design.runs(study("abcdef"[:cells], replicates, order, seed))
    counted = Counter((run.testbed_name, run.replicate) for run in runs)
    assert counted == {(name, replicate): 1 for name in "abcdef"[:cells] for replicate in range(replicates)}
    assert len({run.id for run in runs}) == len(runs)


@given(st.integers(0, 2**40), st.sampled_from(["randomized-blocks", "random"]))
def test_a_study_that_grows_keeps_the_runs_it_had_in_order(seed: int, order: str) -> None:
    small = [run.id for run in design.runs(study("abcd", 3, order, seed))]
    grown = [run.id for run in design.runs(study("abcdef", 5, order, seed))]
    assert [run for run in grown if run in set(small)] == small
    more_blocks = [run.id for run in design.runs(study("abcd", 5, "randomized-blocks", seed))]
    if order == "randomized-blocks":
        assert more_blocks[: len(small)] == small


def test_every_order_of_a_block_is_equally_likely() -> None:
    # 3 cells have 6 orders; over 6000 blocks each is expected 1000 times. Chi-square with 5 degrees of freedom exceeds 20.5
    # with probability 0.001 (NIST/SEMATECH e-Handbook, table 1.3.6.7.4); the seed is fixed, so this cannot flicker.
    counts = Counter(blocks(design.runs(study(replicates=6000, seed=1))))
    assert len(counts) == 6
    assert sum((count - 1000) ** 2 / 1000 for count in counts.values()) < 20.5


def test_the_seed_changes_the_order_and_nothing_else() -> None:
    one, other = design.runs(study(replicates=10, seed=1)), design.runs(study(replicates=10, seed=2))
    assert blocks(one) != blocks(other)
    assert {run.id for run in one} == {run.id for run in other}


def run(workload: Any, instruments: dict[str, Any], testbed: Any = None, link: Link | None = None, pairs: int = 1) -> Run:
    return Run(
        levels={},
        replicate=0,
        block=0,
        position=0,
        testbed_name="t",
        testbed=Choice("d", testbed or Bed()),
        topology=Topology(pairs=pairs, link=link or Link(rate="8mbit")),  # type: ignore[arg-type]
        workload=Choice("w", workload),
        instruments={name: Choice(name, params) for name, params in instruments.items()},
    )


def test_time_is_the_workloads_and_what_surrounds_it() -> None:
    assert design.run_expense(run(Timed(), {})).seconds == 5 + 30
    assert design.run_expense(run(Work(), {})).seconds == 5 + 10
    assert design.run_expense(run(QuickWork(), {"m": Modest()}, testbed=QuickBed())).seconds == 2 + 2 + 2


def test_a_capture_is_bounded_by_a_full_link() -> None:
    # 8 Mbit/s both ways is 2 MB/s, 2000 packets of 1000 bytes; of each 84 bytes and a 16-byte header are kept: 200 kB/s.
    assert CAPTURE.estimate_bytes(8_000_000) == 200_000
    assert PacketsParams(snaplen=65535).estimate_bytes(8_000_000) == 2000 * 1016
    # One pair has two links; 30 s.
    assert design.run_expense(run(Timed(), {"c": CAPTURE})).bytes == 2 * 30 * 200_000
    assert design.run_expense(run(Timed(), {"c": CAPTURE}, pairs=3)).bytes == 6 * 30 * 200_000
    unshaped = design.run_expense(run(Timed(), {"c": CAPTURE}, link=Link()))
    assert unshaped.bytes == 2 * 30 * 250_000_000


def test_plugins_may_know_better() -> None:
    # 8 bytes/s from the workload of one client, 8 from the instrument on each of two links, for 2 s.
    assert design.run_expense(run(QuickWork(), {"m": Modest()})).bytes == 2 * (8 + 2 * 8)


def test_a_study_takes_the_sum_of_its_runs() -> None:
    runs = design.runs(study(replicates=2))
    assert design.expense(runs) == design.Expense(6 * 35.0, 0)
    assert design.expense(()) == design.Expense(0.0, 0)


def test_runs_with_one_id_are_a_bug(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Run, "id", "same")
    with pytest.raises(ValueError, match="2 of 3 runs share their id with another"):
        design.runs(study(replicates=1))
