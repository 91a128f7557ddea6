"""Hosts and servers that hang or die amid a run: a failed run with its reason and evidence, and the study goes on."""

from __future__ import annotations

import contextlib
import os
import signal
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.faults import Harm, carry, processes

from twinbed.contracts.bed import Bed
from twinbed.hosts.scratch import PREFIX
from twinbed.image import Image
from twinbed.lab import execution
from twinbed.model.run import Phase

STUDY = """
study: hang
testbeds: {{bed: {{driver: {driver}}}}}
workload: {{kind: http, duration: 1s}}
instruments: [packets, counters]
replicates: 2
"""
GUEST = "mixed, client: {driver: container}, server: {driver: qemu}"


def killed(*words: str) -> Harm:
    """End the lab's processes of that command line."""

    def harm(bed: Bed) -> None:
        found = [process for process in processes(*words) if any(bed.lab in line for line in lines_above(process))]
        assert found
        for process in found:
            os.kill(process, signal.SIGKILL)

    return harm


def lines_above(process: int) -> Iterator[str]:
    """The command lines of a process and of those that it descends from, as far as they live."""
    with contextlib.suppress(OSError):
        while process:
            yield Path(f"/proc/{process}/cmdline").read_text(errors="replace")
            process = int(Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()[1])


def stop_the_server(bed: Bed) -> None:
    (qemu,) = processes("qemu-system-x86_64", "-name server", f"{PREFIX}{bed.lab}/")
    os.kill(qemu, signal.SIGSTOP)


def test_a_guest_that_hangs(tmp_path: Path, image: Image, probe: Path, leaves_nothing: None) -> None:
    text = STUDY.format(driver=GUEST)
    done = carry(text, tmp_path / "results", image, probe, stop_the_server, short=True)
    hung, fine = done.records
    assert (done.ending.complete, done.ending.failed) == (1, 1)
    assert hung["status"] == "failed"
    assert hung["failed_phase"] in ("workload", "collect")
    assert "not done after" in hung["reason"] or "exit code" in hung["reason"]
    kept = {item["path"] for item in hung["artifacts"]}
    assert {"artifacts/server/console.txt", "artifacts/machine/client.pcap"} <= kept
    assert fine["status"] == "complete"


def test_a_server_that_dies(tmp_path: Path, image: Image, probe: Path, leaves_nothing: None) -> None:
    text = STUDY.format(driver="container")
    done = carry(text, tmp_path / "results", image, probe, killed("nginx"), short=True)
    hurt, fine = done.records
    assert (done.ending.complete, done.ending.failed) == (1, 1)
    assert hurt["failed_phase"] == "workload"
    assert "nginx" in hurt["reason"] and "SIGKILL while the workload ran" in hurt["reason"]
    assert fine["status"] == "complete"


def test_an_instrument_that_dies(tmp_path: Path, image: Image, probe: Path, leaves_nothing: None) -> None:
    dies = killed("tcpdump", "client.pcap")
    text = STUDY.format(driver="container")
    hurt, fine = carry(text, tmp_path / "results", image, probe, dies, short=True).records
    assert "tcpdump" in hurt["reason"] and "SIGKILL while the workload ran" in hurt["reason"]
    assert fine["status"] == "complete"


def test_a_phase_that_does_not_end_is_ended(monkeypatch: pytest.MonkeyPatch) -> None:
    """A wait without a limit of its own: only that of the phase ends it."""
    ended = threading.Event()

    class Deaf:
        def close(self) -> None:
            ended.set()

    timer = execution.TimedPhases({}, lambda _: None)
    timer.hosts = [Deaf()]
    monkeypatch.setattr(execution, "GRACE_S", 0.1)
    with timer.timed(Phase.CONFIGURE):
        assert ended.wait(30.0)
    assert timer.overran == "the phase took longer than 0.1 s; its hosts were ended"


def test_links_that_a_host_plants_are_not_followed(tmp_path: Path, image: Image, probe: Path, leaves_nothing: None) -> None:
    """In the place of the client's output, and beside it."""
    (victim := tmp_path / "victim").write_text("kept")

    def plant(bed: Bed) -> None:
        client = bed.hosts["client"]
        for name in ("ab.txt", "another"):
            client.run(["ln", "-s", str(victim), f"{client.artifacts}/{name}"])

    text = STUDY.format(driver="container")
    done = carry(text, tmp_path / "results", image, probe, plant)
    hurt, fine = done.records
    assert victim.read_text() == "kept"
    assert (hurt["failed_phase"], fine["status"]) == ("collect", "complete")
    assert "client/another (a symbolic link)" in hurt["reason"]
    assert "ab.txt" not in hurt["reason"]
    assert not [path for path in done.results.rglob("*") if path.is_symlink()]
