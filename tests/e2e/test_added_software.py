"""Software that a workload adds to the image, on real hosts: Debian packages and a container image."""

from __future__ import annotations

import subprocess
import sys
import time
from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path

import pytest
from tests.conftest import site_in
from tests.container_images import Member, docker, file, folder, layer, link, oci

from twinbed import design
from twinbed.contracts.command import Command, Ready
from twinbed.contracts.extracted import Extracted
from twinbed.contracts.params import WorkloadParams
from twinbed.contracts.site import Installed, Site
from twinbed.contracts.workload import Workload, WorkloadPlan
from twinbed.image import build, cache, find
from twinbed.image.failure import ImageFailed
from twinbed.image.specification import TWINBED
from twinbed.lab import added, needs
from twinbed.lab.execution import Outcome, execute
from twinbed.model.image import Added
from twinbed.readers.container_image import digest
from twinbed.registry import PLUGINS, catalogue
from twinbed.study.loading import load
from twinbed.study.run import Choice, Run

pytestmark = pytest.mark.privileged
REDIS = ("redis-server", "redis-tools")


class OwnParams(WorkloadParams):
    packages: tuple[str, ...] = ()
    image: str | None = None
    server: tuple[str, ...]
    port: int
    client: tuple[str, ...]

    def added(self) -> Added:
        return Added(self.packages, self.image, digest(self.image) if self.image else None)


class Own(Workload[OwnParams]):
    """A server and a client of the study's own."""

    name, params, metrics, tables, work, rate = "own", OwnParams, (), {}, "", ""

    def plan(self, params: OwnParams, pairs: Sequence[tuple[str, str, str]]) -> WorkloadPlan:
        servers = [Command(server, params.server, ready=Ready(listening=params.port)) for _, server, _ in pairs]
        clients = [
            Command(client, tuple(word.replace("{server}", address) for word in params.client), stdout="client.txt")
            for client, _, address in pairs
        ]
        files = [(client, "/opt/note.txt", b"of the study\n") for client, _, _ in pairs]
        return WorkloadPlan(files, servers=servers, clients=clients)

    def parse(self, params: OwnParams, artifacts: Path) -> Extracted:
        return Extracted()


OWN = replace(PLUGINS, workloads={**PLUGINS.workloads, "own": Own()})
BEDS = {"container": "container", "guest": "qemu, boot: fresh"}


def run_of(testbed: str, **settings: object) -> Run:
    text = f"study: own\ntestbeds: {{bed: {{driver: {BEDS[testbed]}}}}}\nworkload: {{kind: http}}\nreplicates: 1\n"
    (run,) = design.runs(load(text, "own.yaml", catalogue()))
    return replace(run, workload=Choice("own", OwnParams.model_validate(settings)))


def output(run: Run, tmp_path: Path) -> tuple[str, Outcome]:
    """Run it, and return what its client printed."""
    wanted = run.workload.params.added()
    installed = Installed(site.probe, site.image, added.built([run], OWN, print)) if (site := base_site(tmp_path)) else None
    assert installed is not None
    assert added.lacking([run], OWN, installed) == []
    outcome = Outcome()
    execute(run, OWN, replace(site, image=installed.image_for(wanted), added=wanted), outcome, lambda _: None)
    return (tmp_path / "artifacts/client/client.txt").read_text(), outcome


def base_site(folder: Path) -> Site:
    from twinbed.image import probe_path

    return site_in(folder, "test", build(), probe_path())


@pytest.mark.parametrize("testbed", BEDS)
def test_packages_run_on_every_testbed(testbed: str, tmp_path: Path, leaves_nothing: None) -> None:
    run = run_of(
        testbed,
        packages=REDIS,
        server=("redis-server", "--port", "6379", "--bind", "0.0.0.0", "--protected-mode", "no", "--save", ""),
        port=6379,
        client=("redis-cli", "-h", "{server}", "INFO", "server"),
    )
    printed, outcome = output(run, tmp_path)
    image = find(added=run.workload.params.added())
    assert image is not None
    version = image.packages["redis-server"].partition(":")[2].partition("-")[0]
    assert f"redis_version:{version}" in printed
    (client, server) = [item for item in outcome.applied if item.setting == "layer"]
    assert {client.subject, server.subject} == {"client", "server"}
    assert client.found == server.found == image.layer


BUSYBOX = Path("/bin/busybox")


def layers() -> list[bytes]:
    """A root file system with one program, and a layer over it that replaces and removes files."""
    names = ("httpd", "wget", "cat", "sh", "ls")
    first: list[Member] = [
        folder("bin"),
        file("bin/busybox", BUSYBOX.read_bytes(), 0o4755),
        *(link(f"bin/{name}", "/bin/busybox") for name in names),
        folder("www"),
        file("www/index.html", b"of the lower layer\n"),
        file("www/removed.html", b"must not be seen\n"),
        folder("opt"),
    ]
    return [layer(first), layer([file("www/.wh.removed.html"), file("www/index.html", b"of the upper layer\n")])]


def unpacked(root: Path) -> None:
    """Write the same root by GNU tar and by hand."""
    root.mkdir()
    for each in layers():
        subprocess.run(["tar", "-xf", "-", "-C", root], input=each, check=True)
    (root / "www/.wh.removed.html").unlink()
    (root / "www/removed.html").unlink()


@pytest.mark.parametrize(("testbed", "form"), [("container", "oci"), ("guest", "docker"), ("container", "folder")])
def test_a_container_image_runs_on_every_testbed(testbed: str, form: str, tmp_path: Path, leaves_nothing: None) -> None:
    variables = ["PATH=/bin", "OF_THE_IMAGE=yes"]
    if form == "folder":
        source = str(tmp_path / "root")
        unpacked(tmp_path / "root")
    elif form == "oci":
        source = f"oci-archive:{oci(tmp_path / 'app.tar', layers(), variables)}"
    else:
        source = f"docker-archive:{docker(tmp_path / 'app.tar', layers(), variables)}"
    script = "wget -q -O - http://{server}:8080/index.html; ls /www /proc/self/exe; cat /opt/note.txt; echo =$OF_THE_IMAGE"
    run = run_of(
        testbed,
        image=source,
        server=("httpd", "-f", "-p", "8080", "-h", "/www"),
        port=8080,
        client=("sh", "-c", script),
    )
    printed, _ = output(run, tmp_path)
    variable = "" if form == "folder" else "yes"
    assert printed.splitlines() == [
        "of the upper layer",
        "/proc/self/exe",
        "",
        "/www:",
        "index.html",
        "of the study",
        f"={variable}",
    ]


def test_an_unknown_package_is_refused_before_anything_starts(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(needs, "QUICK_S", 600.0)
    run = run_of("container", packages=("redis-servr", "nmap"), server=("true",), port=1, client=("true",))
    reason = "Debian has no package redis-servr: did you mean 'redis-server'"
    (check,) = added.checks([run], OWN)
    assert not check.works
    assert reason in check.found
    assert check in needs.quick([run], OWN).refused
    with pytest.raises(ImageFailed) as error:
        build(added=run.workload.params.added())
    assert reason in error.value.message


def test_a_program_that_the_image_lacks_is_refused_before_anything_starts(tmp_path: Path) -> None:
    run = run_of("container", packages=REDIS, server=("redis-serverr",), port=1, client=("/usr/bin/redis-cli",))
    site = base_site(tmp_path)
    installed = Installed(site.probe, site.image, added.built([run], OWN, print))
    (check,) = added.lacking([run], OWN, installed)
    assert (check.what, check.found) == (
        "redis-serverr",
        "the image has no such program with packages: redis-server, redis-tools",
    )


def test_packages_are_unpacked_without_their_scripts(tmp_path: Path) -> None:
    image = build(added=Added(REDIS))
    own = build()
    found = subprocess.run(
        ["dpkg-query", f"--admindir={image.rootfs}/var/lib/dpkg", "--show", "--showformat", "${Package} ${Version}\n", *REDIS],
        capture_output=True,
        text=True,
        check=True,
    ).stdout.splitlines()
    assert found == [f"{name} {image.packages[name]}" for name in REDIS]
    assert "redis:x:911:911:" in (image.rootfs / "etc/passwd").read_text()
    assert "redis" not in (own.rootfs / "etc/passwd").read_text(), "the image's own file is not written to"
    assert not (image.rootfs / "usr/share/doc/redis-server").exists()
    assert (image.rootfs / "usr/sbin/nginx").stat().st_ino == (own.rootfs / "usr/sbin/nginx").stat().st_ino
    assert find(added=Added(tuple(reversed(REDIS)))) == image, "their order does not count"
    assert find() == own


BUILD = (
    "from twinbed.image import build; from twinbed.model.image import Added; build(added=Added(('redis-server',)), say=print)"
)


@pytest.mark.parametrize("step", ["lists", "rootfs/usr/bin/redis-server"])
def test_a_killed_build_leaves_nothing_that_counts(step: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """It is killed after a step; then two build at once, and both get the one image."""
    own = build()
    below = cache.current(f"base-{TWINBED.key}")
    assert below is not None
    monkeypatch.setenv("TWINBED_CACHE", str(tmp_path))
    for name in ("bases", "current"):
        (tmp_path / name).mkdir()
    subprocess.run(["cp", "--archive", below, tmp_path / "bases"], check=True)
    (tmp_path / "current" / f"base-{TWINBED.key}").symlink_to(f"../bases/{below.name}")
    start = partial(subprocess.Popen, [sys.executable, "-c", BUILD], stdout=subprocess.PIPE, text=True)
    killed = start()
    pattern = f"tmp/*/layer/{'' if step.startswith('rootfs') else 'apt/'}{step}"
    while not list(tmp_path.glob(pattern)) and killed.poll() is None:
        time.sleep(0.005)
    killed.kill()
    killed.communicate()
    assert find(added=Added(("redis-server",))) is None
    both = [start(), start()]
    assert [process.wait() for process in both] == [0, 0]
    said = [process.stdout.read() for process in both if process.stdout]
    assert sum("unpacking" in each for each in said) == 1
    image = find(added=Added(("redis-server",)))
    assert image is not None
    assert image.packages.items() > own.packages.items()
    assert {path.name for path in (tmp_path / "images").iterdir()} == {image.digest}
    assert list((tmp_path / "tmp").iterdir()) == []
