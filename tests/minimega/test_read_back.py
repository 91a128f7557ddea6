"""Each setting that minimega has tables for is made to differ once from what was asked: the run must fail and say so."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from minimega.standin import StandIn
from minimega.state import Vm
from twinbed import design
from twinbed.contracts.site import Site
from twinbed.lab.execution import Outcome, RunFailed, execute
from twinbed.model.run import Phase
from twinbed.registry import PLUGINS, catalogue
from twinbed.study.loading import load


def data(**changed: Any) -> Callable[[Vm], None]:
    return lambda vm: vm.data.update(changed)


def nic(**changed: Any) -> Callable[[Vm], None]:
    return lambda vm: vm.data["Networks"][0].update(changed)


def row(**changed: str) -> Callable[[Vm], None]:
    return lambda vm: vm.row.update(changed)


OTHER: dict[str, tuple[Callable[[Vm], None], str]] = {
    "state": (row(state="PAUSED"), "state should be 'RUNNING' but `vm info` shows 'PAUSED'"),
    "vcpus": (data(VCPUs=2), "vcpus should be 1 but `vm info` shows 2"),
    "memory": (data(Memory=128), "memory should be 268435456 but `vm info` shows 134217728"),
    "nic": (nic(Driver="e1000"), "nic should be 'virtio-net-pci' but `vm info` shows 'e1000'"),
    "network": (nic(Alias="WAN"), "network should be 'LAN' but `vm info` shows 'WAN'"),
    "vlan": (nic(VLAN=7), "vlan should be 500 but `vm info` shows 7"),
    "mac": (nic(MAC="02:00:00:00:00:09"), "mac at the tap should be '02:00:0a:4d:00:02'"),
    "kernel": (data(KernelPath="/opt/other"), "kernel should be '/opt/k' but `vm info` shows '/opt/other'"),
    "snapshot": (data(Snapshot=False), "snapshot should be True but `vm info` shows False"),
    "append": (data(Append=["quiet"]), "append should be ['console=ttyS0'] but `vm info` shows ['quiet']"),
    "cpu": (data(CPU="host"), "cpu should be 'qemu64' but `vm info` shows 'host'"),
    "rate": (row(qos="[0: rate 50mbit]"), "rate should be 100000000 but `vm info: qos` shows 50000000"),
    "no rate": (row(qos="[]"), "rate should be 100000000 but `vm info: qos` shows 0"),
    "a delay too": (row(qos="[0: rate 100mbit, delay 10ms]"), "delay should be 0 but `vm info: qos` shows 0.01"),
}


@pytest.mark.parametrize("name", OTHER)
def test_a_guest_that_is_not_as_asked_fails_its_run(
    name: str, real: StandIn, site: Callable[..., Site], monkeypatch: pytest.MonkeyPatch
) -> None:
    change, says = OTHER[name]
    original = StandIn._do_qos_add

    def and_change(self: StandIn, space: Any, guest: str, *words: str) -> None:
        original(self, space, guest, *words)
        if guest == "server":
            change(space.vms[guest])

    monkeypatch.setattr(StandIn, "_do_qos_add", and_change)
    text = f"""
study: read-back
testbeds:
  bed: {{driver: minimega, base: {real.base}, kernel: /opt/k, disk: /opt/d, append: console=ttyS0, cpu: qemu64, vlan: 500}}
workload: {{kind: http, duration: 1s, max_requests: 5}}
topology: {{link: {{rate: 100mbit}}}}
replicates: 1
"""
    run = design.runs(load(text, "read-back.yaml", catalogue()))[0]
    with pytest.raises(RunFailed) as failure:
        execute(run, PLUGINS, site(), Outcome(), lambda _: None)
    assert failure.value.phase == Phase.CONFIGURE
    assert f"server: {says}" in failure.value.reason
    assert set(real.spaces) == {"minimega"}
