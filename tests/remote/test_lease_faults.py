"""What goes wrong during a run on two machines: the run fails or is cautioned, and the machines are as they were found.

That they are is what the fixture ``two`` holds after every test.
"""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.remote.conftest import differences
from tests.remote.machines import MANAGEMENT, Machines, processes_of, state, until
from tests.remote.studies import at_work, study
from twinbed.contracts.site import Site
from twinbed.hosts.error import HostLost
from twinbed.model.topology import Link, Topology
from twinbed.testbeds.remote import remote

TOPOLOGY = Topology(link=Link(rate=10**9, mtu=1300))
TALKS = "trap 'echo still here; exit' TERM; while :; do echo here; sleep 0.1; done"
TIMEOUTS = 4
"""Of the client's retransmission timer, until which the link is cut: 3 s and more, by the kernel's own clock."""
SHORT_S = 7.0
"""A lease whose end is waited for. A controller that is kept waiting for five seconds still holds it."""


def settings(two: Machines, lease: float) -> Any:
    return remote.params(**two.settings(lease=lease, offload="off", congestion_control="reno"))


def probes(two: Machines, host: str, word: str = "lease") -> list[int]:
    """The keeper and the agent of a lease, in this order."""
    found = [pid for pid, line in processes_of(two.hosts[host]).items() if "twinbed-probe " + word in line]
    return sorted(found)


def test_the_controller_is_killed(two: Machines, tmp_path: Path) -> None:
    argv = study(tmp_path, two, {"duration": "60s"}, instruments=["counters"])
    with at_work(argv, tmp_path):
        assert "10.77.0.1/24" in two.hosts["client"].run("ip", "addr")
        # A program that is being started is a third for a moment.
        until("its keeper and agent are there", lambda: len(probes(two, "client")) == 2, 30)
    until("nothing is left there", lambda: not probes(two, "client") and not probes(two, "server"), 30)
    until("no ssh is left here", lambda: not ssh_clients(two), 30)


def ssh_clients(two: Machines) -> list[str]:
    found = []
    for entry in Path("/proc").glob("[0-9]*/cmdline"):
        try:
            words = entry.read_bytes().split(b"\0")
        except OSError:
            continue
        if words[0] == b"/usr/bin/ssh" and str(two.config).encode() in words:
            found.append(entry.parent.name)
    return found


@pytest.mark.parametrize("host", ["client", "server"])
def test_the_management_link_is_cut_for_good(host: str, two: Machines, place: Site) -> None:
    before = {name: state(space) for name, space in two.hosts.items()}
    try:
        with pytest.raises(HostLost, match=f"{host}: "), remote.up(settings(two, SHORT_S), TOPOLOGY, place) as bed:
            two.silence(MANAGEMENT, host)
            bed.hosts[host].run(["sleep", "60"], limit_s=60)
        # Nobody can log in to it: it has put everything back by itself.
        assert differences(before, two) == {}
    finally:
        two.reconnect(MANAGEMENT, host)


def test_the_management_link_is_cut_for_a_while(two: Machines, place: Site) -> None:
    with remote.up(settings(two, 20), TOPOLOGY, place) as bed:
        running = bed.hosts["client"].start(["sh", "-c", TALKS])
        running.says(b"here", 60)
        two.silence(MANAGEMENT, "client")
        enough = two.timeouts("client") + TIMEOUTS
        until("the client has sent in vain", lambda: two.timeouts("client") >= enough)
        two.reconnect(MANAGEMENT, "client")
        running.signal(15)
        assert running.wait(60).stdout.endswith(b"here\nstill here\n")


def test_sshd_is_killed(two: Machines, place: Site) -> None:
    with pytest.raises(HostLost, match="client: "), remote.up(settings(two, 20), TOPOLOGY, place) as bed:
        for pid in two.sshd_processes("client"):
            os.kill(pid, signal.SIGKILL)
        two.daemons["client"].wait()
        bed.hosts["client"].run(["sleep", "60"], limit_s=60)
    two.start_sshd("client")


def test_an_agent_is_stopped(two: Machines, place: Site) -> None:
    with (
        pytest.raises(HostLost, match="nothing was heard of the controller"),
        remote.up(settings(two, SHORT_S), TOPOLOGY, place) as bed,
    ):
        os.kill(probes(two, "client")[1], signal.SIGSTOP)
        bed.hosts["client"].run(["true"], limit_s=60)


def test_a_keeper_is_killed_and_the_host_swept(two: Machines, place: Site) -> None:
    before = {name: state(space) for name, space in two.hosts.items()}
    with pytest.raises(HostLost, match="client: "), remote.up(settings(two, 20), TOPOLOGY, place) as bed:
        os.kill(probes(two, "client")[0], signal.SIGKILL)
        bed.hosts["client"].run(["sleep", "60"], limit_s=60)
    assert {"client: addresses", "client: leases"} <= set(changed(before, two)), "nobody was left to put it back"
    again = [sys.executable, "-m", "twinbed.cli.main", "sweep", "--host", "client"]
    for dry, said in ((["--dry-run"], "would undo"), ([], "undid"), ([], "Nothing to remove")):
        done = subprocess.run([*again, *dry], capture_output=True, text=True, check=False, timeout=200)
        assert done.returncode == 0 and said in done.stdout, done


def test_a_stopped_keeper_is_killed_by_the_next_who_comes(two: Machines, tmp_path: Path) -> None:
    """It holds the host's lock, and would put nothing back for ever."""
    argv = study(tmp_path, two, {"duration": "60s"}, instruments=["counters"])
    with at_work(argv, tmp_path) as process:
        until("its keeper and agent are there", lambda: len(probes(two, "client")) == 2, 30)
        os.kill(probes(two, "client")[0], signal.SIGSTOP)
        process.kill()
    until(
        "the agent has ended, and the other host is done", lambda: len(probes(two, "client") + probes(two, "server")) == 1, 60
    )
    sweep = [sys.executable, "-m", "twinbed.cli.main", "sweep", "--host", "client"]
    done = subprocess.run(sweep, capture_output=True, text=True, check=False, timeout=200)
    assert done.returncode == 0 and "undid" in done.stdout, done


def changed(before: dict[str, dict[str, object]], two: Machines) -> list[str]:
    now = {name: state(space) for name, space in two.hosts.items()}
    return [f"{name}: {what}" for name, facts in before.items() for what in facts if facts[what] != now[name][what]]
