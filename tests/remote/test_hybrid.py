"""A container and a host over SSH as one testbed: the lab's switch reaches the host by a NIC of this machine, lent to it."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.remote.machines import EXPERIMENT, Machines, until

UPLINK = "lent"


@pytest.fixture
def uplink(two: Machines) -> Iterator[Machines]:
    """The controller has a NIC on the experiment's switch, without an address."""
    end = f"{EXPERIMENT}-controller"[:15]
    pid = two.controller.pid
    two.switches.run("ip", "link", "add", end, "type", "veth", "peer", "name", UPLINK, "netns", str(pid))
    two.switches.run("ip", "link", "set", end, "master", f"sw-{EXPERIMENT}", "up")
    two.controller.run("ip", "link", "set", UPLINK, "up")
    until("the kernel has seen its carrier", lambda: "state UP" in two.controller.run("ip", "link", "show", UPLINK))
    yield two
    two.switches.run("ip", "link", "del", end)


def twinbed(made: Machines, *arguments: str) -> subprocess.CompletedProcess[str]:
    """Run by the controller, whose NIC is lent."""
    argv = made.controller.enter(sys.executable, "-m", "twinbed.cli.main", *arguments)
    return subprocess.run(argv, capture_output=True, text=True, check=False, timeout=200)


def study(folder: Path, made: Machines, **server: Any) -> Path:
    settings = made.settings()
    over_ssh = {"driver": "remote", **settings, "hosts": {"server": settings["hosts"]["server"]}, "uplink": UPLINK, **server}
    text = {
        "study": "hybrid",
        "testbeds": {"hybrid": {"driver": "mixed", "client": {"driver": "container"}, "server": over_ssh}},
        "workload": {"kind": "http", "duration": "1s", "max_requests": 500},
        "topology": {"link": {"rate": "100mbit"}},
        "instruments": ["packets", "counters"],
        "replicates": 1,
    }
    file = folder / "study.yaml"
    file.write_text(json.dumps(text))
    return file


def test_a_container_asks_a_host_over_ssh(uplink: Machines, tmp_path: Path) -> None:
    before = uplink.controller.run("ip", "-j", "link")
    done = twinbed(uplink, "run", str(study(tmp_path, uplink)), "-o", str(tmp_path / "results"), "--no-report")
    assert done.returncode == 0, done.stderr
    (run,) = (tmp_path / "results" / "runs").glob("[0-9a-f]*")
    applied = {(item["subject"], item["setting"]): item["found"] for item in json.loads((run / "applied.json").read_text())}
    assert applied["p.server", "kind"] == "macvlan"
    assert applied["p.server", "master"] == "switch0"
    assert applied["p.server", "rate"] == applied["p.client", "rate"] == 100_000_000
    assert applied["server", "address"] == "10.77.0.2/24"
    assert applied["client", "address"] == "10.77.0.1/24"
    kept = {artifact["path"] for artifact in json.loads((run / "run.json").read_text())["artifacts"]}
    assert {"artifacts/machine/client.pcap", "artifacts/machine/server.pcap", "artifacts/server/counters.snap"} <= kept
    passport = json.loads((run / "passport.json").read_text())
    assert passport["server"]["NIC"] == EXPERIMENT
    (checked,) = (tmp_path / "results" / "links").glob("*.json")
    figures = json.loads(checked.read_text())["figures"]
    # A machine that is busy cannot fill the link, and the check cannot tell.
    verdicts = [figure["verdict"] for figure in figures if figure["quantity"] == "rate"]
    assert len(verdicts) == 2 and "out of tolerance" not in verdicts
    assert uplink.controller.run("ip", "-j", "link") == before, "nothing of the controller's NIC is changed"


def test_nics_that_cannot_be_lent_are_refused(two: Machines, tmp_path: Path) -> None:
    """A testbed for each, all in one study."""
    # Veth, as not every kernel has dummies.
    two.controller.run("ip", "link", "add", "addressed", "type", "veth", "peer", "name", "down")
    two.controller.run("ip", "link", "set", "addressed", "up")
    two.controller.run("ip", "addr", "add", "192.0.2.200/24", "dev", "addressed")
    reasons = {
        "addressed": "addressed has the address 192.0.2.200/24",
        "down": "down is down: bring it up first",
        "missing": "this machine has no NIC missing",
    }
    file = study(tmp_path, two)
    text = json.loads(file.read_text())
    (hybrid,) = text["testbeds"].values()
    text["testbeds"] = {name: {**hybrid, "server": {**hybrid["server"], "uplink": name}} for name in reasons}
    text["reference"] = "addressed"
    file.write_text(json.dumps(text))
    done = twinbed(two, "run", str(file), "-o", str(tmp_path / "results"), "--no-report")
    two.controller.run("ip", "link", "del", "addressed")
    assert done.returncode == 1, done.stderr
    records = [json.loads(path.read_text()) for path in (tmp_path / "results" / "runs").glob("[0-9a-f]*/run.json")]
    assert len(records) == len(reasons)
    for record in records:
        assert reasons[record["levels"]["testbed"]] in record["reason"]
