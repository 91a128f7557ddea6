"""The matrix of what a machine can do: grouped, each thing with its reason and mend; nothing optional makes it fail."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from twinbed.backgrounds.stress import stress
from twinbed.cli.check import _lines, command
from twinbed.contracts import driver as contracts
from twinbed.contracts.bed import Applied, Bed
from twinbed.contracts.check import Check
from twinbed.contracts.params import DriverParams
from twinbed.contracts.plugins import Plugins
from twinbed.contracts.site import Installed, Site
from twinbed.hosts import cgroups
from twinbed.hosts.cgroups import Limits
from twinbed.hosts.error import HostError
from twinbed.image import Image
from twinbed.lab import matrix, preflight, settings
from twinbed.testbeds.container import _limited
from twinbed.testbeds.qemu import abilities, qemu, snapshot

IMAGE = Image("0", Path("r"), Path("d"), "erofs", Path("k"), Path("i"), "6.1", {})


class NoSettings(DriverParams):
    pass


class NeedsHosts(DriverParams):
    hosts: dict[str, str]


class Pair(contracts.Driver[Any]):
    """As a driver is, with a pair of hosts that nothing can be started on."""

    summary = ""

    def __init__(self, name: str, params: type[DriverParams] = NoSettings, refused: str = "", dies: str = "") -> None:
        self.name, self.params, self.refused, self.dies = name, params, refused, dies

    def check(self, params: Any) -> Sequence[Check]:
        return [Check("overlay", not self.refused, self.refused, "modprobe overlay")]

    @contextlib.contextmanager
    def up(self, params: Any, topology: Any, site: Any) -> Iterator[Bed]:
        if self.dies:
            raise HostError(self.dies)
        yield Bed({}, {"client": "10.0.0.1", "server": "10.0.0.2"}, [], [Applied("client", "mtu", 1500, 1400, "ip")], {})


def tried(
    monkeypatch: pytest.MonkeyPatch, *drivers: Any, image: bool = True, boot: bool = False
) -> dict[tuple[str, str], Check]:
    monkeypatch.setattr(preflight, "machine", lambda: [Check("lab", image, "namespaces"), Check("HTB", True, "tc")])
    monkeypatch.setattr(matrix, "_installed", lambda: Installed(Path("p"), IMAGE))
    monkeypatch.setattr(matrix, "_settings", lambda _: [])
    monkeypatch.setattr(matrix, "_network", lambda _: [matrix._of_the_network(Check("HTB", True, "made", required=False))])
    plugins = Plugins(drivers={each.name: each for each in drivers}, instruments={}, workloads={}, backgrounds={})
    found = matrix.matrix(plugins, boot=boot)
    groups = [matrix.GROUPS.index(check.group) for check in found]
    assert groups == sorted(groups)
    return {(check.group, check.what): check for check in found}


def test_what_the_machine_lacks_is_not_tried_on(monkeypatch: pytest.MonkeyPatch) -> None:
    found = tried(monkeypatch, Pair("container"), image=False)
    assert not found["machine", "lab"].works and found["machine", "lab"].required
    container = found["driver", "container"]
    assert (container.works, container.tried, container.required) == (False, False, False)


def test_only_the_machine_itself_is_required(monkeypatch: pytest.MonkeyPatch) -> None:
    found = tried(monkeypatch, Pair("container", dies="no\n  room"))
    assert {what for (_, what), check in found.items() if check.required} == {"lab"}
    assert (found["driver", "container"].works, found["driver", "container"].found) == (False, "no room")
    assert found["parameter", "HTB"].works


def test_what_the_fabric_can_do_is_sorted_by_what_it_is() -> None:
    named = {
        "switch: bridge": ("switch", "bridge"),
        "switch: bridge, vlan": ("switch", "bridge, vlan"),
        "switch: openvswitch-netdev, trunk: gre": ("trunk", "gre on openvswitch-netdev"),
        "netem": ("parameter", "netem"),
        "delay line": ("parameter", "delay line"),
    }
    for what, (group, name) in named.items():
        check = matrix._of_the_network(Check(what, True, ""))
        assert (check.group, check.what) == (group, name)


def test_a_driver_that_the_machine_refuses_says_why_and_the_mend(monkeypatch: pytest.MonkeyPatch) -> None:
    check = tried(monkeypatch, Pair("container", refused="not in the kernel"))["driver", "container"]
    assert (check.works, check.found, check.mend) == (False, "overlay: not in the kernel", "modprobe overlay")


def test_a_driver_that_needs_settings_is_not_tried(monkeypatch: pytest.MonkeyPatch) -> None:
    check = tried(monkeypatch, Pair("remote", NeedsHosts))["driver", "remote"]
    assert (check.tried, check.works) == (False, False) and "twinbed check STUDY" in check.mend


def test_hosts_that_come_up_otherwise_than_asked_do_not_work(monkeypatch: pytest.MonkeyPatch) -> None:
    check = tried(monkeypatch, Pair("container"))["driver", "container"]
    assert (check.works, check.found) == (False, "client: mtu should be 1500 but `ip` shows 1400")


def test_what_tests_need_is_left_out(monkeypatch: pytest.MonkeyPatch) -> None:
    assert not any(group == "driver" for group, _ in tried(monkeypatch, Pair("fake")))


def test_a_background_load_that_does_not_start_says_how_to_get_it(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """On the machine it is a package of the machine's, on hosts one of the image."""

    class Missing:
        def start(self, *_: Any, **__: Any) -> Any:
            raise HostError("stress-ng: no such program")

    monkeypatch.setattr(preflight.os, "geteuid", lambda: 0)
    bed = Bed(dict.fromkeys(("machine", "client", "server"), Missing()), {"server": "10.77.0.2"}, [], [], {})
    for host in bed.hosts.values():
        vars(host).update(artifacts=str(tmp_path), bin="/usr/bin")
    site = Site("check", Path("p"), IMAGE, tmp_path, (0,))
    found = {check.what: check for check in matrix._background(stress, bed, site)}
    assert {what: check.mend for what, check in found.items()} == {
        "stress, where: machine": "apt-get install stress-ng",
        "stress, where: hosts": "twinbed image build makes the image with today's packages",
    }
    assert not any(check.works or check.required for check in found.values())
    assert {(check.group, check.found) for check in found.values()} == {("background", "stress-ng: no such program")}


def test_a_limit_of_containers_that_cannot_be_had_says_why(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cgroups, "hierarchies", dict)
    check = _limited(None, "container memory", Limits(memory_bytes=2**26))  # type: ignore[arg-type]
    assert (check.what, check.works, check.required, check.group) == ("container memory", False, False, "parameter")
    assert "can make no group" in check.found and check.mend


@pytest.fixture
def cached(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(abilities, "cache_root", lambda: tmp_path)
    monkeypatch.setattr(snapshot, "PROGRAM", "sh")
    monkeypatch.setattr(type(qemu), "check", lambda *_: [])


def test_a_nic_is_booted_when_asked_for_and_remembered(cached: None, monkeypatch: pytest.MonkeyPatch) -> None:
    booted: list[str] = []

    def boot(_driver: Any, settings: Any, _installed: Any) -> dict[str, Any]:
        booted.append(settings.nic)
        works = settings.nic != "rtl8139"
        return {"works": works, "found": "booted" if works else "client: no carrier"}

    monkeypatch.setattr(abilities, "_boot_pair", boot)
    installed = Installed(Path("p"), IMAGE)
    first = {check.what: check for check in abilities.tried_nics(qemu, installed, boot=False)}
    assert not booted and not any(check.tried or check.works for check in first.values())
    assert all("--boot" in check.mend for check in first.values())
    for found in (abilities.tried_nics(qemu, installed, boot=True), abilities.tried_nics(qemu, installed, boot=False)):
        by_name = {check.what: check for check in found}
        assert (by_name["e1000"].works, by_name["e1000"].found) == (True, "booted")
        assert (by_name["rtl8139"].works, by_name["rtl8139"].tried) == (False, True)
        assert by_name["rtl8139"].mend
    assert len(booted) == len(set(booted)) == len(first)


def test_a_nic_that_is_refused_is_never_booted(cached: None, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(type(qemu), "check", lambda *_: [Check("NIC", False, "QEMU has none", "QEMU 8.0")])
    monkeypatch.setattr(abilities, "_boot_pair", lambda *_: pytest.fail("booted"))
    for check in abilities.tried_nics(qemu, Installed(Path("p"), IMAGE), boot=True):
        assert (check.works, check.tried, check.found, check.mend) == (False, True, "QEMU has none", "QEMU 8.0")


def test_a_congestion_control_that_is_there_and_not_allowed_has_another_mend(monkeypatch: pytest.MonkeyPatch) -> None:
    class Machine:
        def read(self, path: str) -> bytes:
            return b"reno cubic\n"

        def write(self, path: str, content: bytes) -> None:
            raise HostError("machine: cannot write: Operation not permitted")

    monkeypatch.setattr(settings.os, "geteuid", lambda: 0)
    cubic, dctcp = (
        settings._congestion_control(Machine(), name, f"tcp_{name}")  # type: ignore[arg-type]
        for name in ("cubic", "dctcp")
    )
    assert cubic.mend.startswith("sysctl -w net.ipv4.tcp_allowed_congestion_control='reno cubic'; ")
    assert (dctcp.found, dctcp.mend.partition(";")[0]) == ("the kernel has only reno, cubic", "modprobe tcp_dctcp")


def test_the_text_folds_and_says_a_mend_of_several_once() -> None:
    untried = [Check(name, False, "not booted", "boot", required=False, group="NIC", tried=False) for name in ("a", "b")]
    checks = [*untried, Check("c", True, " ".join(["word"] * 30), group="parameter")]
    lines = list(_lines(checks, 60))
    assert lines[:5] == ["NICs of guests", "  -      a  not booted", "  -      b  not booted", "            fix: boot", ""]
    assert max(map(len, lines)) <= 60
    assert lines[-2:] == ["Ready: everything that is needed works here.", "2 of 3 were not tested."]


def test_the_text_says_a_long_reason_once_and_not_all_of_it() -> None:
    reason = " ".join(["because"] * 60)
    checks = [Check(name, False, reason, "mend", required=False, group="switch") for name in ("one", "two")]
    lines = list(_lines(checks, 100))
    assert lines[-5:-3] == ["  no     two  same as one", "              fix: mend"]
    assert sum(line.count("because") for line in lines) < 45 and lines[-6].endswith("...")


def test_nothing_optional_makes_it_fail(monkeypatch: pytest.MonkeyPatch) -> None:
    optional = Check("netem", False, "not in the kernel", "modprobe sch_netem", required=False, group="parameter")
    needed = Check("lab", False, "no namespaces", "run as root", group="machine")
    for checks, code in (([optional], 0), ([optional, needed], 3)):
        monkeypatch.setattr(matrix, "matrix", lambda _, *, boot, checks=checks: checks)
        assert CliRunner().invoke(command, [], standalone_mode=False).return_value == code


def test_a_profile_is_of_a_study() -> None:
    done = CliRunner().invoke(command, ["--profile", "quick"])
    assert done.exit_code == 2 and "give STUDY too" in done.output
