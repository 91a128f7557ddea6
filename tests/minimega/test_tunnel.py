"""Guests without a port of ours: an agent on the guest's loopback, reached through ``cc tunnel``."""

from __future__ import annotations

import gzip
import json
import re
import socket
from collections.abc import Callable
from pathlib import Path

import pytest

from minimega.standin import StandIn
from twinbed.contracts.site import Site
from twinbed.hosts.error import HostError
from twinbed.model.topology import Topology
from twinbed.registry import PLUGINS
from twinbed.testbeds.minimega import host
from twinbed.testbeds.minimega.control import Guest
from twinbed.testbeds.minimega.machine import machines
from twinbed.testbeds.minimega.socket import CommandSocket, MinimegaError

DRIVER = PLUGINS.drivers["minimega"]
RECORDED = Path(__file__).with_name("cc-tunnel.jsonl.gz")


def test_what_is_asked_is_what_the_recorded_server_took() -> None:
    """minimega 3.1.0, where an echo through the tunnel then took 4 to 11 ms."""
    messages = [json.loads(line) for line in gzip.decompress(RECORDED.read_bytes()).splitlines()]
    asked = {json.loads(each["raw"])["Command"]: each["conn"] for each in messages if each["way"] == ">"}
    answers = {each["conn"]: json.loads(each["raw"]) for each in messages if each["way"] == "<"}
    taken = [command for command in asked if " cc tunnel " in command]
    assert taken == ["namespace tt cc tunnel g 4444 127.0.0.1 7000", "namespace tt cc tunnel g 4445 127.0.0.1 7001"]
    assert all(answers[asked[command]]["Resp"][0]["Error"] == "" for command in taken)
    ours = CommandSocket(Path("/nowhere"), "tt").command("cc", "tunnel", "g", "4444", "127.0.0.1", "7000")
    assert ours == taken[0]


def test_one_command_a_guest_however_slow_responses_are(real: StandIn, site: Callable[..., Site]) -> None:
    """Recorded: each `cc exec` is answered after 4.8 to 5.2 s, with the client's heartbeat."""
    real.lag = lambda queued: 5.0
    params = DRIVER.params(base=str(real.base), type="container", filesystem="/opt/root")
    with DRIVER.up(params, Topology(pairs=2), site()) as bed:
        for host in bed.hosts.values():
            for number in range(20):
                assert host.run(["echo", str(number)]).text == f"{number}\n"
        assert [item for item in bed.applied if not item.agrees] == []
        listening = bed.hosts["client1"].run(["cat", "/proc/net/tcp"]).text
        at = [row.split()[1] for row in listening.splitlines() if row.split()[3] == "0A"]
        assert at == [], "the agent has closed its own port to others"
    told = re.findall(r" cc (\w+)", "\n".join(real.heard))
    assert {kind: told.count(kind) for kind in ("send", "exec", "background", "tunnel")} == {
        "send": 4,
        "exec": 4,
        "background": 0,
        "tunnel": 4,
    }


def test_a_program_that_does_not_run_there(real: StandIn, site: Callable[..., Site]) -> None:
    params = DRIVER.params(base=str(real.base), type="container", filesystem="/opt/root", guest_files="/tmp/elsewhere")
    says = r"client: /tmp/elsewhere/\S+-probe does not run there: .*No such file.*set guest_files to the folder"
    with pytest.raises(HostError, match=re.compile(says, re.DOTALL)), DRIVER.up(params, Topology(), site()):
        pass
    assert set(real.spaces) == {"minimega"}


@pytest.fixture
def guest(server: StandIn) -> tuple[CommandSocket, Guest]:
    """On the second of two nodes."""
    server.nodes = ["node1", "node2"]
    commands = CommandSocket(server.base / "minimega", "lab1")
    for words in (("net", "LAN,e1000"), ("schedule", "node2")):
        commands.ask("vm", "config", *words)
    commands.ask("vm", "launch", "kvm", "client")
    machine = machines(commands)["client"]
    return commands, Guest("client", machine.uuid, machine.node)


def test_the_node_that_has_the_guest_counts(server: StandIn, guest: tuple[CommandSocket, Guest]) -> None:
    """All nodes are asked, and those without the guest refuse."""
    commands, there = guest
    with pytest.raises(MinimegaError, match="node1: vm not found"):
        commands.ask("cc", "tunnel", there.uuid, str(host.open_tunnel(commands, there) - 1), "127.0.0.1", "7")
    with pytest.raises(MinimegaError, match="node2: vm not found"):
        host.open_tunnel(commands, Guest("client", "no-such-uuid", "node2"))
    with pytest.raises(MinimegaError, match="node node3 did not answer"):
        host.open_tunnel(commands, Guest("client", there.uuid, "node3"))


def test_a_port_that_is_in_use_is_not_taken(guest: tuple[CommandSocket, Guest], monkeypatch: pytest.MonkeyPatch) -> None:
    with socket.socket() as held, socket.socket() as free:
        held.bind(("127.0.0.1", 0))
        free.bind(("127.0.0.1", 0))
        ports = [held.getsockname()[1], free.getsockname()[1]]
        free.close()
        monkeypatch.setattr(host.secrets, "randbelow", lambda _: ports.pop(0) - host._NODE_PORTS.start)
        expected = ports[1]
        assert host.open_tunnel(*guest) == expected
