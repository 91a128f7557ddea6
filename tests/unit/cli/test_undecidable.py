"""What a study has too few replicates to show. Known answers: n of n signs are 1 - 2^-n sure (five: 0.96875, the first above
0.95; seven: 0.9922, the first above 0.99); n and n labels can be dealt in C(2n, n) ways of which two give the same distance, so
that R's ``2 / choose(2 * n, n)`` is 0.1 for 3, 0.02857 for 4, 0.007937 for 5, 0.002165 for 6."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from ruamel.yaml import YAML

from twinbed.cli import main
from twinbed.cli.studyfile import read_study
from twinbed.cli.undecidable import undecidable

STUDIES = Path(__file__).parents[3] / "studies"


def found(name: str, *overrides: str, profile: str | None = None) -> list[tuple[str, int | None]]:
    return [(each.what, each.needs) for each in undecidable(read_study(STUDIES / name, overrides, profile))]


LOSS = "the number of pairs that fit by loss (at most 1 %)"


@pytest.mark.parametrize(
    ("overrides", "expected"),
    [
        (["replicates=3"], [(LOSS, 5)]),
        (["replicates=4"], [(LOSS, 5)]),
        (["replicates=5"], []),
        (["replicates=5", "confidence=0.99"], [(LOSS, 7)]),
        (["replicates=7", "confidence=0.99"], []),
        # One number of pairs is no question of how many fit.
        (["replicates=3", "factors.pairs=[4]"], []),
        # A stream has no loss of datagrams.
        (["replicates=3", "workload.protocol=tcp", "workload.rate=null"], []),
    ],
)
def test_a_loss_needs_as_many_runs_as_the_sign_test(overrides: list[str], expected: list[tuple[str, int]]) -> None:
    base = ["factors.testbed=[container]", "factors.payload=[1400B]"]
    assert found("oversubscription.yaml", *base, *overrides) == expected


CHAINS = "a difference of system-call chains"


@pytest.mark.parametrize(
    ("overrides", "expected"),
    [
        # 2 programs x 3 payloads x 2 testbeds = 12 tests: 12 x 0.007937 = 0.095, 12 x 0.002165 = 0.026.
        (["replicates=5"], [(CHAINS, 6)]),
        (["replicates=6"], []),
        # 2 tests: 2 x 0.02857 = 0.057, 2 x 0.007937 = 0.016.
        (["replicates=4", "factors.payload=[500B]", "factors.testbed=[container,virtio]"], [(CHAINS, 5)]),
        (["replicates=5", "factors.payload=[500B]", "factors.testbed=[container,virtio]"], []),
        (["replicates=2", "factors.testbed=[container]"], []),
    ],
)
def test_chains_need_as_many_replicates_as_there_are_ways_to_deal_them(
    overrides: list[str], expected: list[tuple[str, int]]
) -> None:
    assert found("syscalls.yaml", *overrides) == expected


def test_so_many_tests_that_no_sample_of_ways_can_decide_them() -> None:
    # 9,999 sampled ways give 0.0001 at best; 252 payloads x 2 testbeds x 2 programs = 1,008 tests need 0.00005.
    payloads = ",".join(map(str, range(1, 253)))
    assert found("syscalls.yaml", f"factors.payload=[{payloads}]") == [(CHAINS, None)]


def test_one_replicate_decides_nothing() -> None:
    assert found("quickstart.yaml", "replicates=1") == [("any verdict", 3)]
    assert found("quickstart.yaml", "replicates=1", "factors.testbed=[container]") == []
    assert found("anomaly.yaml", "replicates=1", profile="quick") == [("the number of pairs that fit", 2)]


def test_the_plan_says_it_and_how_many_can(capsys: pytest.CaptureFixture[str]) -> None:
    study = [str(STUDIES / "oversubscription.yaml"), "--profile", "quick", "-s", "replicates=3"]
    assert main.run(["plan", *study]) == 0
    assert (
        "Too few replicates for the number of pairs that fit by loss (at most 1 %): 3 of 3 good runs give a "
        "confidence of 87.5 %, below the study's 95%. At least 5 are needed: -s replicates=5\n"
    ) in capsys.readouterr().out
    assert main.run(["plan", *study, "--format", "json"]) == 0
    [entry] = json.loads(capsys.readouterr().out)["undecidable"]
    assert (entry["what"], entry["replicates"], entry["needs"]) == (LOSS, 3, 5)


# It shows every table of the paper with two runs a cell: `plan` and `run` say what they cannot show.
FOR_A_LOOK = ("icnc-2019.yaml", "quick")


@pytest.mark.parametrize("file", sorted(STUDIES.glob("*.yaml")), ids=lambda file: file.name)
def test_shipped_studies_can_show_what_they_ask(file: Path) -> None:
    """With each of its profiles."""
    for profile in (None, *(YAML(typ="safe").load(file).get("profiles") or {})):
        if (file.name, profile) != FOR_A_LOOK:
            assert found(file.name, profile=profile) == [], profile


def test_what_a_study_for_a_look_cannot_show_is_said() -> None:
    assert found(FOR_A_LOOK[0], profile=FOR_A_LOOK[1]) == [(CHAINS, 6)]
