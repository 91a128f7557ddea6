"""Faults amid runs: is each found, as its own caution or as the run's failure, and in no other run?

One study of each driver: as many runs of each fault as are asked for, and as many that nothing befalls, in random order. A
fault is put to the testbed a while after the workload has begun.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import random
import signal
import sys
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from qemu.qmp import QMPClient
from tests.faults import Seen

from benchmarks.campaign import alone, table, wilson
from twinbed.contracts.bed import Bed
from twinbed.contracts.place import MACHINE
from twinbed.hosts import scratch
from twinbed.hosts.error import HostError
from twinbed.links.layout import port

_STUDY = """
study: faults
testbeds: {{bed: {testbed}}}
workload: {{kind: http, duration: 6s, payload: 20kB, keep_alive: on}}
topology: {{link: {{rate: 200mbit}}}}
instruments: {{packets: {{buffer: 1MiB}}, counters: {{}}}}
replicates: {replicates}
seed: {seed}
"""
_AFTER_S = (0.3, 1.2)
"""Into the workload."""
_NOTHING = "nothing"
_OF_THIS_MACHINE = frozenset(
    {"software_cpu", "unpinned", "steal", "cpu_exhausted", "checksum_offload", "warm_up", "link_not_filled"}
)
"""Cautions about the machine on which the campaign is run, which says nothing of faults."""


@dataclass(frozen=True, slots=True)
class Fault:
    harm: Callable[[Bed], None]
    caution: str | None = None
    """The kind that says it."""
    reason: str | None = None
    """What the failed run's reason has in it."""

    @property
    def sign(self) -> str:
        return self.caution or f"failed: {self.reason}"


def _port_down(bed: Bed) -> None:
    bed.hosts[MACHINE].run(["ip", "link", "set", port("server"), "down"])
    time.sleep(1.5)
    bed.hosts[MACHINE].run(["ip", "link", "set", port("server"), "up"])


_DAMAGE = """
import socket, sys, time
link = socket.socket(socket.AF_PACKET, socket.SOCK_RAW, socket.htons(3))
link.bind((sys.argv[1], 3))
ends, seen = time.monotonic() + 1.0, 0
while time.monotonic() < ends:
    frame, where = link.recvfrom(65535)
    if where[2] == socket.PACKET_OUTGOING and frame[12:14] == b"\\x08\\x00" and frame[22] != 1:
        seen += 1
        if seen % 20 == 0:
            link.send(frame[:22] + b"\\x01" + frame[23:])
"""
"""Each twentieth packet that leaves is sent once more with another hop limit, which its header's checksum does not fit. (This
kernel may have no netem, which would take the whole one.)"""


def _corrupt(bed: Bed) -> None:
    bed.hosts[MACHINE].run([sys.executable, "-c", _DAMAGE, port("server")])


def _capture_stands_still(bed: Bed) -> None:
    found = [each for each, line in alone.processes().items() if line.startswith("tcpdump -i p.")]
    for each in found:
        os.kill(each, signal.SIGSTOP)
    time.sleep(3.5)
    for each in found:
        os.kill(each, signal.SIGCONT)


def _end(words: str) -> Callable[[Bed], None]:
    def harm(bed: Bed) -> None:
        os.kill(min(each for each, line in alone.processes().items() if line.startswith(words)), signal.SIGKILL)

    return harm


def _no_documents(bed: Bed) -> None:
    bed.hosts["server"].run(["sh", "-c", "mv /run/www /run/gone"])


def _memory(bed: Bed) -> None:
    bed.hosts["client"].run(["sh", "-c", "head -c 400000000 /dev/zero | tail"], check=False)


def _clock(bed: Bed) -> None:
    bed.hosts["client"].run(["date", "--set", "+1 hour"])


def _disk(bed: Bed) -> None:
    client = bed.hosts["client"]
    client.run(["dd", "if=/dev/zero", f"of={client.artifacts}/fill", "bs=1M", "count=200"], check=False)


def _link_of_a_guest(bed: Bed) -> None:
    async def set_link(up: bool) -> None:
        qemu = QMPClient("campaign")
        await qemu.connect(str(scratch.root() / f"{scratch.PREFIX}{bed.lab}" / "server.qmp"))
        await qemu.execute("set_link", {"name": "net0", "up": up})
        await qemu.disconnect()

    asyncio.run(set_link(False))
    deadline = time.monotonic() + 10.0
    while bed.hosts["server"].read("/sys/class/net/eth0/carrier") == b"1\n" and time.monotonic() < deadline:
        time.sleep(0.05)
    asyncio.run(set_link(True))


FAULTS: Mapping[str, Mapping[str, Fault]] = {
    "container, memory: 256MiB": {
        "a port of the switch goes down for 1.5 s": Fault(_port_down, "stall"),
        "damaged packets for 1 s": Fault(_corrupt, "bad_checksums"),
        "the captures stand still for 3.5 s": Fault(_capture_stands_still, "capture_drops"),
        "the documents are gone": Fault(_no_documents, "non_2xx"),
        "the server is killed": Fault(_end("nginx"), reason="nginx"),
        "the client is killed": Fault(_end("ab "), reason="ab "),
        "memory runs out": Fault(_memory, reason="out of memory"),
    },
    "qemu, nic: e1000": {
        "a guest's clock is set": Fault(_clock, "clock_step"),
        "a guest's NIC loses its link": Fault(_link_of_a_guest, "nic_reset"),
        "a guest's disk is full": Fault(_disk, reason="no space left"),
        "QEMU is killed": Fault(_end("qemu-system-x86_64 -name server"), reason="QEMU ended"),
    },
}


def run(each: int, seed: int, folder: Path) -> bool:
    """Whether any recall or precision is below 95 %."""
    rows: list[tuple[object, ...]] = [("driver", "fault", "said by", "runs", "found", "recall", "said without it", "precision")]
    worst = 1.0
    for number, (testbed, faults) in enumerate(FAULTS.items()):
        of_study = folder / f"faults-{number}"
        of_study.mkdir()
        said = _carried(testbed, faults, each, seed, of_study)
        nothing = [signs for fault, signs in said if fault == _NOTHING]
        rows.append((testbed.split(",")[0], _NOTHING, "", len(nothing), "", "", sum(bool(signs) for signs in nothing), ""))
        for name, fault in faults.items():
            mine = [fault.sign in signs for planted, signs in said if planted == name]
            others = [planted for planted, signs in said if planted != name and fault.sign in signs]
            recall, precision = sum(mine) / len(mine), sum(mine) / max(sum(mine) + len(others), 1)
            worst = min(worst, recall, precision)
            of_all, of_said = wilson(sum(mine), len(mine)), wilson(sum(mine), sum(mine) + len(others))
            rows.append(
                (
                    testbed.split(",")[0],
                    name,
                    fault.sign,
                    len(mine),
                    sum(mine),
                    f"{recall:.0%} ({of_all[0]:.0%} to {of_all[1]:.0%})",
                    len(others),
                    f"{precision:.0%} ({of_said[0]:.0%} to {of_said[1]:.0%})",
                )
            )
            if others:
                sys.stderr.write(f"{fault.sign} without {name}: {', '.join(others)}\n")
    sys.stdout.write(table(*rows))
    return worst < 0.95


def _carried(
    testbed: str, faults: Mapping[str, Fault], each: int, seed: int, folder: Path
) -> Sequence[tuple[str, frozenset[str]]]:
    """Fault and what was said, of each run."""
    file, text = (
        folder / "said.json",
        _STUDY.format(testbed=f"{{driver: {testbed}}}", replicates=each * (len(faults) + 1), seed=seed),
    )
    planned = [name for name in (_NOTHING, *faults) for _ in range(each)]
    random.Random(seed).shuffle(planned)

    def call() -> None:
        file.write_text(json.dumps(_carry(text, faults, planned, folder / "results")))

    code = alone.ended(alone.forked(call, folder / "words"), 7200.0)
    if code != 0:
        sys.stderr.write((folder / "words").read_text())
        raise SystemExit(f"the study of faults ended with {code}")
    sys.stderr.write((folder / "words").read_text())
    return [(fault, frozenset(signs)) for fault, signs in json.loads(file.read_text())]


def _carry(text: str, faults: Mapping[str, Fault], planned: Sequence[str], results: Path) -> list[tuple[str, list[str]]]:
    from twinbed import design
    from twinbed.api import Results
    from twinbed.contracts.site import Installed
    from twinbed.image import build, find, probe_path
    from twinbed.lab import execution
    from twinbed.lab.study import Event, PhaseBegan, carry_out
    from twinbed.model.run import Phase
    from twinbed.registry import PLUGINS, catalogue
    from twinbed.results.folder import Folder
    from twinbed.study.loading import load
    from twinbed.workloads import http

    # At half a minute what happens is the same.
    http.ANSWER_LIMIT_S, http.GRACE_S, execution.GRACE_S = 5, 5.0, 10.0
    beds: list[Bed] = []
    seen = replace(PLUGINS, drivers={name: Seen(driver, beds) for name, driver in PLUGINS.drivers.items()})
    study, draw = load(text, "faults.yaml", catalogue()), random.Random(1)
    runs, threads = design.runs(study), list[threading.Timer]()
    planted = dict(zip((run.id for run in runs), planned, strict=True))

    def befall(fault: Fault, bed: Bed) -> None:
        with contextlib.suppress(HostError):  # a host that is brought down does not answer
            fault.harm(bed)

    def listener(event: Event) -> None:
        if isinstance(event, PhaseBegan) and event.phase is Phase.WORKLOAD:
            name = planted[event.run.id]
            sys.stderr.write(f"{event.run.id}: {name}\n")
            if name != _NOTHING:
                threads.append(threading.Timer(draw.uniform(*_AFTER_S), befall, (faults[name], beds[-1])))
                threads[-1].start()

    folder = Folder(results)
    with folder.locked():
        carry_out(study, runs, seen, folder, Installed(probe_path(), find() or build()), listener)
    for thread in threads:
        thread.join()
    signs: dict[str, set[str]] = {run.id: set() for run in runs}
    for row in Results(results).table("cautions").to_pylist():
        if row["run"] in signs and row["kind"] not in _OF_THIS_MACHINE:
            signs[row["run"]].add(row["kind"])
    for name, of_run in signs.items():
        record = json.loads((results / "runs" / name / "run.json").read_text())
        if record["status"] == "failed":
            said = record["reason"].lower()  # the kernel's words and ours begin differently
            known = [each.sign for each in faults.values() if each.reason and each.reason.lower() in said]
            of_run.update(known or [f"failed: {record['reason']}"])
        sys.stderr.write(f"{name}: {planted[name]}: {', '.join(sorted(of_run)) or 'nothing'}\n")
    return [(planted[name], sorted(of_run)) for name, of_run in signs.items()]
