"""Software that a workload adds, on hosts over SSH: it is in the image's archive, and refused on systems of their own."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from tests.command import twinbed
from tests.container_images import docker, file, folder, layer, link
from tests.remote.machines import Machines

BUSYBOX = Path("/bin/busybox")


def studied(place: Path, made: Machines, workload: dict[str, Any], **settings: Any) -> Path:
    study = place / "study.yaml"
    testbed = {"driver": "remote", **made.settings(**settings)}
    metrics = {"answers": {"read": "client.stdout", "regex": "^(1)$"}}
    text = {"study": "own", "testbeds": {"physical": testbed}, "replicates": 1}
    study.write_text(json.dumps({**text, "workload": {"kind": "command", "metrics": metrics, **workload}}))
    return study


def container_image(place: Path) -> str:
    names = [link(f"bin/{name}", "/bin/busybox") for name in ("httpd", "wget", "cat")]
    docker(
        place / "app.tar",
        [layer([folder("bin"), file("bin/busybox", BUSYBOX.read_bytes(), 0o755), *names, file("one", b"1\n")])],
    )
    return "docker-archive:./app.tar"


SERVED = {
    "server": {"run": ["httpd", "-f", "-p", "8080", "-h", "/"], "ready": {"listening": 8080}},
    "client": {"run": ["wget", "-q", "-O", "-", "http://{server}:8080/one"]},
}
REDIS = {
    "packages": ["redis-server", "redis-tools"],
    "server": {"run": ["redis-server", "--port", "6379", "--protected-mode", "no"], "ready": {"listening": 6379}},
    "client": {"run": ["redis-cli", "-h", "{server}", "INCR", "key"]},
}


@pytest.mark.parametrize("what", ["packages", "image"])
def test_hosts_over_ssh_get_it_with_the_images_archive(what: str, two: Machines, tmp_path: Path) -> None:
    workload = REDIS if what == "packages" else {**SERVED, "image": container_image(tmp_path)}
    done = twinbed(
        "run", str(studied(tmp_path, two, workload, image="archive")), "-o", str(tmp_path / "results"), "--no-report"
    )
    assert done.returncode == 0, done.stdout + done.stderr
    (run,) = (tmp_path / "results/runs").glob("[0-9a-f]*")
    passport = json.loads((run / "passport.json").read_text())
    layers = [item for item in json.loads((run / "applied.json").read_text()) if item["setting"] == "layer"]
    assert [(item["subject"], item["found"]) for item in layers] == [
        (host, passport["image"]["layer"]) for host in ("client", "server")
    ]


def test_a_container_image_is_refused_on_hosts_with_systems_of_their_own(two: Machines, tmp_path: Path) -> None:
    workload = {**SERVED, "image": container_image(tmp_path)}
    done = twinbed("run", str(studied(tmp_path, two, workload, image="none")), "-o", str(tmp_path / "results"))
    assert done.returncode == 3
    assert "its hosts run a system of their own" in done.stderr


def test_own_files_are_put_into_the_image_and_never_onto_a_hosts_own_system(two: Machines, tmp_path: Path) -> None:
    (tmp_path / "one.sh").write_text("#!/bin/sh\necho 1\n")
    (tmp_path / "one.sh").chmod(0o755)
    workload = {"files": {"one.sh": "/opt/one.sh"}, "client": {"run": ["/opt/one.sh"]}}
    study = studied(tmp_path, two, workload, image="archive")
    done = twinbed("run", str(study), "-o", str(tmp_path / "results"), "--no-report")
    assert done.returncode == 0, done.stdout + done.stderr
    assert not Path("/opt/one.sh").exists()
    study = studied(tmp_path, two, workload, image="none")
    done = twinbed("run", str(study), "-o", str(tmp_path / "results"), "--no-report")
    assert done.returncode == 3 and "on which /opt/one.sh would stay" in done.stderr, done.stderr
    workload = {"files": {"one.sh": "/run/one.sh"}, "client": {"run": ["/run/one.sh"]}}
    done = twinbed("run", str(studied(tmp_path, two, workload, image="none")), "-o", str(tmp_path / "results"), "--no-report")
    assert done.returncode == 0, done.stdout + done.stderr
    assert not Path("/run/one.sh").exists()
