"""Hosts and servers that hang or die amid a run: a failed run with its reason and evidence, and the study goes on."""

from __future__ import annotations

import json
import os
import signal
import threading
from collections.abc import Callable
from pathlib import Path

import pytest

from twinbed import design
from twinbed.hosts.site import Installed
from twinbed.image import Image
from twinbed.lab import clock, stage
from twinbed.lab.event import Event, PhaseBegan
from twinbed.lab.folder import Folder
from twinbed.lab.study import Ending, carry_out
from twinbed.model.run import Phase
from twinbed.model.study import load
from twinbed.registry import PLUGINS, catalogue
from twinbed.workloads.http import plan as http_plan

STUDY = """
study: hang
testbeds: {{bed: {{driver: {driver}}}}}
workload: {{kind: http, duration: 2s}}
instruments: [packets, counters]
replicates: 2
"""


@pytest.fixture(autouse=True)
def short_limits(monkeypatch: pytest.MonkeyPatch) -> None:
    """The limits themselves are tens of seconds; what happens at them is the same at a few."""
    monkeypatch.setattr(http_plan, "ANSWER_LIMIT_S", 2)
    monkeypatch.setattr(http_plan, "GRACE_S", 3.0)
    monkeypatch.setattr(clock, "GRACE_S", 4.0)
    monkeypatch.setattr(stage, "_STOP_LIMIT_S", 2.0)


def processes(*words: str) -> list[int]:
    """Processes in whose command line all the words are."""
    found = []
    for process in Path("/proc").glob("[0-9]*"):
        try:
            command = (process / "cmdline").read_bytes().replace(b"\0", b" ").decode(errors="replace")
        except OSError:
            continue
        if all(word in command for word in words):
            found.append(int(process.name))
    return found


def carry(driver: str, tmp_path: Path, image: Image, probe: Path, harm: Callable[[], None]) -> tuple[Ending, list[dict]]:
    """Carry a study out; ``harm`` is done 0.5 s into the first run's workload."""
    study = load(STUDY.format(driver=driver), "hang.yaml", catalogue())
    folder = Folder(tmp_path / "results")
    waiting = [harm]

    def listener(event: Event) -> None:
        if isinstance(event, PhaseBegan) and event.phase is Phase.WORKLOAD and waiting:
            threading.Timer(0.5, waiting.pop()).start()

    with folder.locked():
        ending = carry_out(study, design.runs(study), PLUGINS, folder, Installed(probe, image), listener)
    records = [json.loads(path.read_text()) for path in (tmp_path / "results" / "runs").glob("*/run.json")]
    return ending, sorted(records, key=lambda record: record["position"])


def hold(*words: str) -> Callable[[], None]:
    """Stop the one process of that command line in its tracks."""

    def harm() -> None:
        found = processes(*words)
        assert len(found) == 1, found
        os.kill(found[0], signal.SIGSTOP)

    return harm


def test_a_guest_that_hangs(tmp_path: Path, image: Image, probe: Path, leaves_nothing: None) -> None:
    ending, (hung, fine) = carry("qemu", tmp_path, image, probe, hold("qemu-system-x86_64", "-name server"))
    assert (ending.complete, ending.failed) == (1, 1)
    assert hung["status"] == "failed"
    assert hung["failed_phase"] in ("workload", "collect")
    assert "not done after" in hung["reason"] or "exit code" in hung["reason"]
    kept = {item["path"] for item in hung["artifacts"]}
    assert {"artifacts/server/console.txt", "artifacts/machine/client.pcap"} <= kept
    assert fine["status"] == "complete"


def test_a_server_that_dies(tmp_path: Path, image: Image, probe: Path, leaves_nothing: None) -> None:
    def harm() -> None:
        for process in processes("nginx", "/run/twinbed"):
            os.kill(process, signal.SIGKILL)

    ending, (hurt, fine) = carry("container", tmp_path, image, probe, harm)
    assert (ending.complete, ending.failed) == (1, 1)
    assert hurt["failed_phase"] == "workload"
    assert "nginx" in hurt["reason"] and "SIGKILL while the workload ran" in hurt["reason"]
    assert fine["status"] == "complete"


def test_an_instrument_that_dies(tmp_path: Path, image: Image, probe: Path, leaves_nothing: None) -> None:
    def harm() -> None:
        for process in processes("tcpdump", "client.pcap"):
            os.kill(process, signal.SIGKILL)

    _, (hurt, fine) = carry("container", tmp_path, image, probe, harm)
    assert "tcpdump" in hurt["reason"] and "SIGKILL while the workload ran" in hurt["reason"]
    assert fine["status"] == "complete"


def test_a_phase_that_does_not_end_is_ended_by_the_clock(monkeypatch: pytest.MonkeyPatch) -> None:
    """A wait without a limit of its own: only the clock ends it."""
    ended = threading.Event()

    class Deaf:
        def close(self) -> None:
            ended.set()

    timer = clock.Clock({}, lambda _: None)
    timer.hosts = [Deaf()]
    monkeypatch.setattr(clock, "GRACE_S", 0.1)
    with timer.phase(Phase.CONFIGURE):
        assert ended.wait(5.0)
    assert timer.verdict == "the phase was not done after 0.1 s; its hosts were ended"
