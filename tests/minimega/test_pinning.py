"""QEMU's threads on CPUs of their own: real QEMU processes, on this machine. test_machines.py pins guests that boot."""

from __future__ import annotations

import contextlib
import os
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from minimega.standin import StandIn
from twinbed.hosts.error import HostError
from twinbed.model.caution import Kind
from twinbed.testbeds.minimega import launch
from twinbed.testbeds.minimega.head import Head, open_head
from twinbed.testbeds.minimega.launch import Wanted
from twinbed.testbeds.minimega.machine import Machine

CPUS = tuple(sorted(os.sched_getaffinity(0)))
QEMU = (
    "qemu-system-x86_64",
    "-nodefaults",
    "-no-user-config",
    "-display",
    "none",
    "-S",
    "-m",
    "64M",
    "-accel",
    "tcg,thread=multi",
)


def affinities(pid: int) -> set[tuple[int, ...]]:
    """By sched_getaffinity of each thread, not by /proc's text."""
    return {tuple(sorted(os.sched_getaffinity(int(task.name)))) for task in Path(f"/proc/{pid}/task").iterdir()}


@contextlib.contextmanager
def qemu(base: Path, number: int, node: str) -> Iterator[Machine]:
    """A guest that has not booted, with two threads of vCPUs, and files where minimega has them."""
    folder = base / str(number)
    folder.mkdir()
    process = subprocess.Popen([*QEMU, "-smp", "2", "-qmp", f"unix:{folder}/qmp,server=on,wait=off"])
    try:
        while not (folder / "qmp").exists() or len(list(Path(f"/proc/{process.pid}/task").iterdir())) < 4:
            assert process.poll() is None
            time.sleep(0.01)
        yield Machine({"host": node, "name": f"guest{number}", "pid": str(process.pid)}, {"ID": number})
    finally:
        process.kill()
        process.wait()


@pytest.fixture
def head(server: StandIn) -> Iterator[Head]:
    with open_head(str(server.base), None) as head:
        yield head


def wanted(*machines: Machine) -> list[Wanted]:
    return [Wanted(machine.name, "10.0.0.1/24", "02:00:0a:00:00:01", "e1000", None) for machine in machines]


@pytest.mark.skipif(len(CPUS) < 2, reason="one CPU: all guests share it")
@pytest.mark.parametrize("node", ["node1", "node2"])
def test_each_guest_has_cpus_of_its_own(server: StandIn, head: Head, node: str) -> None:
    """On the head node by the shell there, on another by minimega's `shell`."""
    server.nodes = ["node1", "node2"]
    with qemu(server.base, 1, node) as one, qemu(server.base, 2, node) as two:
        assert affinities(int(one.row["pid"])) == {CPUS}
        applied, cautions = launch.pin(head, {each.name: each for each in (two, one)}, wanted(one, two), 1)
        first, second = launch.node_cpus(head, node)[:2]
        assert [(item.subject, item.setting, item.asked, item.found) for item in applied] == [
            ("guest1", "cpus", (first,), (first,)),
            ("guest2", "cpus", (second,), (second,)),
        ]
        assert [affinities(int(each.row["pid"])) for each in (one, two)] == [{(first,)}, {(second,)}]
        assert cautions == []
    assert any(line.startswith("mesh send node2 shell") for line in server.heard) == (node == "node2")


def test_guests_that_share_cpus_are_cautioned(server: StandIn, head: Head) -> None:
    with qemu(server.base, 1, "node1") as one, qemu(server.base, 2, "node1") as two:
        applied, (caution,) = launch.pin(head, {"guest1": one, "guest2": two}, wanted(one, two), len(CPUS))
        assert caution.kind is Kind.SHARED_CPU
        assert f"2 hosts need {2 * len(CPUS)} CPUs for themselves, and there are {len(CPUS)}" in caution.detail
        assert [item.found for item in applied] == [CPUS, CPUS]


@pytest.mark.skipif(len(CPUS) < 2, reason="one CPU: nothing can differ")
def test_a_thread_that_is_elsewhere_is_found(server: StandIn, head: Head) -> None:
    with qemu(server.base, 1, "node1") as guest:
        pid = int(guest.row["pid"])
        launch.place(head, guest, CPUS[:1])
        assert launch.read_back(head, guest, CPUS[:1]).agrees
        last = max(int(task.name) for task in Path(f"/proc/{pid}/task").iterdir())
        os.sched_setaffinity(last, CPUS[1:2])
        item = launch.read_back(head, guest, CPUS[:1])
        assert not item.agrees
        assert item.found == (CPUS[:1], CPUS[1:2])


def test_a_process_that_is_not_the_guests(server: StandIn, head: Head) -> None:
    with qemu(server.base, 1, "node1") as guest, subprocess.Popen(["sleep", "60"]) as other:
        try:
            for pid in (str(other.pid), "4194305"):
                stranger = Machine({**guest.row, "pid": pid}, guest.data)
                with pytest.raises(HostError, match=rf"guest1: .*process {pid} of node1, which is not the guest's QEMU"):
                    launch.place(head, stranger, CPUS[:1])
            assert affinities(other.pid) == {CPUS}
            with pytest.raises(HostError, match="`vm info` must give a process id, not 'N/A'"):
                launch.place(head, Machine({**guest.row, "pid": "N/A"}, guest.data), CPUS[:1])
            with pytest.raises(HostError, match=r"(?s)taskset .*Invalid argument"):
                launch.place(head, guest, (4000,))
        finally:
            other.kill()
