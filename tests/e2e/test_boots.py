"""Guests that resume from a snapshot: what is each one's own, who is let in, what is never resumed, a maker that is killed."""

from __future__ import annotations

import contextlib
import dataclasses
import json
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from tests.e2e.test_guests import pass_data

from twinbed.contracts.bed import Bed
from twinbed.contracts.site import Site
from twinbed.hosts.agent import AgentHost
from twinbed.hosts.error import HostError
from twinbed.links.layout import layout
from twinbed.model.topology import Topology
from twinbed.registry import PLUGINS
from twinbed.testbeds.qemu import driver, guest, qemu
from twinbed.testbeds.qemu.settings import QemuSettings
from twinbed.testbeds.qemu.snapshot import Model, Snapshot, held

SETTINGS = QemuSettings(accelerator="tcg", boot="snapshot")
LIMIT_S = 120.0
CLOCK_S = 2.0
"""How far a busy machine may be behind when a guest is told the time; a snapshot is older than the test, or as old."""


def own_of(host: AgentHost) -> list[str]:
    """What no two guests may have in common."""
    read = "cat /proc/sys/kernel/random/boot_id; od -An -tx1 -N16 /dev/urandom; cat /sys/class/net/eth0/address; hostname"
    return host.run(["sh", "-c", read]).text.splitlines()


def guests(bed: Bed) -> list[AgentHost]:
    found = [bed.hosts["client"], bed.hosts["server"]]
    assert all(isinstance(host, AgentHost) for host in found)
    return found  # type: ignore[return-value]


def model_of(site: Site) -> Model:
    nics = layout(Topology()).nics["client"]
    return Model.of(SETTINGS, "tcg", site.image, nics, vhost=driver.vhost()[0], tsc_khz=guest.tsc_khz())


def test_resumed_guests_have_nothing_of_their_own_in_common(site: Callable[..., Site], leaves_nothing: None) -> None:
    own: list[list[str]] = []
    for _ in range(2):
        with qemu.up(SETTINGS, Topology(), site()) as bed:
            assert [item for item in bed.applied if not item.agrees] == []
            assert {(item.subject, item.found) for item in bed.applied if item.setting == "boot"} == {
                ("client", "snapshot"),
                ("server", "snapshot"),
            }
            assert [bed.passport[host.name]["boot"] for host in guests(bed)] == ["snapshot", "snapshot"]
            for host in guests(bed):
                before, there, after = time.time(), host.ping()["realtime_s"], time.time()
                assert before - CLOCK_S < there < after + CLOCK_S
                assert "crng reseeded due to virtual machine fork" in host.run(["dmesg"]).text
                own.append(own_of(host))
            pass_data(bed)
    boot_ids, random, addresses, names = zip(*own, strict=True)
    assert len(set(boot_ids)) == len(set(random)) == 4
    assert addresses == ("02:00:0a:4d:00:01", "02:00:0a:4d:00:02") * 2
    assert names == ("client", "server") * 2


def test_an_agent_with_the_key_of_an_earlier_run_is_refused(
    site: Callable[..., Site], monkeypatch: pytest.MonkeyPatch, leaves_nothing: None
) -> None:
    keys: list[str] = []
    build = guest.command_line

    def with_an_old_key(*arguments: object, key: str, **named: object) -> tuple[str, ...]:
        keys.append(key)
        return build(*arguments, key=keys[0], **named)  # type: ignore[arg-type]

    monkeypatch.setattr(guest, "command_line", with_an_old_key)
    with (
        pytest.raises(HostError, match="it does not know the key of this host's agent"),
        qemu.up(SETTINGS, Topology(), site()),
    ):
        pytest.fail("both guests were let in with one key")
    assert len(set(keys)) == 2


def test_another_qemu_does_not_resume_it(
    site: Callable[..., Site], monkeypatch: pytest.MonkeyPatch, leaves_nothing: None
) -> None:
    """The key holds QEMU's file, and the manifest the version that QEMU prints. A guest boots unless its study asks for a
    snapshot."""

    @contextlib.contextmanager
    def of_another(*arguments: Any) -> Iterator[Snapshot]:
        with held(*arguments) as snapshot:
            assert json.loads((snapshot.folder / "manifest.json").read_text())["qemu"] == snapshot.version
            yield dataclasses.replace(snapshot, version="6.2.0")

    monkeypatch.setattr(driver, "held", of_another)
    with (
        pytest.raises(HostError, match=r"QEMU \S+ cannot resume a guest that QEMU 6\.2\.0 saved"),
        qemu.up(SETTINGS, Topology(), site()),
    ):
        pytest.fail("it was resumed")
    monkeypatch.setattr(driver, "DEFAULT_BOOT", "snapshot")
    mixed = PLUGINS.drivers["mixed"]
    ends = mixed.params(client={"driver": "qemu", "accelerator": "tcg"}, server={"driver": "container"})
    with mixed.up(ends, Topology(), site("other")) as bed:
        assert [item for item in bed.applied if not item.agrees] == []
        assert {item.found for item in bed.applied if item.setting == "boot"} == {"fresh"}
        boot = str(bed.passport["client"]["boot"])
        assert boot.startswith("fresh: client: QEMU ") and " cannot resume a guest that QEMU 6.2.0 saved" in boot


def names_in(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.iterdir())


SAVES = """
import os, sys
from pathlib import Path
from tests.e2e.test_boots import LIMIT_S, model_of
from twinbed.contracts.site import Site
from twinbed.image import find, probe_path
from twinbed.testbeds.qemu.snapshot import held
place = Site("test", probe_path(), find(), Path(sys.argv[1]), ())
os.environ["TWINBED_CACHE"] = sys.argv[2]
with held(model_of(place), place.probe, LIMIT_S) as snapshot:
    print(snapshot.folder, flush=True)
"""


def test_a_maker_that_is_killed_leaves_nothing_that_is_resumed(
    site: Callable[..., Site], monkeypatch: pytest.MonkeyPatch, tmp_path: Path, leaves_nothing: None
) -> None:
    cache, place = tmp_path / "cache", site()
    command = [sys.executable, "-c", SAVES, str(tmp_path / "saves"), str(cache)]
    with subprocess.Popen(command, cwd=Path(__file__).parents[2]) as maker:
        deadline = time.monotonic() + LIMIT_S
        while not any(path.stat().st_blocks for path in cache.glob("snapshots/*.new/memory")):
            assert maker.poll() is None and time.monotonic() < deadline
            time.sleep(0.02)
        maker.send_signal(signal.SIGKILL)
    monkeypatch.setenv("TWINBED_CACHE", str(cache))
    key = model_of(place).key()
    assert names_in(cache / "snapshots") == [f"{key}.lock", f"{key}.new"]
    with held(model_of(place), place.probe, LIMIT_S) as snapshot:
        assert names_in(cache / "snapshots") == [key, f"{key}.lock"]
        assert snapshot.state.stat().st_size > 0
