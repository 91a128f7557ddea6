"""``twinbed init``: every study that it writes is read without a problem, plans, and passes the schema for editors."""

from __future__ import annotations

import itertools
from pathlib import Path

import pytest

from twinbed import design, registry
from twinbed.cli import main
from twinbed.model.nic import NIC_MODELS
from twinbed.study.loading import load
from twinbed.study.study import Study


def written(tmp_path: Path, *options: str) -> Study:
    file = tmp_path / "mine.yaml"
    assert main.run(["init", str(file), *options]) == 0
    return load(file.read_text(), str(file), registry.catalogue())


@pytest.mark.parametrize(("driver", "workload"), [*itertools.product(registry.PLUGINS.drivers, registry.PLUGINS.workloads)])
def test_every_driver_and_workload_is_read(driver: str, workload: str, tmp_path: Path) -> None:
    study = written(tmp_path, "--testbeds", driver, "--workload", workload, "--record", "none")
    assert {(cell.testbed.kind, cell.workload.kind) for cell in study.cells} == {(driver, workload)}
    assert len(design.runs(study)) == 5
    quick = load((tmp_path / "mine.yaml").read_text(), "mine.yaml", registry.catalogue(), profile="quick")
    assert len(design.runs(quick)) == 3


@pytest.mark.parametrize("testbeds", [driver for driver in registry.PLUGINS.drivers if driver != "fake"])
def test_it_plans(testbeds: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    written(tmp_path, "--testbeds", testbeds)
    assert main.run(["plan", str(tmp_path / "mine.yaml")]) == 0
    assert "mine: " in capsys.readouterr().out


def test_one_command_writes_what_its_help_says(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main.run(["init", "--help"]) == 0
    example = capsys.readouterr().out.partition("twinbed init --workload wrk ")[2].partition("\n")[0]
    study = written(tmp_path, "--workload", "wrk", *example.split())
    assert study.factors == {"testbed": ("container", "virtio"), "keep_alive": ("on", "off")}
    assert study.reference == "container"
    for cell in study.cells:
        assert cell.workload.params.tool == "wrk"
        assert (cell.topology.link.rate, cell.topology.link.delay) == (100_000_000, 0.005)
    assert {cell.testbed.params.nic for cell in study.cells if cell.testbed.kind == "qemu"} == {"virtio-net-pci"}
    assert {cell.workload.params.keep_alive for cell in study.cells} == {True, False}


def test_several_values_are_a_factor(tmp_path: Path) -> None:
    study = written(tmp_path, "--workload", "iperf3", "--rate", "100mbit,1gbit", "--delay", "0ms,5ms", "--payload", "1400B")
    assert study.factors["topology.link.rate"] == ("100mbit", "1gbit")
    assert study.factors["topology.link.delay"] == ("0ms", "5ms")
    assert {cell.workload.params.payload for cell in study.cells} == {1400}


@pytest.mark.parametrize("name", NIC_MODELS)
def test_every_card_is_a_testbed(name: str, tmp_path: Path) -> None:
    (cell,) = written(tmp_path, "--testbeds", name).cells
    assert cell.testbed.params.nic == name


def test_a_file_is_never_written_over(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = tmp_path / "mine.yaml"
    file.write_text("mine")
    assert main.run(["init", str(file)]) == 2
    assert "exists" in capsys.readouterr().err
    assert file.read_text() == "mine"


@pytest.mark.parametrize(
    ("options", "near"),
    [
        (["--testbeds", "contaner"], "'container'"),
        (["--workload", "iperf"], "'iperf3'"),
        (["--vary", "keepalive=on,off"], "'keep_alive'"),
        (["--rate", "fast"], "allowed: a rate"),
        (["--record", "packet"], "'packets'"),
        (["--vary", "keep_alive"], "such as keep_alive=on,off"),
    ],
)
def test_what_is_wrong_is_said_and_nothing_is_written(
    options: list[str], near: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main.run(["init", str(tmp_path / "mine.yaml"), *options]) == 2
    assert near in capsys.readouterr().err
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize("name", ["two words", "ünï", "...", "x" * 100])
def test_any_name_of_a_file_gives_a_name_of_a_study(name: str, tmp_path: Path) -> None:
    file = tmp_path / f"{name}.yaml"
    assert main.run(["init", str(file)]) == 0
    assert load(file.read_text(), str(file), registry.catalogue()).cells
