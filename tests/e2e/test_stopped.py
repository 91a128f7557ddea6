"""Processes of a lab that are stopped: nobody lets them go on, and nothing waits for them for ever."""

from __future__ import annotations

import contextlib
import os
import signal
from collections.abc import Callable
from pathlib import Path

import pytest

from faults import processes
from twinbed.contracts.site import Site
from twinbed.hosts import lab
from twinbed.hosts.error import HostError, LimitExceeded
from twinbed.model.topology import Topology
from twinbed.testbeds.container import container
from twinbed.testbeds.qemu import guest
from twinbed.testbeds.qemu.driver import qemu


@pytest.mark.parametrize("victim", ["keeper", "first process"])
def test_a_lab_that_does_not_end_is_killed(
    victim: str, probe: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, leaves_nothing: None
) -> None:
    monkeypatch.setattr(lab, "_END_LIMIT_S", 0.5)
    with (
        pytest.raises(LimitExceeded, match=r"the lab did not end within 0\.5 s: its keeper \(process \d+\) was killed"),
        lab.open_lab(probe, tmp_path) as one,
    ):
        one.machine.start(["sleep", "1000"]).started()
        os.kill(one.keeper if victim == "keeper" else one.first_process(), signal.SIGSTOP)


def test_an_error_on_its_way_comes_before_the_keepers(
    probe: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, leaves_nothing: None
) -> None:
    monkeypatch.setattr(lab, "_END_LIMIT_S", 0.5)
    with pytest.raises(KeyboardInterrupt), lab.open_lab(probe, tmp_path) as one:
        os.kill(one.keeper, signal.SIGSTOP)
        raise KeyboardInterrupt


def test_a_stopped_agent_ends_the_run(site: Callable[..., Site], leaves_nothing: None) -> None:
    marked = ["sleep", "86411"]
    with (
        pytest.raises(HostError, match=r"client: .*not done after"),
        container.up(container.params(), Topology(), site()) as bed,
    ):
        bed.hosts["client"].start(marked).started()
        (program,) = processes(" ".join(marked))
        os.kill(_parent(program), signal.SIGSTOP)
        bed.hosts["client"].run(["true"], limit_s=0.5)


def _parent(process: int) -> int:
    return int(Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()[1])


def test_a_guests_console_takes_no_more_than_its_limit(
    site: Callable[..., Site], monkeypatch: pytest.MonkeyPatch, leaves_nothing: None
) -> None:
    """What a guest writes beyond it is lost. A kernel without much to say writes some hundred bytes as it boots."""
    monkeypatch.setattr(guest, "MOST_CONSOLE_BYTES", 3_000)
    place = site()
    with contextlib.suppress(HostError), qemu.up(qemu.params(), Topology(), place) as bed:
        bed.hosts["client"].run(["sh", "-c", "yes | head -c 6000 >/dev/ttyS0"], limit_s=120)
    (console,) = [file for file in place.artifacts.rglob(guest.CONSOLE) if file.stat().st_size > 2_000]
    assert console.stat().st_size <= 3_000
