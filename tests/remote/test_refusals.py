"""Hosts that cannot be used: said before anything is changed, with the reason and what mends it."""

from __future__ import annotations

import contextlib
import json
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.command import twinbed
from tests.remote.machines import OWN_CONFIG, Machines, Space, _key
from twinbed.contracts.site import Site
from twinbed.hosts import session
from twinbed.hosts.error import HostError
from twinbed.model.topology import Link, Topology
from twinbed.testbeds.remote import remote


def refused(place: Site, params: dict[str, Any], topology: Topology | None = None) -> str:
    with pytest.raises(HostError) as caught, remote.up(remote.params(**params), topology or Topology(), place):
        pass
    return f"{caught.value}; {caught.value.advice}"


def with_host(two: Machines, **changes: Any) -> dict[str, Any]:
    """The settings with those of the client changed."""
    found = two.settings()
    found["hosts"]["client"] |= changes
    return found


@pytest.fixture
def edited(two: Machines, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[[str, str], None]:
    """Gives the user another ssh configuration."""

    def edit(old: str, new: str) -> None:
        text = two.config.read_text()
        assert old in text
        path = tmp_path / "config"
        path.write_text(text.replace(old, new))
        monkeypatch.setenv(OWN_CONFIG, str(path))

    return edit


def test_ssh_that_does_not_come_in(two: Machines, place: Site, tmp_path: Path, edited: Callable[[str, str], None]) -> None:
    empty = tmp_path / "empty"
    empty.touch()
    edited(f"{two.config.parent}/known_hosts", str(empty))
    said = refused(place, two.settings())
    assert said.startswith("client (client): its host key is unknown: connect once by hand and compare the key: ssh client")

    _key(tmp_path / "stranger")
    edited(f"{two.config.parent}/user", str(tmp_path / "stranger"))
    assert "it accepts none of your keys: ssh-copy-id" in refused(place, two.settings())

    (tmp_path / "known").write_text("client,10.99.0.2 " + (two.config.parent / "server.key.pub").read_text())
    edited(f"{two.config.parent}/known_hosts", str(tmp_path / "known"))
    assert "its host key differs from the known key" in refused(place, two.settings())


def test_a_login_that_waits(
    two: Machines, place: Site, edited: Callable[[str, str], None], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(session.Session.preamble, "__defaults__", (3.0,))
    shell = "printf '#!/bin/sh\\nexec cat >/dev/null\\n' >/run/slow; chmod 755 /run/slow"
    two.hosts["client"].run("sh", "-c", f"{shell}; echo slow:x:0:0::/:/run/slow >>/etc/passwd")
    try:
        edited("User root", "User slow")
        said = refused(place, two.settings())
    finally:
        two.hosts["client"].run("rm", "/run/slow")
    assert "client (client): it did not end its login after 3 s and 0 bytes" in said


def test_a_user_that_is_not_root_and_may_not_become_it(two: Machines, place: Site, edited: Callable[[str, str], None]) -> None:
    edited("User root", "User visitor")
    said = refused(place, two.settings())
    assert "its user is not root and may not become root: log in as root, or allow the user sudo without a password" in said


def test_preflight_tries_every_host(two: Machines, tmp_path: Path) -> None:
    """From the controller's own namespace, without a proxy between."""
    hosts = {name: {"ssh": name, "config": str(two.config.parent / "direct")} for name in ("client", "server")}
    hosts["client"]["port"] = 23
    hosts["server"]["nic"] = "mgmt"
    study = tmp_path / "study.yaml"
    study.write_text(
        json.dumps({"study": "s", "workload": {"kind": "http"}, "testbeds": {"bed": {"driver": "remote", "hosts": hosts}}})
    )
    argv = two.controller.enter(sys.executable, "-m", "twinbed.cli.main", "check", str(study), "--format", "json")
    argv += ["--ssh-config", str(two.config.parent / "direct")]
    done = subprocess.run(argv, capture_output=True, text=True, check=False, timeout=100)
    assert done.returncode == 3, done.stderr
    rows = {row["what"]: row for row in json.loads(done.stdout)}
    assert (rows["host client"]["works"], rows["host client"]["required"]) == (False, True)
    assert "no sshd listens there" in rows["host client"]["found"]
    assert rows["host server"]["works"]
    assert rows["host server: NIC"]["found"] == "mgmt carries the SSH connection"


@contextlib.contextmanager
def without(space: Space, *programs: str) -> Iterator[None]:
    """Programs that cannot be run any more on a machine."""
    paths = [space.run("sh", "-c", f"command -v {program}").strip() for program in programs]
    for path in paths:
        space.run("mount", "--bind", "/dev/null", path)
    try:
        yield
    finally:
        for path in paths:
            space.run("umount", path)


def test_a_host_without_the_programs_that_it_would_run(two: Machines, tmp_path: Path) -> None:
    """Those of its own part in the study, found before a run."""
    file = tmp_path / "study.yaml"
    load = {"kind": "traffic", "http": 1, "udp": "1mbit"}
    text = {"study": "s", "workload": {"kind": "http"}, "background": load, "topology": {"link": {"rate": "100mbit"}}}

    def rows(**settings: Any) -> dict[str, dict[str, Any]]:
        testbed = {"driver": "remote", **two.settings(**settings)}
        file.write_text(json.dumps({**text, "testbeds": {"bed": testbed}}))
        return {row["what"]: row for row in json.loads(twinbed("check", file, "--format", "json").stdout)}

    with without(two.hosts["server"], "nginx", "iperf3"), without(two.hosts["client"], "wrk"):
        found = rows()
        server, client = (found[f"host {name}: programs"] for name in ("server", "client"))
        assert (server["works"], server["required"], server["found"]) == (False, True, "without iperf3, nginx")
        assert server["mend"] == "on the host: apt-get install iperf3 nginx-light; or set image: archive"
        assert client["found"] == "without wrk"
        assert "host server: programs" not in rows(image="archive")
    client = rows()["host client: programs"]
    assert (client["works"], client["found"]) == (True, "ab, iperf3, stdbuf, wrk")


def test_nics_that_cannot_be_used(two: Machines, place: Site) -> None:
    assert "mgmt carries the SSH connection" in refused(place, with_host(two, nic="mgmt"))
    said = refused(place, with_host(two, nic="eth9"))
    assert said.startswith("client: no NIC eth9: set nic to one of mgmt (carrier, 10.99.0.2/24")
    client = two.hosts["client"]
    client.run("ip", "link", "add", "other", "type", "veth", "peer", "name", "another")
    try:
        client.run("ip", "-batch", "-", text="link set other up\nlink set another up\n")
        said = refused(place, two.settings())
        assert said.startswith("client: 3 NICs could be the experiment link's: set nic to one of ")
    finally:
        client.run("ip", "link", "del", "other")


def test_a_folder_whose_programs_may_not_be_run(two: Machines, place: Site) -> None:
    client = two.hosts["client"]
    client.run("mkdir", "/run/plain")
    client.run("mount", "-t", "tmpfs", "-o", "noexec", "none", "/run/plain")
    try:
        said = refused(place, with_host(two, folder="/run/plain"))
        assert "cannot run there; it may be mounted noexec; set another folder" in said
    finally:
        client.run("umount", "/run/plain")
        client.run("rmdir", "/run/plain")


def test_a_way_over_the_management_link_is_refused(two: Machines, place: Site) -> None:
    client = two.hosts["client"]
    client.run("ip", "route", "add", "10.77.0.2/32", "dev", "mgmt")
    try:
        assert "packets to server (10.77.0.2) leave by mgmt, not by exp" in refused(place, two.settings())
    finally:
        client.run("ip", "route", "del", "10.77.0.2/32", "dev", "mgmt")


def test_a_queueing_discipline_of_the_host_s_own_is_not_lost(two: Machines, place: Site) -> None:
    client = two.hosts["client"]
    client.run("tc", "qdisc", "add", "dev", "exp", "root", "handle", "5:", "pfifo", "limit", "77")
    try:
        said = refused(place, two.settings(), Topology(link=Link(rate=10**9)))
        assert "exp has a queueing discipline of its own (pfifo 5:), which a run would replace" in said
    finally:
        client.run("tc", "qdisc", "del", "dev", "exp", "root")


def test_a_rate_above_the_nic_s_own(two: Machines, place: Site) -> None:
    said = refused(place, two.settings(), Topology(link=Link(rate=2 * 10**10)))
    assert "exp runs at 10000 Mbit/s, which cannot carry 20000 Mbit/s" in said


def test_one_host_given_twice(two: Machines, place: Site, edited: Callable[[str, str], None]) -> None:
    edited("Host client\n", "Host client again\n")
    params = with_host(two)
    params["hosts"]["server"] = {"ssh": "again", "folder": "/run/second"}
    assert "client and server are the same host" in refused(place, params)
    two.hosts["client"].run("rm", "-r", "/run/second")
