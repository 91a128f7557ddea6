"""``compare RESULTS LATER``: the same testbeds of two results, and what differs between their passports."""

from __future__ import annotations

import json
import math
import random
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result

from synthetic_results import write_study
from twinbed.analyses.compare.command import command
from twinbed.analyses.compare.method import analysis as compare
from twinbed.cli.inputs import ResultsFolders
from twinbed.cli.merge import command as merge
from twinbed.model.error import TwinbedError
from twinbed.results.extract import extract
from twinbed.workloads.planted import planted

CELLS = ("500B", "20kB")


def results(
    folder: Path,
    means: Mapping[str, float],
    kernel: str = "6.1.0",
    cells: Sequence[str] = CELLS,
    replicates: int = 5,
    **rest: Any,
) -> Path:
    """Testbed -> its mean."""

    def respond(testbed: str, levels: Mapping[str, Any], replicate: int) -> Mapping[str, float | None]:
        noise = random.Random(f"{folder.name} {testbed} {levels['payload']} {replicate}")
        rate = means[testbed] * math.exp(noise.gauss(0, 0.02))
        return {"requests": round(rate * 10), "requests_per_second": rate, "packets": round(rate * 100), "bytes": 64000}

    passport = {"client": {"kernel": kernel}, "server": {"kernel": kernel, "NIC driver": "e1000"}}
    return write_study(folder, list(means), {"payload": list(cells)}, replicates, respond, passport=passport, **rest)


def compared(*words: object) -> Result:
    ran = CliRunner().invoke(command, [str(each) for each in words], obj=ResultsFolders(), standalone_mode=False)
    if ran.exception is not None:
        raise ran.exception
    return ran


def test_it_is_what_compare_says_of_a_merge(tmp_path: Path) -> None:
    """A merge with both as testbeds beside each other gives every number that does not hang on names."""
    may, june = results(tmp_path / "may", {"e1000": 1000.0}), results(tmp_path / "june", {"e1000": 1050.0})
    CliRunner().invoke(merge, [str(may), str(june), "-o", str(tmp_path / "both")], standalone_mode=False)
    merged = compare.run(extract(tmp_path / "both", {"planted": planted}, {})).comparisons
    ran = compared(may, june, "--all", "--format", "json")
    rows = json.loads(ran.output)["comparisons"]
    names = ("metric", "ratio", "ratio_low", "ratio_high", "verdict", "p_equivalent", "p_different_holm", "n", "reference_n")
    expected = [
        (
            *(
                each.metric,
                each.ratio,
                *((each.ratio_interval.low, each.ratio_interval.high) if each.ratio_interval else (None,) * 2),
            ),
            *(str(each.verdict), each.p_equivalent, each.p_different, each.estimate.n, each.reference_estimate.n),
        )
        for each in merged
    ]
    assert {each.testbed for each in merged} == {"e1000@june"}
    assert [tuple(row[name] for name in names) for row in rows] == expected
    assert ran.return_value == 0


def test_each_testbed_is_held_against_itself(tmp_path: Path) -> None:
    may = results(tmp_path / "may", {"physical": 1000.0, "e1000": 400.0, "old": 1.0}, kernel="6.1.0")
    june = results(tmp_path / "june", {"physical": 1000.0, "e1000": 600.0}, kernel="6.12.0", cells=("20kB", "1MiB"))
    ran = compared(may, june, "--metric", "requests_per_second", "--format", "json")
    said = json.loads(ran.output)
    assert [
        (row["factor:on testbed"], row["factor:payload"], row["level"], row["reference_level"], row["verdict"])
        for row in said["comparisons"]
    ] == [("physical", "20kB", "june", "may", "equivalent"), ("e1000", "20kB", "june", "may", "different")]
    # 600 / 400, at 2 % noise.
    assert abs(said["comparisons"][1]["ratio"] / 1.5 - 1) < 0.05
    assert ran.return_value == 4
    assert said["not_compared"][:3] == [
        "testbeds of may alone: old",
        "cells of may alone: testbed physical, payload 500B; testbed e1000, payload 500B",
        "cells of june alone: testbed physical, payload 1MiB; testbed e1000, payload 1MiB",
    ]
    first = said["passports"]["differences"][0]
    assert (first["fact"], first["left"], first["right"]) == ("kernel", ["6.1.0"], ["6.12.0"])
    assert not any("driver" in each["fact"] for each in said["passports"]["differences"])


def test_what_moved_the_common_reference_too_drops_out(tmp_path: Path) -> None:
    """Everything is 30 % slower in June, e1000 half as fast besides: the change against physical is 0.5, that of virtio 1."""
    may = results(tmp_path / "may", {"physical": 1000.0, "e1000": 400.0, "virtio": 800.0})
    june = results(tmp_path / "june", {"physical": 700.0, "e1000": 140.0, "virtio": 560.0})
    said = json.loads(compared(may, june, "--format", "json").output)
    rates = [row for row in said["changes"] if row["metric"] == "requests_per_second" and row["cell"] == {"payload": "20kB"}]
    assert [(row["testbed"], row["reference"], row["verdict"]) for row in rates] == [
        ("e1000", "physical", "different"),
        ("virtio", "physical", "equivalent"),
    ]
    assert [row["ratio"] for row in rates] == pytest.approx([0.5, 1.0], rel=0.05)
    assert all(row["ratio_low"] < row["ratio"] < row["ratio_high"] for row in rates)
    text = " ".join(compared(may, june).output.split())
    assert "Change relative to physical, which both results have" in text
    assert "= virtio, requests per second at payload 20kB" in text
    one = results(tmp_path / "one", {"e1000": 1000.0}), results(tmp_path / "two", {"e1000": 1000.0})
    assert json.loads(compared(*one, "--format", "json").output)["changes"] == []


def test_the_differences_stand_beside_the_verdict(tmp_path: Path) -> None:
    may = results(tmp_path / "may", {"e1000": 1000.0}, kernel="6.1.0")
    june = results(tmp_path / "june", {"e1000": 1010.0}, kernel="6.12.0")
    text = compared(may, june).output
    assert text.index("june is compared with may") < text.index("matches results may here") < text.index("6.12.0")
    assert "client, server: kernel" in text
    # What differs in circumstance is a caution too, as after a merge.
    assert "client: kernel is 6.1.0 on results may, 6.12.0 on results june" in text


def test_two_folders_of_one_name_are_told_apart(tmp_path: Path) -> None:
    one = results(tmp_path / "a" / "results", {"e1000": 1000.0})
    other = results(tmp_path / "b" / "results", {"e1000": 1000.0})
    said = "".join(compared(one, other).output.split())  # a long path is broken anywhere
    assert "".join(f"{other} is compared with {one}".split()) in said


def test_a_factor_that_one_alone_names_comes_from_the_settings_of_the_other(tmp_path: Path) -> None:
    """As in a merge: 1000 is the workload's rate in both."""

    def respond(testbed: str, levels: Mapping[str, Any], replicate: int) -> Mapping[str, float | None]:
        return {"requests": 100, "requests_per_second": 50.0 + replicate, "packets": 1000, "bytes": 64000}

    write_study(tmp_path / "may", ["bed"], {}, 3, respond)
    write_study(tmp_path / "june", ["bed"], {"workload.rate": [1000.0]}, 3, respond)
    said = json.loads(compared(tmp_path / "may", tmp_path / "june", "--format", "json").output)
    assert {row["ratio"] for row in said["comparisons"] if row["metric"] == "requests_per_second"} == {1.0}
    assert "may: workload.rate is 1000, from its runs' settings" in said["not_compared"]


def test_results_without_anything_in_common_are_refused(tmp_path: Path) -> None:
    may = results(tmp_path / "may", {"e1000": 1000.0})
    with pytest.raises(TwinbedError, match="no testbed of the same name"):
        compared(may, results(tmp_path / "june", {"virtio": 1000.0}))
    with pytest.raises(TwinbedError, match="no cell in common"):
        compared(may, results(tmp_path / "july", {"e1000": 1000.0}, cells=["1MiB"]))


def test_nothing_is_written_beside_the_tables(tmp_path: Path) -> None:
    may, june = results(tmp_path / "may", {"e1000": 1000.0}), results(tmp_path / "june", {"e1000": 1000.0})
    for folder in (may, june):
        compared(folder)
    before = sorted(tmp_path.rglob("*"))
    compared(may, june)
    assert sorted(tmp_path.rglob("*")) == before
