"""Command and control: responses are found by their numbers, whoever is first; what the recording holds is read."""

from __future__ import annotations

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from minimega import recording
from minimega.standin import Fault, StandIn, standing_in
from minimega.state import Queued
from twinbed.hosts.error import HostError, LimitExceeded
from twinbed.testbeds.minimega.control import Control, Guest, parts
from twinbed.testbeds.minimega.machine import machines
from twinbed.testbeds.minimega.socket import CommandSocket

SERVER, CLIENT = "093dd209-ff39-40e1-8fce-25a39c6ab0c1", "3efc3b7b-6e29-44ef-b48a-3181c2b2551d"


def test_recorded_responses_are_told_apart() -> None:
    text = recording.answer("namespace lab1 cc responses all", 2)["Response"]
    found = parts(text)
    assert set(found) == {
        (10, CLIENT, "proc/net/netstat"),
        (5, SERVER, "stdout"),
        (5, CLIENT, "stdout"),
        (6, CLIENT, "stderr"),
    }
    assert found[5, SERVER, "stdout"].startswith("Linux (none) 6.1.0-56-amd64 #1 SMP")
    assert found[5, SERVER, "stdout"].endswith("x86_64 GNU/Linux\n")
    assert found[6, CLIENT, "stderr"].startswith("ab: invalid URL\n")
    assert found[10, CLIENT, "proc/net/netstat"].splitlines()[-1].startswith("MPTcpExt: 0 0")
    assert parts("") == {}
    assert parts(f"{CLIENT}/stdout:\nsaid\n\n", 7) == {(7, CLIENT, "stdout"): "said\n"}


@pytest.fixture
def space(base: Path) -> Iterator[StandIn]:
    """Two guests; the responses to early commands come late."""

    def lag(queued: Queued) -> float:
        return 0.15 if queued.number <= 2 else 0.0

    with standing_in(base, lag=lag) as server:
        socket = CommandSocket(base / "minimega", "lab1")
        for name in ("server", "client"):
            socket.ask("vm", "config", "net", "LAN,e1000")
            socket.ask("vm", "launch", "kvm", name)
        socket.ask("vm", "start", "all")
        while len(Control(socket).clients()) < 2:
            pass
        yield server


def guests(server: StandIn) -> tuple[Control, list[Guest]]:
    socket = CommandSocket(server.base / "minimega", "lab1")
    found = machines(socket)
    return Control(socket), [Guest(name, found[name].uuid, "node1") for name in ("server", "client")]


def test_many_at_once_get_each_their_own(space: StandIn) -> None:
    control, both = guests(space)

    def ask(number: int) -> str:
        return control.run(both[number % 2], "echo", str(number), limit_s=30.0)["stdout"]

    with ThreadPoolExecutor(8) as pool:
        assert list(pool.map(ask, range(24))) == [f"echo {number}\n" for number in range(24)]
    filters = {row.filter for row in space.spaces["lab1"].queue}
    assert filters == set(), "each command is deleted once it has been answered"
    assert space.spaces["lab1"].filter == ""
    told = [line for line in space.heard if " cc filter " in line or " cc exec " in line]
    for filtered, executed in zip(told[::2], told[1::2], strict=True):
        number = int(executed.split()[-1])
        assert filtered.endswith(f"cc filter name={both[number % 2].name}"), "no other filter came between"


def test_addresses_of_web_pages_stay_what_they_are(space: StandIn) -> None:
    """Recorded: without the prefix minimega fetches them itself and puts a path in their place."""
    control, both = guests(space)
    said = control.run(both[1], "ab", "-n", "1", "http://10.0.0.1/500", limit_s=30.0)["stdout"]
    assert said == "ab -n 1 http://10.0.0.1/500\n"
    fetched = CommandSocket(space.base / "minimega", "lab1").ask("cc", "exec", "ab", "http://10.0.0.1/500").entries[0].data
    assert next(each for each in space.spaces["lab1"].queue if each.number == fetched).words[1].startswith("/")


def test_a_client_that_never_responds(space: StandIn) -> None:
    control, both = guests(space)
    space.spaces["lab1"].vms["client"].connected = False
    with pytest.raises(
        LimitExceeded, match=r"client: cc exec sleep 9: no response from its client after 0\.2 s; it is no longer"
    ):
        control.run(both[1], "sleep", "9", limit_s=0.2)
    assert space.spaces["lab1"].queue == [], "a command that was given up is not left for whoever comes"


def test_the_filter_is_cleared_when_a_command_is_refused(space: StandIn) -> None:
    control, both = guests(space)
    space.faults.append(Fault("cc exec", "error", "no"))
    with pytest.raises(HostError, match="node1: no"):
        control.run(both[0], "true", limit_s=30.0)
    assert space.spaces["lab1"].filter == ""
