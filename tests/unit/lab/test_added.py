"""Software that workloads add, before a study begins: what is said of it, and where it is refused."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from twinbed import design
from twinbed.contracts.command import Command
from twinbed.contracts.site import Installed
from twinbed.contracts.workload import WorkloadPlan
from twinbed.image.failure import ImageFailed
from twinbed.image.specification import TWINBED, with_kernel
from twinbed.lab import added
from twinbed.model.image import NOTHING, Added, Image
from twinbed.registry import PLUGINS, catalogue
from twinbed.study.loading import load
from twinbed.study.run import Choice, Run
from twinbed.workloads.planted import PlantedParams

REDIS = Added(("redis-server", "redis-tools"))
APP = Added((), "oci-archive:/app.tar", f"sha256:{'0' * 64}")


class Params(PlantedParams):
    wanted: Any = NOTHING

    def added(self) -> Added:
        assert isinstance(self.wanted, Added)
        return self.wanted


def run_of(testbed: str, wanted: Added) -> Run:
    text = f"study: x\ntestbeds: {{bed: {testbed}}}\nworkload: {{kind: http}}\nreplicates: 1\n"
    (run,) = design.runs(load(text, "x.yaml", catalogue()))
    return replace(run, workload=Choice("planted", Params(wanted=wanted)))


def image(rootfs: Path = Path("/nowhere"), variables: dict[str, str] | None = None) -> Image:
    return Image("d1", rootfs, rootfs, "erofs", rootfs, rootfs, "6.1", {}, environment=variables or {})


@pytest.fixture(autouse=True)
def wanted(monkeypatch: pytest.MonkeyPatch) -> list[tuple[object, Added]]:
    """The images that are looked for; none has been built."""
    asked: list[tuple[object, Added]] = []

    def find(spec: object, added: Added = NOTHING) -> None:
        asked.append((spec, added))

    monkeypatch.setattr(added, "find", find)
    return asked


def test_without_root_the_command_that_builds_it_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "geteuid", lambda: 1000)
    (check,) = added.checks([run_of("{driver: container}", REDIS)], PLUGINS)
    assert (check.works, check.found) == (False, "no image has it")
    assert check.mend.startswith("sudo ")
    assert check.mend.endswith("-m twinbed.image redis-server redis-tools")
    (check,) = added.checks([run_of("{driver: container}", APP)], PLUGINS)
    assert check.mend.endswith("-m twinbed.image --image oci-archive:/app.tar")


def test_what_is_built_needs_no_root_and_no_network(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "geteuid", lambda: 1000)
    monkeypatch.setattr(added, "find", lambda *_: image())
    (check,) = added.checks([run_of("{driver: container}", REDIS)], PLUGINS)
    assert (check.works, check.found) == (True, "in the image d1")


def test_each_kernel_needs_an_image_of_its_own(wanted: list[tuple[object, Added]], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "geteuid", lambda: 1000)
    two = "{driver: mixed, client: {driver: container}, server: {driver: qemu, kernel: linux-image-6.12-amd64}}"
    added.checks([run_of(two, REDIS), run_of("{driver: qemu}", REDIS), run_of("{driver: qemu}", NOTHING)], PLUGINS)
    assert wanted == [(TWINBED, REDIS), (with_kernel("linux-image-6.12-amd64"), REDIS)]


@pytest.mark.parametrize(
    "testbed",
    [
        "{driver: remote, image: none, hosts: {client: a, server: b}}",
        "{driver: minimega, kernel: /k, initrd: /i}",
        "{driver: model}",
    ],
)
def test_a_container_image_is_refused_on_hosts_with_systems_of_their_own(testbed: str) -> None:
    (check, *_) = added.checks([run_of(testbed, APP)], PLUGINS)
    assert (check.works, check.found) == (False, "its hosts run a system of their own")


def test_nothing_is_asked_where_nothing_is_added(wanted: list[tuple[object, Added]]) -> None:
    assert added.checks([run_of("{driver: container}", NOTHING)], PLUGINS) == []
    assert wanted == []


class Planted:
    """A workload with these programs."""

    def __init__(self, *commands: Command, files: Sequence[tuple[str, str, bytes]] = ()) -> None:
        self._plan = WorkloadPlan(files, clients=commands)

    def planned(self, params: object, pairs: object) -> WorkloadPlan:
        return self._plan


def lacking(rootfs: Path, *commands: Command, files: Sequence[tuple[str, str, bytes]] = (), path: str = "") -> list[str]:
    plugins: Any = replace(PLUGINS, workloads={"planted": Planted(*commands, files=files)})
    own = image(rootfs, {"PATH": path} if path else {})
    installed = Installed(Path("/probe"), own, {REDIS: own})
    return [check.what for check in added.lacking([run_of("{driver: container}", REDIS)], plugins, installed)]


def test_programs_are_looked_for_where_they_are_started(tmp_path: Path) -> None:
    for name in ("usr/bin/a", "image/bin/b", "opt/c", "image/special/d"):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).touch()
    (tmp_path / "bin").symlink_to("/usr/bin")
    (tmp_path / "image/bin/e").symlink_to("/nowhere")
    in_image = {"root": "/image"}
    present = [Command("h", ("a",)), Command("h", ("/bin/a",)), Command("h", ("/opt/c",)), Command("h", ("b",), **in_image)]
    assert lacking(tmp_path, *present, Command("h", ("/bin/e",), **in_image), Command("h", ("{bin}/x",))) == []
    assert lacking(tmp_path, Command("h", ("b",)), Command("h", ("a",), **in_image), Command("h", ("/opt/x",))) == [
        "b",
        "a",
        "/opt/x",
    ]
    assert lacking(tmp_path, Command("h", ("stdbuf", "-oL", "x"))) == ["stdbuf", "x"]
    assert lacking(tmp_path, Command("h", ("d",), **in_image), path="/special") == []
    assert lacking(tmp_path, Command("h", ("d",), **in_image), path="/other") == ["d"]
    files = [("h", "/image/opt/own", b"")]
    assert lacking(tmp_path, Command("h", ("/opt/own",), **in_image), files=files) == []


def test_a_plan_within_a_root_has_its_programs_and_files_there() -> None:
    command = Command("h", ("a",))
    plan = WorkloadPlan([("h", "/f", b"")], frozenset({"/f"}), [command], [command], [command], [command]).within("/image")
    assert plan.files == [("h", "/image/f", b"")]
    assert plan.executable == {"/image/f"}
    rounds = (plan.prepare, plan.servers, plan.warm_up, plan.clients)
    assert [each.root for round_ in rounds for each in round_] == ["/image"] * 4


def test_a_layer_that_cannot_be_had_is_one_failed_check(monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*_: object) -> None:
        raise ImageFailed("no such thing", advice="do this")

    monkeypatch.setattr(added, "find", fail)
    (check,) = added.checks([run_of("{driver: container}", REDIS)] * 2, PLUGINS)
    assert (check.works, check.found, check.mend) == (False, "no such thing", "do this")
