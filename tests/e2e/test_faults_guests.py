"""What befalls hosts amid a run: each fault ends as a failed or a cautioned run with its evidence, and the study goes on."""

from __future__ import annotations

import asyncio
import json
import os
import re
import signal
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from qemu.qmp import QMPClient
from tests.command import twinbed
from tests.faults import Carried, Harm, carry, processes, signal_server

from twinbed.contracts.bed import Bed
from twinbed.hosts import scratch
from twinbed.hosts.scratch import PREFIX
from twinbed.image import Image
from twinbed.testbeds.qemu import guest

STUDY = """
study: faults
testbeds: {{bed: {{driver: {driver}}}}}
workload: {{kind: http, duration: 1s, threads: 2}}
instruments: []
replicates: {replicates}
"""
Study = Callable[..., Carried]


def guest_at(end: str, settings: str = "") -> str:
    """A testbed of which the host that is hurt alone is a guest: booting another takes seconds, and tells nothing more."""
    kinds = {"client": "container", "server": "container", end: f"qemu{settings}"}
    return "mixed, " + ", ".join(f"{role}: {{driver: {kind}}}" for role, kind in kinds.items())


@pytest.fixture
def study(tmp_path: Path, image: Image, probe: Path, leaves_nothing: None) -> Study:
    def carried(driver: str, harm: Harm, *, replicates: int = 1, short: bool = False) -> Carried:
        text = STUDY.format(driver=driver, replicates=replicates)
        return carry(text, tmp_path / "results", image, probe, harm, short=short)

    return carried


def failed(carried: Carried) -> dict[str, Any]:
    """The first run, which has failed; all others are complete."""
    hurt, *fine = carried.records
    assert (hurt["status"], carried.ending.failed, carried.ending.complete) == ("failed", 1, len(fine))
    return hurt


def cautioned(carried: Carried, kind: str) -> str:
    """The caution's detail."""
    (hurt,) = carried.records
    assert hurt["status"] == "complete", hurt["reason"]
    (found,) = [caution["detail"] for caution in hurt["cautions"] if caution["kind"] == kind]
    return str(found)


def kept(carried: Carried, run: dict[str, Any], path: str) -> str:
    return (carried.results / "runs" / run["id"] / "artifacts" / path).read_text(errors="replace")


def test_a_guest_whose_kernel_panics(study: Study) -> None:
    def crash(bed: Bed) -> None:
        bed.hosts["server"].write("/proc/sysrq-trigger", b"c")

    carried = study(guest_at("server"), crash, replicates=2, short=True)
    hurt = failed(carried)
    assert hurt["failed_phase"] == "workload"
    assert "server: QEMU ended (exit code 0); its console: Kernel panic - not syncing: sysrq triggered crash" in hurt["reason"]
    assert "Kernel panic - not syncing: sysrq triggered crash" in kept(carried, hurt, "server/console.txt")


def test_a_qemu_that_is_killed(study: Study) -> None:
    def kill(bed: Bed) -> None:
        (qemu,) = processes("qemu-system-x86_64", "-name server", f"{PREFIX}{bed.lab}/")
        os.kill(qemu, signal.SIGKILL)

    hurt = failed(study(guest_at("server"), kill, short=True))
    assert "server: QEMU ended (ended by SIGKILL)" in hurt["reason"]


def test_an_agent_that_stops_answering(study: Study) -> None:
    """Its programs go on, and only it can end them: the lab does."""

    def stop(bed: Bed) -> None:
        signal_server(bed, "CONT")
        for process in processes("twinbed-probe", "container", "--hostname server", f"{PREFIX}{bed.lab}/"):
            os.kill(process, signal.SIGSTOP)

    hurt = failed(study("container", stop, short=True))
    assert "server: " in hurt["reason"] and "not done after" in hurt["reason"]


def test_a_disk_that_is_full(study: Study) -> None:
    """ab says nothing of what it could not write."""

    def fill(bed: Bed) -> None:
        client = bed.hosts["client"]
        client.run(["dd", "if=/dev/zero", f"of={client.artifacts}/fill", "bs=1M", "count=200"], check=False)

    hurt = failed(study(guest_at("client"), fill))
    assert hurt["failed_phase"] == "collect"
    assert hurt["reason"] == "client: no space left at /run/twinbed: the output of programs may be cut off"


def test_a_clock_that_is_set(study: Study) -> None:
    carried = study(guest_at("client"), lambda bed: bed.hosts["client"].run(["date", "--set", "+1 hour"]))
    said = cautioned(carried, "clock_step")
    found = re.fullmatch(r"client: the clock was set forward by ([0-9.]+) s", said)
    # `date` reads the clock a little before it sets it.
    assert found and 3590 < float(found[1]) <= 3600


def test_a_clock_that_runs_at_another_rate(study: Study, monkeypatch: pytest.MonkeyPatch) -> None:
    """A guest that takes its CPU's counter for twice as fast as it is lives half as fast, and measures twice the speed."""
    khz = 2 * guest.tsc_khz()
    monkeypatch.setattr(guest, "tsc_khz", lambda: khz)
    hurt = failed(study(guest_at("client", ", accelerator: tcg, boot: fresh"), lambda bed: None))
    assert hurt["failed_phase"] == "instrument"
    found = re.match(
        r"client: the clock runs ([0-9.]+) to ([0-9.]+) times as fast as this machine's, so all its times are wrong",
        hurt["reason"],
    )
    assert found and float(found[1]) <= 0.5 <= float(found[2])


E1000_HANGS = (
    "e1000 0000:00:10.0 eth0: Detected Tx Unit Hang",
    "NETDEV WATCHDOG: eth0 (e1000): transmit queue 0 timed out",
    "e1000 0000:00:10.0 eth0: Reset adapter",
)
"""As drivers/net/ethernet/intel/e1000/e1000_main.c and net/sched/sch_generic.c of Linux 6.1 print them."""


def test_a_nic_whose_link_goes_down(study: Study) -> None:
    """Really: the server answers nothing for a while, and its driver says why."""

    async def set_link(monitor: Path, up: bool) -> None:
        qemu = QMPClient("test")
        await qemu.connect(str(monitor))
        await qemu.execute("set_link", {"name": "net0", "up": up})
        await qemu.disconnect()

    def stall(bed: Bed) -> None:
        monitor = scratch.root() / f"{PREFIX}{bed.lab}" / "server.qmp"
        asyncio.run(set_link(monitor, False))
        deadline = time.monotonic() + 30.0
        while bed.hosts["server"].read("/sys/class/net/eth0/carrier") == b"1\n" and time.monotonic() < deadline:
            time.sleep(0.05)
        asyncio.run(set_link(monitor, True))

    said = cautioned(study(guest_at("server", ", nic: e1000"), stall), "nic_reset")
    assert said.startswith("server: e1000: eth0 NIC Link is Down")


def test_a_transmit_timeout_is_shown_with_comparisons(tmp_path: Path, image: Image, probe: Path, leaves_nothing: None) -> None:
    """Its run is kept and counted, so whoever reads the numbers is told."""
    text = """
study: stalls
testbeds: {container: {driver: container}, e1000: {driver: BED}}
reference: container
workload: {kind: http, duration: 1s}
instruments: []
replicates: 1
""".replace("BED", guest_at("server", ", nic: e1000"))

    def hang(bed: Bed) -> None:
        for line in E1000_HANGS:
            bed.hosts["server"].write("/dev/kmsg", f"<3>{line}\n".encode())

    carried = carry(text, tmp_path / "results", image, probe, hang, testbed="e1000")
    assert carried.ending.failed == 0
    (marked,) = [run for run in carried.records if any(caution["kind"] == "nic_reset" for caution in run["cautions"])]
    log = kept(carried, marked, "server/kernel.log")
    assert all(line in log for line in E1000_HANGS)
    said = json.loads(twinbed("compare", carried.results, "--format", "json").stdout)
    headlines = [each for each in said["comparisons"] if each["headline"]]
    assert headlines
    for each in headlines:
        assert f"nic_reset(e1000: 1 of 1 runs: server: {E1000_HANGS[0]} (and 2 more))" in each["cautions"]
