"""What cannot be had fails with the reason, before or while a testbed comes up; and its namespace goes in every case."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

import pytest

from minimega import recording
from minimega.standin import Fault, StandIn, leftovers
from twinbed.contracts.site import Site
from twinbed.hosts.error import HostError
from twinbed.model.topology import Link, Topology
from twinbed.registry import PLUGINS
from twinbed.testbeds.minimega import launch, shaping
from twinbed.testbeds.minimega.machine import Machine

DRIVER = PLUGINS.drivers["minimega"]


def fails(server: StandIn, site: Callable[..., Site], topology: Topology | None = None, **settings: Any) -> str:
    params = DRIVER.params(**({"base": str(server.base), "kernel": "/opt/k"} | settings))
    with pytest.raises(HostError) as failure, DRIVER.up(params, topology or Topology(), site()):
        pass
    assert set(server.spaces) == {"minimega"}, "the namespace is cleared"
    assert list(server.files.iterdir()) == [], "the files are deleted"
    assert leftovers(server) == [], "there is no note"
    return f"{failure.value}; {failure.value.advice}"


def test_a_card_that_qemu_lacks(server: StandIn, site: Callable[..., Site]) -> None:
    """Recorded: the launch answers without an error, and `vm info` says ERROR."""
    said = fails(server, site, server_nic="nosuchnic")
    assert "server: minimega reports ERROR: unable to create tap 0: unable to get bridge LAN" in said
    assert "QEMU has no card 'nosuchnic': minimega took it for a network's name" in said


def test_the_recorded_broken_guest_is_understood() -> None:
    row, data = recording.machine("broken")
    with pytest.raises(
        HostError, match=r"broken: minimega reports ERROR: unable to create tap 0.*nosuchnic.*'e1000' for the card"
    ):
        launch.not_failed(Machine({"host": "node1", **row}, data), "nosuchnic")


def test_a_card_that_minimega_refuses_itself(server: StandIn, site: Callable[..., Site]) -> None:
    """Recorded from minimega 3.1.0: `vm config net LAN,02:00:0a:4d:00:01,nosuchnic` is answered `malformed netspec`."""
    server.faults.append(Fault("vm config net", "error", "malformed netspec"))
    said = fails(server, site, nic="nosuchnic")
    assert "malformed netspec" in said
    assert "not nosuchnic" in said
    assert "such as e1000" in said


def test_a_guest_without_a_client(server: StandIn, site: Callable[..., Site], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(launch, "BOOT_LIMIT_S", 0.3)
    monkeypatch.setattr(launch, "BOOT_LIMIT_EACH_S", 0.1)
    server.boots = False
    said = fails(server, site)
    assert re.search(r"after 0\.5 s no client \(miniccc\) is connected from server \(RUNNING\), client \(RUNNING\)", said)


def test_a_files_folder_that_is_elsewhere(server: StandIn, site: Callable[..., Site]) -> None:
    """What is put into the folder that it is taken to be does not stay there."""
    server.files = server.base / "elsewhere"
    server.files.mkdir()
    assert re.search(r"`file list` lacks .*/files/twinbed_\w+-probe.*-filepath", fails(server, site))
    assert list((server.base / "files").iterdir()) == []
    (server.base / "files").rmdir()
    assert "cannot be written: No such file or directory" in fails(server, site)
    assert not (server.base / "files").exists()


@pytest.mark.parametrize(
    ("link", "says"),
    [
        ({"rate": 10**8, "delay": 0.01}, "rate together with delay or loss"),
        ({"rate": 10**8, "loss": 0.01}, "rate together with delay or loss"),
        ({"rate": 10**8 + 1}, "whole kbit, mbit or gbit"),
        ({"rate": 10**8, "burst": 10**6}, "link burst"),
        ({"delay": 0.01, "jitter": 0.001}, "link jitter"),
        ({"delay": 0.01, "emulated_at": "hosts"}, "emulated_at: hosts"),
        ({"mtu": 9000}, "mtu 9000"),
    ],
)
def test_links_that_qos_cannot_make(server: StandIn, site: Callable[..., Site], link: dict[str, Any], says: str) -> None:
    assert says in fails(server, site, Topology(link=Link(**link)))
    assert server.heard == [], "refused before anything is made"


def test_hosts_beside_the_workloads_are_refused(server: StandIn, site: Callable[..., Site]) -> None:
    assert "set bystanders: 0" in fails(server, site, Topology(bystanders=1))
    assert server.heard == []


def test_a_kernel_without_netem_says_so_itself(server: StandIn, site: Callable[..., Site]) -> None:
    assert "Specified qdisc kind is unknown" in fails(server, site, Topology(link=Link(delay=0.01)))


@pytest.mark.parametrize("text", ["vm config memory", "vm launch kvm client", "vm start", "vm info", "cc clients", "cc filter"])
@pytest.mark.parametrize("kind", ["error", "half", "garbage"])
def test_a_fault_anywhere_ends_in_its_own_text(server: StandIn, site: Callable[..., Site], text: str, kind: str) -> None:
    server.faults.append(Fault(text, kind, "planted", times=2))
    assert re.search(r"planted|closed before|unknown form", fails(server, site))


def test_the_recorded_qos_column() -> None:
    said = recording.answer("namespace lab1 vm info", 2)
    rows = {row[1]: dict(zip(said["Header"], row, strict=True)) for row in said["Tabular"]}
    client = Machine({"host": "node1", **rows["client"]}, {})
    assert all(item.agrees for item in shaping.applied(client, Link(rate=10**8)))
    assert not all(item.agrees for item in shaping.applied(client, Link(rate=10**7)))
    server = Machine({"host": "node1", **rows["server"]}, {})
    assert not all(item.agrees for item in shaping.applied(server, Link(rate=10**8)))
    assert all(item.agrees for item in shaping.applied(server, Link()))
    assert not all(item.agrees for item in shaping.applied(client, Link()))


@pytest.mark.parametrize(
    ("settings", "says"),
    [
        ({}, "set kernel and initrd, or disk "),
        ({"type": "container"}, "type container needs filesystem"),
        ({"kernel": "/k", "filesystem": "/f"}, "type kvm takes no filesystem"),
        ({"disk": "/d", "append": "quiet"}, "append is a kernel's command line"),
        ({"kernel": "/k", "append": " "}, "append is empty"),
        ({"type": "container", "filesystem": "/f", "control": "virtio-serial"}, "set control: auto or control: cc"),
        ({"type": "container", "filesystem": "/f", "cpus": "auto"}, "cpus: auto pins QEMU's threads, and containers have none"),
    ],
)
def test_settings_that_do_not_go_together(settings: dict[str, Any], says: str) -> None:
    with pytest.raises(ValueError, match=says):
        DRIVER.params(**settings)


def test_the_check_tries_and_leaves_nothing(server: StandIn) -> None:
    kernel = server.base / "kernel"
    kernel.write_bytes(b"k")
    params = DRIVER.params(base=str(server.base), kernel=str(kernel), initrd="/not/there")
    found = {check.what: check for check in DRIVER.check(params)}
    assert found["minimega"].works
    assert found["minimega"].found.startswith("minimega 3.0")
    assert found["minimega namespace"].works
    assert found[f"kernel {kernel}"].works
    assert not found["initrd /not/there"].works
    assert set(server.spaces) == {"minimega"}


def test_the_check_without_a_minimega() -> None:
    (check,) = DRIVER.check(DRIVER.params(base="/nowhere", kernel="/k"))
    assert not check.works
    assert "/nowhere/minimega" in check.found
    assert "minimega -nostdin" in check.mend
