"""Whose a block is: by hand, on six runs of three blocks."""

from __future__ import annotations

from pathlib import Path

import pytest

from synthetic_results import planted_response, write_study
from twinbed import design
from twinbed.fleet.blocks import Blocks
from twinbed.registry import catalogue
from twinbed.results.folder import Folder
from twinbed.study.loading import load
from twinbed.study.run import Run

STUDY = """
study: blocks
testbeds: {a: {driver: fake}, b: {driver: fake}}
workload: {kind: planted}
factors: {testbed: [a, b]}
replicates: 3
"""


class Made:
    """A results folder in which some of the study's runs are there, made by a machine."""

    def __init__(self, folder: Path) -> None:
        self.folder = Folder(folder)
        self.runs = design.runs(load(STUDY, "blocks.yaml", catalogue()))
        self.folder.runs.mkdir(parents=True)

    def made(self, run: Run, machine: str, status: str = "complete") -> None:
        import json

        record = run.record(
            status=status,  # type: ignore[arg-type]
            started_s=0.0,
            phases={},
            failed_phase=None,
            reason=None,
            cautions=(),
            artifacts=(),
            twinbed="0",
            lab="",
            machine=machine,
        )
        place = self.folder.runs / run.id
        place.mkdir()
        (place / "run.json").write_text(json.dumps(record.to_json()))

    def blocks(self, *, retry_failed: bool = False) -> Blocks:
        states = {run.id: self.folder.status(run.id) for run in self.runs}
        return Blocks.of(self.runs, self.folder, states, retry_failed)

    def of_block(self, number: int) -> list[Run]:
        return [run for run in self.runs if run.block == number]


@pytest.fixture
def study(tmp_path: Path) -> Made:
    return Made(tmp_path / "results")


def test_blocks_are_given_in_order_and_each_once(study: Made) -> None:
    blocks = study.blocks()
    given = [blocks.next(name, {"m1", "m2"}, 3) for name in ("m1", "m2", "m1", "m2")]
    assert [block and block.number for block in given] == [0, 1, 2, None]


def test_a_machine_goes_on_with_its_own_block_first(study: Made) -> None:
    first, second = study.of_block(2)
    study.made(first, "m2")
    blocks = study.blocks()
    assert [block and block.number for block in (blocks.next("m2", {"m2"}, 3),)] == [2]
    assert blocks.left[2].due == [second]
    assert first.id not in [run.id for run in blocks.left[2].due]


def test_a_block_of_a_machine_that_is_awaited_is_left_to_it(study: Made) -> None:
    study.made(study.of_block(0)[0], "m2")
    blocks = study.blocks()
    given = [blocks.next("m1", {"m1", "m2"}, 3) for _ in range(3)]
    assert [block and block.number for block in given] == [1, 2, None]


@pytest.mark.parametrize("machine", ["m2", ""])
def test_a_block_of_nobody_who_is_awaited_is_begun_again_whole(study: Made, machine: str) -> None:
    first, second = study.of_block(0)
    study.made(first, machine)
    blocks = study.blocks()
    blocks.left = {0: blocks.left[0]}
    block = blocks.next("m1", {"m1"}, 3)
    assert block is not None and block.due == [first, second]
    assert study.folder.status(first.id) is None
    assert (study.folder.path / "failed" / f"{first.id}-1" / "run.json").exists()
    for run in (first, second):
        blocks.made(run, "m1", "complete")
    assert not blocks.left and blocks.states[first.id] == "complete"


def test_what_a_lost_machine_had_goes_back(study: Made) -> None:
    blocks = study.blocks()
    taken = blocks.next("m1", {"m1"}, 3)
    assert taken is not None
    blocks.give_back("m1")
    again = blocks.next("m2", {"m2"}, 3)
    assert again is taken


def test_failed_runs_stay_unless_they_are_tried_again(study: Made) -> None:
    first, second = study.of_block(0)
    study.made(first, "m1", "failed")
    study.made(second, "m1")
    assert sorted(study.blocks().left) == [1, 2]
    again = study.blocks(retry_failed=True)
    assert again.left[0].due == [first] and again.left[0].home == "m1"
    assert (study.folder.path / "failed" / f"{first.id}-1").is_dir()


def test_a_record_says_its_machine_and_one_without_says_none(tmp_path: Path, study: Made) -> None:
    run = study.runs[0]
    study.made(run, "m1")
    record = study.folder.record(run.id)
    assert record is not None and record.machine == "m1"
    made = write_study(tmp_path / "other", ["one"], {}, 1, planted_response({"one": 1.0}, 0.02, seed=1))
    (only,) = (made / "runs").iterdir()
    other = Folder(made).record(only.name)
    assert other is not None and other.machine == "" and "machine" not in other.to_json()
