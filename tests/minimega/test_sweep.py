"""A namespace outlives a controller that is killed: a sweep clears it, and nothing else."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
from click.testing import CliRunner

from minimega.standin import Fault, StandIn, leftovers, standing_in
from twinbed.cli.sweep import command
from twinbed.hosts.error import HostError
from twinbed.lab import preflight
from twinbed.registry import PLUGINS
from twinbed.testbeds.minimega import space
from twinbed.testbeds.minimega.head import Head
from twinbed.testbeds.minimega.socket import CommandSocket
from twinbed.testbeds.minimega.space import own_space

HOLDS = """
import sys, time
from pathlib import Path
from twinbed.testbeds.minimega.head import open_head
from twinbed.testbeds.minimega.space import own_space
with open_head(sys.argv[1], None) as head, own_space(head, "twinbed") as own:
    head.put(own.probe, b"probe")
    own.socket.ask("vm", "config", "net", "LAN,e1000")
    own.socket.ask("vm", "launch", "kvm", "server")
    Path(sys.argv[2]).write_text(own.name)
    time.sleep(600)
"""


@pytest.fixture(autouse=True)
def labs_are_no_matter(monkeypatch: pytest.MonkeyPatch) -> None:
    """Where the place of scratch is another, labs of tests that run beside would look dead."""
    monkeypatch.setattr("twinbed.hosts.lab.leftovers", list)


def somebody_elses(server: StandIn) -> None:
    socket = CommandSocket(server.base / "minimega", "twinbed_of_others")
    socket.ask("vm", "config", "net", "LAN,e1000")
    socket.ask("vm", "launch", "kvm", "theirs")
    (server.files / "theirs.qc2").write_bytes(b"disk")


def test_a_killed_controller(server: StandIn, tmp_path: Path) -> None:
    somebody_elses(server)
    said = tmp_path / "name"
    controller = subprocess.Popen([sys.executable, "-c", HOLDS, str(server.base), str(said)])
    try:
        deadline = time.monotonic() + 60.0
        while not (said.exists() and said.read_text()):
            assert controller.poll() is None
            assert time.monotonic() < deadline
            time.sleep(0.01)
        name = said.read_text()
        assert name in server.spaces
        assert [left for left in leftovers(server) if left.name == name] == [], "it is held"
    finally:
        os.kill(controller.pid, signal.SIGKILL)
        controller.wait()
    assert [left.name for left in leftovers(server)] == [name]
    result = CliRunner().invoke(command, ["--dry-run"])
    assert f"would remove minimega namespace {name} of this machine ({server.base})" in result.output
    assert name in server.spaces
    for left in leftovers(server):
        left.remove()
    assert set(server.spaces) == {"minimega", "twinbed_of_others"}
    assert set(server.spaces["twinbed_of_others"].vms) == {"theirs"}
    assert [path.name for path in server.files.iterdir()] == ["theirs.qc2"]
    assert leftovers(server) == []
    assert not [line for line in server.heard if "twinbed_of_others" in line and "theirs" not in line and "LAN" not in line]


@pytest.mark.parametrize("kind", ["error", "half", "closed"])
def test_a_namespace_that_cannot_be_cleared_is_left_for_the_sweep(server: StandIn, kind: str) -> None:
    somebody_elses(server)
    head = Head(str(server.base), None, CommandSocket(server.base / "minimega"))
    with pytest.raises(HostError), own_space(head, "twinbed") as own:
        server.faults.append(Fault("clear namespace", kind, "busy"))
    (left,) = leftovers(server)
    assert left.name == own.name
    left.remove()
    assert set(server.spaces) == {"minimega", "twinbed_of_others"}
    assert leftovers(server) == []


def test_a_minimega_that_has_ended_is_no_reason_to_stop(base: Path, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Its namespaces went with it; and one that cannot be cleared is named after the others were."""
    monkeypatch.setattr(space.scratch, "root", lambda **_: tmp_path)
    note = '{"base": "%s", "destination": %s, "name": "twinbed_%s"}'
    (tmp_path / "1.minimega").write_text(note % (base / "never", "null", "1"))
    (tmp_path / "2.minimega").write_text(note % (base, '"no-such-host.invalid"', "2"))
    with standing_in(base):
        (tmp_path / "3.minimega").write_text(note % (base, "null", "3"))
    (tmp_path / "4.minimega").write_text(note % (base / ("x" * 200), "null", "4"))
    result = CliRunner().invoke(command, [])
    assert result.exit_code == 1
    assert sorted(path.name for path in tmp_path.iterdir()) == ["2.minimega", "4.minimega"]
    assert "namespace twinbed_2 of no-such-host.invalid" in result.output
    assert f"namespace twinbed_4 of this machine ({base / ('x' * 200)}) cannot be removed: minimega: " in result.output


def test_a_check_names_what_a_dead_run_left(server: StandIn, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """It is no reason to stop, and the sweep removes it."""
    monkeypatch.setattr(space.scratch, "root", lambda **_: tmp_path)
    driver = PLUGINS.drivers["minimega"]
    beds = [("bed", driver, driver.params(base=str(server.base), kernel="/opt/k"))]
    assert not [check for check in preflight.study(beds) if check.what.startswith("leftovers")]
    note = '{"base": "%s", "destination": null, "name": "twinbed_1"}'
    (tmp_path / "1.minimega").write_text(note % server.base)
    (left,) = [check for check in preflight.study(beds) if check.what.startswith("leftovers")]
    assert (left.what, left.works, left.required) == ("leftovers of minimega", False, False)
    assert left.found == f"1 of dead runs: minimega namespace twinbed_1 of this machine ({server.base})"
    assert left.mend.endswith("twinbed sweep")


@pytest.mark.parametrize("prefix_makes", [True, False])
def test_the_active_namespace_stays(server: StandIn, prefix_makes: bool) -> None:
    """It is everybody's who speaks to this minimega."""
    somebody_elses(server)
    server.active, server.prefix_makes = "twinbed_of_others", prefix_makes
    head = Head(str(server.base), None, CommandSocket(server.base / "minimega"))
    with own_space(head, "twinbed") as own:
        assert own.name in server.spaces
        assert server.active == "twinbed_of_others"
    assert set(server.spaces) == {"minimega", "twinbed_of_others"}
    assert server.active == "twinbed_of_others"
