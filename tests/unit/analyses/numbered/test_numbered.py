"""What the analyses of N have in common: how N is found, and what is left out."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest

from numbered_results import LOSS, RATE, small
from twinbed.contracts import exit_codes as codes


@pytest.mark.parametrize("factor", ["pairs", "topology.pairs"])
@pytest.mark.parametrize("command", [("capacity", "--at-least", "1"), ("contention",), ("anomaly",)])
def test_the_number_of_pairs_is_found_by_its_short_and_its_full_name(shown, tmp_path, factor, command):
    results = small(tmp_path / "study", {factor: (1, 2, 4, 8)})
    name, *more = command
    code, out, err = shown(name, results, *RATE, *more, "--format", "json")
    assert (code, err) == (codes.DONE, "")
    tables = [table for table in json.loads(out).values() if isinstance(table, list)]
    found = {row["n"] for table in tables for row in table if row.get("n") is not None}
    assert found and found <= {1, 2, 4, 8}


@pytest.mark.parametrize("command", [("capacity", "--at-least", "1"), ("contention",), ("anomaly",)])
def test_where_no_number_of_pairs_varies_what_could_be_n_is_named(shown, tmp_path, command):
    results = small(tmp_path / "study", {"receivers": (1, 2, 3), "share": (0.5, 1), "offload": ("on", "off"), "flows": (3, 4)})
    name, *more = command
    code, _, err = shown(name, results, *RATE, *more)
    assert code == codes.USAGE
    assert f"twinbed: {results}: no number of pairs varies" in err
    assert "choose --over FACTOR from: receivers, flows" in err


def test_one_run_at_an_n_is_left_out_and_refused_where_it_is_all_there_is(shown, tmp_path):
    file = tmp_path / "few.csv"
    asked = ("capacity", file, "--response", "rate", "--at-least", "4")
    file.write_text("pairs,rate\n1,5\n1,5.1\n2,5\n2,5.1\n4,5\n")
    code, out, _ = shown(*asked)
    assert code == codes.DONE and out.startswith("Rate at least 4: at least 2 pairs: 98")
    assert "larger N were not tested.\n" in out and "\nLeft out: 1 runs alone at their N.\n" in out
    file.write_text("pairs,rate\n1,5\n2,5\n")
    code, _, err = shown(*asked)
    assert code == codes.USAGE and "1 run at N = 1" in err
    file.write_text("pairs,rate\n1,5\n2,5\n2,6\n")
    code, _, err = shown(*asked[:-1], "0.9", "--of-one")
    assert code == codes.USAGE and "1 run at N = 1" in err


@pytest.mark.parametrize(
    ("command", "table", "why"),
    [
        (("capacity", "--per-pair", "--at-least", "0.9", "--of-one"), "statements", "no runs at N = 1, to which"),
        (("anomaly",), "faster", "no runs at N = 1, which"),
        (("contention",), "detectors", "pairs has 2 levels, and a curve needs at least 4 to show a bend"),
    ],
)
def test_a_combination_that_nothing_can_be_said_of_costs_no_other(shown, results, tmp_path, command, table, why):
    """Of the fast testbed only runs at 2 and 4 pairs are left."""
    folder = tmp_path / "study"
    shutil.copytree(results, folder, ignore=shutil.ignore_patterns("tables"))
    for file in folder.glob("runs/*/run.json"):
        record = json.loads(file.read_text())
        if record["levels"]["testbed"] == "fast" and record["levels"]["pairs"] not in (2, 4):
            file.write_text(json.dumps({**record, "status": "failed", "failed_phase": "workload", "reason": "gone"}))
    name, *more = command
    code, out, _ = shown(name, folder, *RATE, *more, "--format", "json")
    assert code == codes.DONE
    found = json.loads(out)
    assert {row["testbed"] for row in found[table]} == {"slow"}
    [(reason, count)] = [each for each in found["left_out"].items() if each[0] != "failed runs"]
    assert reason.startswith(f"runs of testbed fast: {why}") and count == 16


@pytest.fixture
def half_failed(tmp_path: Path) -> Path:
    """Rates that stay; of six replicates two failed at 4 pairs, and all at 8."""
    folder = small(tmp_path / "study", {"pairs": (1, 2, 4, 8)})
    for file in folder.glob("runs/*/run.json"):
        record = json.loads(file.read_text())
        if record["levels"]["pairs"] == 8 or (record["levels"]["pairs"] == 4 and record["replicate"] < 2):
            record |= {"status": "failed", "failed_phase": "workload", "reason": "memory ran out"}
            file.write_text(json.dumps(record))
    return folder


@pytest.mark.parametrize("command", [("capacity", "--per-pair", "--at-least", "0.9", "--of-one"), ("anomaly",)])
def test_failed_runs_are_said_with_where_they_failed(shown, half_failed, command):
    name, *more = command
    code, out, _ = shown(name, half_failed, *RATE, *more)
    assert code == codes.DONE and "\nLeft out: 8 failed runs.\n" in out
    assert "(bed, 2 of 6 at pairs 4, 6 of 6 at pairs 8: workload: memory ran out)" in out
    assert "were tested" not in out, "8 pairs were tested, and nothing is known of them"


@pytest.mark.parametrize("name", ["contention", "anomaly"])
def test_files_are_no_results(shown, name):
    code, _, err = shown(name, LOSS)
    assert code == codes.USAGE and "give a results folder" in err
