"""What this machine can do: each thing that does not work says how to mend it, and looking changes nothing."""

from __future__ import annotations

import collections
import json
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import cast

import pytest
from click.testing import CliRunner
from tests.command import twinbed
from tests.conftest import lab_remains, stays

from twinbed.cli.check import command
from twinbed.contracts.check import Check
from twinbed.hosts.error import HostError
from twinbed.hosts.lab import Lab
from twinbed.image import Image
from twinbed.image.failure import ImageFailed
from twinbed.instruments.latency import LatencyParams
from twinbed.instruments.packets import PacketsParams
from twinbed.lab import matrix, preflight
from twinbed.metrics.events import NET
from twinbed.registry import PLUGINS
from twinbed.testbeds import container as container_module


@pytest.fixture
def as_user(monkeypatch: pytest.MonkeyPatch) -> Callable[[int], None]:
    return lambda user: monkeypatch.setattr(preflight.os, "geteuid", lambda: user)


def without(monkeypatch: pytest.MonkeyPatch, *missing: str) -> None:
    monkeypatch.setattr(preflight.shutil, "which", lambda tool, path=None: None if tool in missing else f"/usr/bin/{tool}")


def test_tools_that_are_missing_are_named_with_their_packages(
    monkeypatch: pytest.MonkeyPatch, as_user: Callable[[int], None]
) -> None:
    without(monkeypatch, "ip", "tc", "ethtool")
    for user, sudo in ((0, ""), (1000, "sudo ")):
        as_user(user)
        (check,) = preflight._tools(preflight.PURPOSES["container"])
        assert (check.works, check.required) == (False, True)
        assert check.found == "not installed: ip, tc, ethtool"
        assert check.mend == f"{sudo}apt-get install ethtool iproute2"


@pytest.mark.parametrize("built", [True, False])
def test_what_builds_an_image_is_needed_only_without_one(built: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    without(monkeypatch, "mmdebstrap", "mkfs.erofs")
    monkeypatch.setattr(preflight, "_image", lambda _required: Check("image", built, ""))
    monkeypatch.setattr(preflight, "_lab", lambda *_: [])
    tools = {check.what: check for check in preflight.machine()}["tools"]
    assert tools.works is built
    assert built or tools.mend.endswith("apt-get install erofs-utils mmdebstrap")


def test_an_image_that_is_not_built(monkeypatch: pytest.MonkeyPatch, as_user: Callable[[int], None]) -> None:
    monkeypatch.setattr(preflight, "find", lambda: None)
    as_user(0)
    assert preflight._image().mend == "twinbed image build"
    as_user(1000)
    mend = preflight._image().mend
    assert mend.startswith("sudo /") and mend.endswith(" -m twinbed.image"), "into root's own cache"


def test_an_image_that_is_broken(monkeypatch: pytest.MonkeyPatch) -> None:
    def broken() -> None:
        raise ImageFailed("manifest.json is cut off", advice="build it again")

    monkeypatch.setattr(preflight, "find", broken)
    assert preflight._image() == Check("image", False, "manifest.json is cut off", "build it again")


def test_a_probe_that_is_not_built(monkeypatch: pytest.MonkeyPatch) -> None:
    def missing() -> None:
        raise ImageFailed("no probe", advice="run `make setup`")

    monkeypatch.setattr(preflight, "probe_path", missing)
    assert preflight._lab(True, False) == [Check("lab", False, "no probe", "run `make setup`")]


@pytest.mark.parametrize(
    ("error", "found", "mend"),
    [
        (HostError("the lab did not start: unshare: Operation not permitted"), "Operation not permitted", "a kernel with"),
        (OSError(13, "Permission denied", "/run/x"), "/run/x: Permission denied", "run as root"),
    ],
)
def test_a_lab_that_cannot_be_held(
    error: Exception, found: str, mend: str, monkeypatch: pytest.MonkeyPatch, as_user: Callable[[int], None]
) -> None:
    def refuse(*_: object) -> None:
        raise error

    monkeypatch.setattr(preflight, "open_lab", refuse)
    as_user(0)
    (check,) = preflight._lab(True, False)
    assert not check.works
    assert found in check.found
    assert check.mend.startswith(mend)


@pytest.mark.parametrize(
    ("files", "mend"),
    [
        ({"user/max_user_namespaces": "0"}, "sudo sysctl -w user.max_user_namespaces=15000"),
        ({"kernel/unprivileged_userns_clone": "0"}, "sudo sysctl -w kernel.unprivileged_userns_clone=1"),
        (
            {"kernel/apparmor_restrict_unprivileged_userns": "1", "user/max_user_namespaces": "100"},
            "sudo sysctl -w kernel.apparmor_restrict_unprivileged_userns=0",
        ),
        ({"kernel/apparmor_restrict_unprivileged_userns": "0"}, "run as root"),
        ({}, "run as root"),
    ],
)
def test_namespaces_that_a_user_may_not_make(
    files: dict[str, str], mend: str, monkeypatch: pytest.MonkeyPatch, as_user: Callable[[int], None], tmp_path: Path
) -> None:
    for name, text in files.items():
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text(text + "\n")
    monkeypatch.setattr(
        preflight, "Path", lambda path: tmp_path if path == "/proc/sys" else tmp_path / Path(path).relative_to("/proc/sys")
    )
    as_user(1000)
    assert preflight._mend_namespaces() == mend


def test_parts_of_the_kernel_that_are_missing(probe: Path, monkeypatch: pytest.MonkeyPatch, leaves_nothing: None) -> None:
    """Every trial is made to fail once: its plan asks for what no kernel has."""
    monkeypatch.setattr(preflight.bridge, "switch", lambda _: "link add x type no-such-kind\n")
    monkeypatch.setattr(preflight.shaping, "plan", lambda device, _: f"qdisc add dev {device} root no-such-qdisc\n")
    checks = {check.what: check for check in preflight._lab(True, False)}
    assert checks["lab"].works
    mends = {what: check.mend.removeprefix("sudo ") for what, check in checks.items() if not check.works}
    assert mends == {
        "bridge and veth": "modprobe -a bridge veth",
        "HTB": "modprobe -a sch_htb",
        "TBF": "modprobe -a sch_tbf",
    }
    assert "no-such-kind" in checks["bridge and veth"].found or "Unknown device type" in checks["bridge and veth"].found


def test_control_groups_and_leftovers_are_not_required(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(preflight, "cgroup_root", lambda: None)
    assert (preflight._cgroups().works, preflight._cgroups().required, preflight._cgroups().mend) == (
        False,
        False,
        "run as root",
    )
    monkeypatch.setattr(preflight, "leftovers", lambda: [(tmp_path / "twinbed-1", None)])
    check = preflight._leftovers()
    assert (check.works, check.required) == (False, False)
    assert "twinbed-1" in check.found
    assert check.mend.endswith("twinbed sweep")


def test_another_system(monkeypatch: pytest.MonkeyPatch) -> None:
    uname = collections.namedtuple("uname", "system release machine")
    monkeypatch.setattr(preflight.platform, "uname", lambda: uname("Linux", "6.1", "aarch64"))
    assert (preflight._system().works, preflight._system().mend) == (False, "Linux on x86_64 is needed")


def test_overlay_is_looked_for(monkeypatch: pytest.MonkeyPatch) -> None:
    class Nothing:
        def __init__(self, _: str) -> None: ...
        def read_text(self) -> str:
            return "nodev\tproc\n"

    monkeypatch.setattr(container_module, "Path", Nothing)
    (check,) = PLUGINS.drivers["container"].check(PLUGINS.drivers["container"].params())
    assert (check.works, check.mend) == (False, "modprobe overlay")


@pytest.mark.parametrize("rates_known", [True, False])
@pytest.mark.parametrize(("free", "needed", "works"), [(1000, 999, True), (1000, 1000, False), (0, 1, False)])
def test_room(free: int, needed: int, works: bool, rates_known: bool, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    usage = collections.namedtuple("usage", "free")
    asked = []
    monkeypatch.setattr(preflight.shutil, "disk_usage", lambda path: asked.append(path) or usage(free))
    check = preflight.disk_space(tmp_path / "not" / "yet", needed, rates_known)
    assert (check.works, check.required) == (works, rates_known)
    assert asked == [tmp_path], "of the file system that it will be on"
    assert "--output" in check.mend


def test_a_driver_is_asked_once_for_each_thing() -> None:
    container = PLUGINS.drivers["container"]
    assert len(preflight.study([("a", container, container.params()), ("b", container, container.params())])) == 1


# ---- the command


def test_check_in_every_format_changes_nothing(probe: Path, image: object, monkeypatch: pytest.MonkeyPatch) -> None:
    """All is tried once; the other formats print what was found then."""
    before = lab_remains()
    data = twinbed("check", "--format", "json")
    assert stays(before) == set()
    tried = [
        Check(
            row["what"],
            bool(row["works"]),
            row["found"],
            row["mend"] or "",
            row["required"],
            row["kind"],
            row["works"] is not None,
        )
        for row in json.loads(data.stdout)
    ]
    monkeypatch.setattr(matrix, "matrix", lambda *_, **__: tried)
    text, table = (CliRunner().invoke(command, ["--format", style], standalone_mode=False) for style in ("text", "csv"))
    rows = json.loads(data.stdout)
    assert {tuple(row) for row in rows} == {("kind", "what", "works", "required", "found", "mend")}
    assert table.output.splitlines()[0] == "kind,what,works,required,found,mend"
    broken = [row for row in rows if row["required"] and not row["works"]]
    assert all(row["found"] for row in rows)
    assert all(row["mend"] for row in rows if row["works"] is False)
    assert text.return_value == data.returncode == table.return_value == (3 if broken else 0)
    found = {(row["kind"], row["what"]): row["works"] for row in rows}
    assert found.keys() >= {("machine", "lab"), ("driver", "container"), ("NIC", "e1000"), ("parameter", "offload tso")}
    assert found.keys() >= {("background", "stress, where: machine"), ("background", "stress, where: hosts")}
    assert found.keys() >= {("parameter", f"container {limit}") for limit in ("cpu_quota", "memory", "cpus: auto", "processes")}
    assert found["driver", "container"] and found["instrument", "packets"] and found["workload", "http, tool: ab"]
    for row in rows:
        assert row["what"] in text.output
    assert max(map(len, text.output.splitlines())) <= 100


def test_check_of_a_study_that_is_broken(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(
        preflight, "machine", lambda **_: [Check("tools", False, "no tc", "apt-get install iproute2"), Check("x", True, "")]
    )
    monkeypatch.setattr(preflight, "study", lambda _: [Check("wish", False, "none", "pray", required=False)])
    study = tmp_path / "s.yaml"
    study.write_text("study: s\ntestbeds: {mine: {driver: fake}}\nworkload: {kind: planted}\ninstruments: []\n")
    done = CliRunner().invoke(command, [str(study)], standalone_mode=False)
    assert done.return_value == 3
    assert done.output.splitlines() == [
        "The study",
        "  FAILS  tools  no tc",
        "                fix: apt-get install iproute2",
        "  ok     x",
        "  no     wish   none",
        "                fix: pray",
        "",
        "Not ready: 1 of 3 do not work here: tools.",
    ]


def test_check_of_a_study_asks_its_drivers_only(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[str] = []
    monkeypatch.setattr(preflight, "machine", lambda **_: [])
    monkeypatch.setattr(preflight, "study", lambda testbeds: asked.extend(name for name, _, _ in testbeds) or [])
    study = tmp_path / "s.yaml"
    study.write_text(
        "study: s\ntestbeds: {mine: {driver: fake}, yours: {driver: fake}}\nworkload: {kind: planted}\ninstruments: []\n"
        "profiles: {one: {factors.testbed: [yours]}}\n"
    )
    assert CliRunner().invoke(command, [str(study)], standalone_mode=False).return_value == 0
    assert asked == ["mine", "yours"]
    asked.clear()
    assert CliRunner().invoke(command, [str(study), "--profile", "one"], standalone_mode=False).return_value == 0
    assert asked == ["yours"]


def test_an_image_that_is_built_next_is_not_required(monkeypatch: pytest.MonkeyPatch) -> None:
    """A run builds it after preflight, so that every other problem is told before anything is made."""
    monkeypatch.setattr(preflight, "find", lambda: None)
    image = {check.what: check for check in preflight.machine(builds=True)}["image"]
    assert (image.works, image.required) == (False, False)
    assert {check.what: check for check in preflight.machine()}["image"].required


def test_a_machine_that_cannot_count_system_calls(tmp_path: Path) -> None:
    """Required only where a study counts them in containers; guests have kernels of their own."""

    class Refusing:
        def says(self, what: bytes, limit_s: float) -> None:
            raise HostError("machine: twinbed-probe syscalls: exit code 1: no way to see system calls here")

    lab = SimpleNamespace(machine=SimpleNamespace(artifacts=str(tmp_path), start=lambda argv: Refusing()))
    for required in (True, False):
        check = preflight._system_calls(lab, required)  # type: ignore[arg-type]
        assert (check.works, check.required) == (False, required)
        assert "no way to see" in check.found and "qemu" in check.mend and "strace" in check.mend


def test_events_that_a_kernel_lacks_are_named_with_what_it_said_and_are_never_required(tmp_path: Path) -> None:
    class Trying:
        def says(self, what: bytes, limit_s: float) -> None: ...
        def signal(self, number: int) -> None: ...
        def wait(self, limit_s: float) -> None: ...

    def lab(text: str) -> Lab:
        machine = SimpleNamespace(artifacts=str(tmp_path), start=lambda argv: Trying(), read=lambda path: text.encode())
        return cast(Lab, SimpleNamespace(machine=machine))

    counted = "twinbed-events 1\ncounted net netif_rx 9 1\n"
    whole = preflight._events(lab(counted + "counted kvm vmexit 9 1\nend\n"))
    assert (whole.works, whole.found) == (True, "counted in a trial lab: netif_rx, vmexit")
    refused = "".join(f"refused kvm {kind} cannot attach to kvm_entry: No such file\n" for kind in ("vmexit", "mmio"))
    partly = preflight._events(lab(f"{counted}{refused}end\n"))
    assert (partly.works, partly.required) == (True, False)
    assert partly.found == "counted in a trial lab: netif_rx; null: vmexit, mmio (cannot attach to kvm_entry: No such file)"
    nothing = preflight._events(lab("twinbed-events 1\nrefused net netif_rx cannot load: Operation not permitted\nend\n"))
    assert (nothing.works, nothing.required) == (False, False) and nothing.mend
    assert nothing.found == "counted in a trial lab: none; null: netif_rx (cannot load: Operation not permitted)"


def test_events_are_counted_in_a_trial_lab(probe: Path, leaves_nothing: None) -> None:
    """Of this kernel those of networking, whatever it has of KVM."""
    check = {check.what: check for check in preflight._lab(True, False)}["kernel events"]
    assert all(tracepoint in check.found.partition("; null")[0] for tracepoint in NET)


def test_programs_that_instruments_need_are_looked_for_in_the_image(image: Image) -> None:
    found = preflight.programs([("latency", LatencyParams()), ("packets", PacketsParams())])
    assert [(check.what, check.works) for check in found] == [("irtt, for latency", True)]
    missing = preflight.programs([("latency", LatencyParams(tool="owamp"))])
    assert [(check.what, check.works) for check in missing] == [("owampd, for latency", False), ("owping, for latency", False)]
    assert all(check.required and check.mend for check in missing)
