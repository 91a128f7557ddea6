"""What differs between two testbeds, on planted passports."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from synthetic_results import planted_response, write_run
from twinbed.cli.main import run
from twinbed.observations.suspicion import suspicion

PHYSICAL = {
    "client": {"kernel": "5.4.0", "NIC driver": "ixgbe", "offload gro": "on", "congestion control": "cubic", "QEMU": None},
    "server": {"kernel": "5.4.0", "NIC driver": "ixgbe", "offload gro": "on", "congestion control": "cubic", "mac": "a"},
}
VIRTUAL = {
    "client1": {"kernel": "6.1.0", "NIC driver": "e1000", "offload gro": "on", "congestion control": "cubic", "QEMU": "7.2"},
    "client2": {"kernel": "6.1.0", "NIC driver": "e1000", "offload gro": "off", "congestion control": "cubic", "QEMU": "7.2"},
    "server1": {"kernel": "6.1.0", "NIC driver": "e1000", "offload gro": "on", "congestion control": "cubic", "mac": "b"},
}


def results(folder: Path, testbeds: Mapping[str, Mapping[str, Any]], **rest: Any) -> str:
    respond = planted_response(dict.fromkeys(testbeds, 1.0), 0.0, 1)
    for name, passport in testbeds.items():
        write_run(folder, name, {"testbed": name}, 0, respond(name, {}, 0), passport=passport, **rest)
    study = {"study": folder.name, "testbeds": {name: {} for name in testbeds}, "reference": next(iter(testbeds)), "runs": []}
    (folder / "study.json").write_text(json.dumps(study))
    return str(folder)


def rows(capsys: pytest.CaptureFixture[str], *arguments: str) -> list[dict[str, Any]]:
    assert run(["passport", *arguments, "--format", "json"]) == 0
    (data,) = json.loads(capsys.readouterr().out)
    differences: list[dict[str, Any]] = data["differences"]
    return differences


def test_testbeds_of_one_study_are_compared_with_its_reference(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    folder = results(tmp_path / "r", {"physical": PHYSICAL, "e1000": VIRTUAL})
    table = rows(capsys, folder)
    assert [(row["place"], row["fact"]) for row in table] == [
        ("client, server", "NIC driver"),
        ("client", "offload gro"),
        ("client, server", "kernel"),
        ("client", "QEMU"),
    ], "the most suspicious first; what is the same, and names of things, are left out"
    assert (table[0]["left"], table[0]["right"]) == (["ixgbe"], ["e1000"])
    assert (table[1]["right"], table[1]["varies"]) == (["off", "on"], True), "hosts with a number are of one role"
    assert table[3]["left"] == [], "null is not known, rather than another value"
    assert ("server", "mac") in {(row["place"], row["fact"]) for row in rows(capsys, folder, "--all")}


def test_two_results_and_what_their_runs_were_told(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    applied = [{"subject": "client", "setting": "offload.gro", "asked": "on", "found": "on", "source": "ethtool -k"}]
    one = results(tmp_path / "a", {"physical": PHYSICAL}, applied=applied)
    other = results(tmp_path / "b", {"physical": PHYSICAL, "e1000": VIRTUAL}, workload={"seconds": 9.0}, applied=applied)
    (row,) = rows(capsys, one, f"{other}:physical")
    assert (row["kind"], row["fact"], row["left"], row["right"]) == ("measurement", "workload.seconds", ["0.0"], ["9.0"])
    assert run(["passport", one, f"{other}:physical"]) == 0
    text = capsys.readouterr().out
    assert f"B: {other}:physical\nA and B: 1 differ, " in text
    assert "the workload itself was not the same" in text
    assert text.rstrip().endswith("settings: workload.seconds  0.0  9.0")
    assert run(["passport", one, other, "--format", "csv"]) == 0
    assert capsys.readouterr().out.startswith("between,and,kind,place,fact,left,right,varies,why\n")


def test_what_cannot_be_compared_is_refused(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    one = results(tmp_path / "a", {"physical": PHYSICAL})
    assert run(["passport", one]) == 2
    assert "nothing to compare it with" in capsys.readouterr().err
    assert run(["passport", f"{one}:virtual", one]) == 2
    assert "it has: physical" in capsys.readouterr().err
    assert run(["passport", one, one, one]) == 2


@pytest.mark.parametrize(
    ("place", "fact", "kind"),
    [
        ("client", "accelerator", "virtualisation"),
        ("settings", "testbed.kind", "virtualisation"),
        ("settings", "workload.duration", "measurement"),
        ("settings", "topology.link.rate", "link"),
        ("client", "NIC firmware", "firmware"),
        ("client", "offload tso", "offloads"),
        ("client", "tcp rmem", "TCP"),
        ("machine", "switch", "switch"),
        ("client", "nginx version", "programs"),
        ("image", "nginx", "programs"),
        ("image", "dash", "package"),
        ("client", "SMT", "CPU and memory"),
        ("client", "kernel command line", "name"),
        ("client", "colour", "other"),
    ],
)
def test_kinds_of_facts(place: str, fact: str, kind: str) -> None:
    assert suspicion(place, fact).kind == kind
