"""Guests' settings: what each does, seen from inside the guest and from this machine, and a run that goes without one fails."""

from __future__ import annotations

import contextlib
import json
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from tests.faults import processes

from twinbed import design
from twinbed.contracts.bed import Bed
from twinbed.contracts.site import Site
from twinbed.hosts.agent import AgentHost, cpus_allowed
from twinbed.hosts.scratch import PREFIX
from twinbed.image import build as build_image
from twinbed.image import find, with_kernel
from twinbed.lab.execution import Outcome, RunFailed, execute
from twinbed.model.run import Phase
from twinbed.model.topology import Topology
from twinbed.registry import PLUGINS, catalogue
from twinbed.study.loading import load
from twinbed.testbeds.qemu import driver, guest, qemu, read_back
from twinbed.testbeds.qemu.settings import QemuSettings

OTHER_KERNEL = "linux-image-6.12-amd64"
"""Of Debian 12 too."""
RICH = {
    "machine": "pc",
    "cpu": "Haswell,-avx2",
    "vcpus": 2,
    "queues": 2,
    "nic_features": "mrg_rxbuf=off,csum=off,host_tso4=off,host_tso6=off,host_ufo=off,host_ecn=off",
}


def pass_data(bed: Bed, sent_bytes: int = 2_000_000) -> None:
    client, server = bed.hosts["client"], bed.hosts["server"]
    listener = server.start(["iperf3", "-s", "-1", "-p", "5000"])
    server.listening(5000, 30.0)
    said = client.run(["iperf3", "-c", bed.addresses["server"], "-p", "5000", "-n", str(sent_bytes), "-J"], limit_s=120.0)
    assert json.loads(said.stdout)["end"]["sum_sent"]["bytes"] >= sent_bytes
    assert listener.wait(30.0).code == 0


def threads_of(lab: str, name: str) -> dict[str, list[tuple[int, ...]]]:
    """Name of a thread of the guest's QEMU -> the CPUs of each that has it, as this machine sees them."""
    (process,) = processes("qemu-system-x86_64", f"-name {name} ", f"{PREFIX}{lab}/")
    found: dict[str, list[tuple[int, ...]]] = {}
    for task in sorted(Path(f"/proc/{process}/task").iterdir()):
        with contextlib.suppress(OSError):  # QEMU's threads for its disks come and go
            name_of_thread, cpus = (task / "comm").read_text().strip(), cpus_allowed((task / "status").read_text())
            found.setdefault(name_of_thread, []).append(cpus)
    return found


def test_every_setting_is_in_the_guest(site: Callable[..., Site], leaves_nothing: None) -> None:
    mixed = PLUGINS.drivers["mixed"]
    params = mixed.params(client={"driver": "qemu", **RICH}, server={"driver": "container"})
    with mixed.up(params, Topology(), site()) as bed:
        assert [item for item in bed.applied if not item.agrees] == []
        client = bed.hosts["client"]
        info = client.read("/proc/cpuinfo").decode()
        assert info.count("processor\t") == 2
        assert "Haswell" in info and " avx2" not in info
        # The host bridges of QEMU's two machines are Intel's 82440FX (8086:1237) and 82G33 (8086:29c0).
        assert client.read("/sys/bus/pci/devices/0000:00:00.0/device") == b"0x1237\n"
        features = client.run(["ethtool", "-k", "eth0"]).text
        assert "tx-checksumming: off" in features and re.search(r"tx-tcp-segmentation: off \[fixed\]", features)
        log = client.run(["dmesg"]).text
        assert "LSM: " in log and not re.findall(r"(?:SELinux|AppArmor|TOMOYO)\b.*[Ii]nitiali.*", log)
        queues = client.run(["ls", "/sys/class/net/eth0/queues"]).text.split()
        assert queues == ["rx-0", "rx-1", "tx-0", "tx-1"]
        assert bed.passport["client"]["NIC features"].startswith("csum=off,guest_csum=on")
        pass_data(bed)


def test_each_vcpu_has_a_cpu_of_its_own(site: Callable[..., Site], leaves_nothing: None) -> None:
    cpus = site().cpus
    with qemu.up(QemuSettings(vcpus=len(cpus)), Topology(), site()) as bed:
        found = {(item.subject, item.setting): item.found for item in bed.applied}
        assert [found["client", f"vcpu{number}.cpus"] for number in range(len(cpus))] == [(cpu,) for cpu in cpus]
        seen = [own for threads in threads_of(bed.lab, "client").values() for own in threads]
        assert all((cpu,) in seen for cpu in cpus)
        assert set(seen) == {*((cpu,) for cpu in cpus), tuple(sorted(cpus))}


@pytest.fixture(scope="session")
def other_kernel(image: Any) -> None:
    """Fetched once for each cache, as a study's user does when preflight says so."""
    if find(with_kernel(OTHER_KERNEL)) is None:
        build_image(spec=with_kernel(OTHER_KERNEL))


def test_guests_of_two_kernels_meet(site: Callable[..., Site], other_kernel: None, leaves_nothing: None) -> None:
    mixed = PLUGINS.drivers["mixed"]
    params = mixed.params(client={"driver": "qemu"}, server={"driver": "qemu", "kernel": OTHER_KERNEL})
    assert all(check.works for check in mixed.check(params))
    with mixed.up(params, Topology(), site()) as bed:
        assert [item for item in bed.applied if not item.agrees] == []
        kernels = [bed.hosts[name].read("/proc/sys/kernel/osrelease").decode() for name in ("client", "server")]
        assert kernels[0].startswith("6.1.") and kernels[1].startswith("6.12.")
        assert bed.passport["server"]["kernel"] == kernels[1].strip()
        pass_data(bed)


def other_guest(**settings: Any) -> Callable[[pytest.MonkeyPatch], None]:
    """QEMU is started with other settings than the study's."""

    def sabotage(patch: pytest.MonkeyPatch) -> None:
        original = guest.command_line

        def command_line(name: str, asked: Any, *rest: Any, **named: Any) -> Any:
            return original(name, asked.model_copy(update=settings), *rest, **named)

        patch.setattr(guest, "command_line", command_line)

    return sabotage


def vhost_that_is_not_used(patch: pytest.MonkeyPatch) -> None:
    """The driver is told that there is vhost; QEMU is not."""
    patch.setattr(driver, "vhost", lambda: (True, "as the test has it"))
    original = guest.command_line
    patch.setattr(guest, "command_line", lambda *arguments, **named: original(*arguments[:6], False, **named))


def vcpus_anywhere(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(driver, "pin", lambda *_: None)


def queues_not_set(patch: pytest.MonkeyPatch) -> None:
    def one(host: AgentHost, *_: object) -> None:
        host.run(["ethtool", "-L", "eth0", "combined", "1"])

    patch.setattr(driver, "set_queues", one)


def another_kernel(patch: pytest.MonkeyPatch) -> None:
    """The guest that boots is not of the kernel that its image is said to have."""
    original = read_back.read_back
    patch.setattr(driver, "read_back", lambda *arguments, **rest: original(*arguments, **{**rest, "kernel": "6.12.0"}))


SABOTAGE: dict[str, tuple[list[Callable[[pytest.MonkeyPatch], None]], str, list[str]]] = {
    "most": (
        [
            other_guest(machine="q35", cpu="Haswell", nic_features=None),
            queues_not_set,
            vcpus_anywhere,
            another_kernel,
        ],
        "machine: pc, cpu: 'Haswell,-avx2', vcpus: 2, queues: 2, nic_features: mrg_rxbuf=off",
        ["machine", "cpu.avx2", "queues", "nic_features.mrg_rxbuf", "vcpu0.cpus", "vcpu1.cpus", "kernel"],
    ),
    "cpu-and-vhost": ([other_guest(cpu="Nehalem"), vhost_that_is_not_used], "cpu: Haswell, vhost: on", ["cpu", "vhost"]),
}
"""What is done behind the driver's back, the settings, and what is to be found wrong."""


@pytest.mark.parametrize("name", SABOTAGE)
def test_a_guest_that_is_not_as_asked_fails_its_run(
    name: str, site: Callable[..., Site], monkeypatch: pytest.MonkeyPatch, leaves_nothing: None
) -> None:
    sabotage, settings, wrong = SABOTAGE[name]
    text = f"""
study: guests
testbeds: {{bed: {{driver: mixed, client: {{driver: qemu, {settings}}}, server: {{driver: container}}}}}}
workload: {{kind: http, duration: 1s, max_requests: 5}}
instruments: []
replicates: 1
"""
    for each in sabotage:
        each(monkeypatch)
    with pytest.raises(RunFailed) as failure:
        run = design.runs(load(text, "guests.yaml", catalogue()))[0]
        execute(run, PLUGINS, site(), Outcome(), lambda _: None)
    assert failure.value.phase == Phase.CONFIGURE
    found = re.findall(r"client: (\S+) should be", failure.value.reason)
    assert sorted(found) == sorted(wrong)
