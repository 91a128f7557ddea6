"""The folder names of the harness "que". Expected: as its ``run.bash`` makes names and its ``utils.py`` takes them apart."""

from __future__ import annotations

import pytest

from twinbed.imports.layout.run_key import NotAssigned
from twinbed.imports.layout.sandia_layout import SandiaLayout

PLAIN = {
    "workload": "http",
    "threads": 1,
    "pairs": 1,
    "vcpus": 1,
    "rate_mbit": 1000,
    "offload": True,
    "instrumented": False,
    "pinned": False,
    "gre": False,
    "colocated": False,
    "hyperthreading": True,
    "stress_cpu": 0,
    "stress_io": 0,
    "stress_mem": 0,
}


def test_a_folder_of_virtual_runs() -> None:
    found = SandiaLayout.of([]).assign("out/kvm-virtio-net-pci-1-on-1000-1-1-http/3/que17/client/ab.out")
    assert (found.testbed, found.replicate, found.host) == ("virtio", "3", "")
    assert (found.facts, found.levels) == (PLAIN, {})


def test_what_varies_in_a_folder_is_a_factor() -> None:
    cells = ("kvm-e1000-1-on-1000-1-1-http", "physical-10g-on-10-http-instr")
    paths = [f"{cell}/1/client/ab.out" for cell in cells]
    e1000, physical = (SandiaLayout.of(paths).assign(path) for path in paths)
    assert (e1000.testbed, e1000.levels) == ("e1000", {"threads": 1, "rate_mbit": 1000, "instrumented": False})
    assert (physical.testbed, physical.levels) == ("physical", {"threads": 10, "rate_mbit": 10000, "instrumented": True})
    assert e1000.facts == physical.facts == {name: PLAIN[name] for name in PLAIN if name not in e1000.levels}


def test_a_physical_run_is_one_pair_of_one_vcpu_and_its_link_is_its_rate() -> None:
    found = SandiaLayout.of([]).assign("physical-1g-on-1-http/3/client/ab.out")
    assert (found.testbed, found.facts) == ("physical", PLAIN)


def test_all_extras() -> None:
    name = "container-host-2-off-none-10-40-http16MB-instr-pinning-gre-colocated-stresscpu4-stressio2-stressmem16-noht"
    found = SandiaLayout.of([]).assign(f"{name}/1/vmstat.en7")
    assert (found.testbed, found.host) == ("container", "en7")
    assert found.facts == {
        "workload": "http16MB",
        "threads": 10,
        "pairs": 40,
        "vcpus": 2,
        "rate_mbit": None,
        "offload": False,
        "instrumented": True,
        "pinned": True,
        "gre": True,
        "colocated": True,
        "hyperthreading": False,
        "stress_cpu": 4,
        "stress_io": 2,
        "stress_mem": 16,
    }


def test_pairs_are_numbered_and_of_snapshots_the_last_is_read() -> None:
    cell = "kvm-e1000-1-on-none-1-2-http/1"
    paths = [f"{cell}/que{pair}/client/{file}" for pair in (90210, 417) for file in ("ab.out", "ethtool.2", "ethtool.10")]
    sandia_layout = SandiaLayout.of([*paths, f"{cell}/que417/server.pcap"])
    hosts = {path.removeprefix(f"{cell}/"): sandia_layout.assign(path).host for path in paths if not path.endswith(".2")}
    assert hosts == {
        "que417/client/ab.out": "client1",
        "que417/client/ethtool.10": "client1",
        "que90210/client/ab.out": "client2",
        "que90210/client/ethtool.10": "client2",
    }
    assert sandia_layout.assign(f"{cell}/que417/server.pcap").host == "server1"
    assert sandia_layout.assign(f"{cell}/que417/server.pcap").optional
    assert not sandia_layout.assign(f"{cell}/que417/client/ab.out").optional
    for name in ("experiment.out", "interrupts.before.en7", "que417/client/interrupts", "miniccc_responses/1/stdout"):
        with pytest.raises(NotAssigned, match="not read"):
            sandia_layout.assign(f"{cell}/{name}")
    with pytest.raises(NotAssigned, match="only the last"):
        sandia_layout.assign(f"{cell}/que417/client/ethtool.2")


@pytest.mark.parametrize("path", ["kvm-e1000-1-on/1/ab.out", "notes/1/ab.out", "physical-1g-on-1-http/x/ab.out", "a", "1/2/3"])
def test_other_folders_are_none_of_it(path: str) -> None:
    with pytest.raises(NotAssigned):
        SandiaLayout.of([path]).assign(path)
