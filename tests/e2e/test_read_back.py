"""Every setting that can be read back is made to differ once from what was asked: each time the run must fail and say so."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from twinbed import design
from twinbed.contracts.site import Site
from twinbed.hosts import cgroups
from twinbed.hosts.agent import AgentHost
from twinbed.lab.execution import Outcome, RunFailed, execute
from twinbed.links import bridge, network, shaping
from twinbed.model.run import Phase
from twinbed.registry import PLUGINS, catalogue
from twinbed.study.loading import load
from twinbed.study.run import Run
from twinbed.testbeds.qemu import guest, monitor

Sabotage = Callable[[pytest.MonkeyPatch], None]


SETTINGS = (
    "offload: off, congestion_control: reno, autocorking: off, receive_buffer: 1MiB, send_buffer: 2MiB, quickack: on,"
    " initial_window: 4"
)
CONTAINERS = f"driver: container, {SETTINGS}"
A_GUEST = f"driver: mixed, client: {{driver: qemu, {SETTINGS}}}, server: {{driver: container, {SETTINGS}}}"


def one_run(bed: str, shaper: str = "htb") -> Run:
    text = f"""
study: read-back
testbeds:
  bed: {{{bed}}}
workload: {{kind: http, duration: 1s, max_requests: 5}}
topology: {{link: {{rate: 1gbit, shaper: {shaper}, queue: 500}}}}
instruments: []
replicates: 1
"""
    return design.runs(load(text, "read-back.yaml", catalogue()))[0]


def replace_in(module: Any, function: str, old: str, new: str) -> Sabotage:
    """The planned text with ``old`` in it becomes another: what is applied is not what was asked."""

    def sabotage(patch: pytest.MonkeyPatch) -> None:
        original = getattr(module, function)

        def other(*arguments: Any, **rest: Any) -> str:
            text = original(*arguments, **rest)
            assert not text or old in text, text
            return text.replace(old, new)

        patch.setattr(module, function, other)

    return sabotage


def soon(sabotage: Sabotage) -> Sabotage:
    """With a carrier and an answer waited for a second alone: they never come."""

    def both(patch: pytest.MonkeyPatch) -> None:
        sabotage(patch)
        patch.setattr(network, "CARRIER_LIMIT_S", 1.0)
        patch.setattr(network, "ANSWER_LIMIT_S", 1.0)

    return both


def swap_program(old: str, new: list[str]) -> Sabotage:
    """A program that a host is told to run is another one."""

    def sabotage(patch: pytest.MonkeyPatch) -> None:
        original = AgentHost.start

        def start(self: AgentHost, argv: Any, **rest: Any) -> Any:
            return original(self, new if " ".join(argv).startswith(old) else argv, **rest)

        patch.setattr(AgentHost, "start", start)

    return sabotage


def drop_write(path: str) -> Sabotage:
    """A setting that is a file is never written."""

    def sabotage(patch: pytest.MonkeyPatch) -> None:
        original = AgentHost.write

        def write(self: AgentHost, to: str, content: bytes, **rest: Any) -> None:
            if to != path:
                original(self, to, content, **rest)

        patch.setattr(AgentHost, "write", write)

    return sabotage


def pin_elsewhere(patch: pytest.MonkeyPatch) -> None:
    original = AgentHost.start

    def start(self: AgentHost, argv: Any, *, cpus: Any = None, **rest: Any) -> Any:
        return original(self, argv, cpus=None, **rest)

    patch.setattr(AgentHost, "start", start)


def pin_elsewhere_without_cpusets(patch: pytest.MonkeyPatch) -> None:
    """As on a machine without that controller: else the control group holds what the affinity does not."""
    patch.setattr(cgroups, "hierarchies", dict)
    pin_elsewhere(patch)


def other_guest(**settings: Any) -> Sabotage:
    """QEMU is started with other settings than the study's."""

    def sabotage(patch: pytest.MonkeyPatch) -> None:
        original = guest.command_line

        def command_line(name: str, asked: Any, *rest: Any, **named: Any) -> Any:
            return original(name, asked.model_copy(update=settings), *rest, **named)

        patch.setattr(guest, "command_line", command_line)

    return sabotage


def other_accelerator(patch: pytest.MonkeyPatch) -> None:
    """QEMU says that it runs with another accelerator than was asked for."""
    original = monitor.ask

    def ask(*arguments: Any, **rest: Any) -> monitor.Monitored:
        monitored = original(*arguments, **rest)
        return dataclasses.replace(monitored, kvm=not monitored.kvm)

    patch.setattr(monitor, "ask", ask)


CONTAINER: dict[str, tuple[Sabotage, str]] = {
    "bridge": (replace_in(bridge, "switch", "stp_state 0", "stp_state 1"), "spanning_tree"),
    "snooping": (replace_in(bridge, "switch", "mcast_snooping 0", "mcast_snooping 1"), "multicast_snooping"),
    "port-mtu": (replace_in(bridge, "veth", "mtu 1500 type veth", "mtu 1400 type veth"), "mtu"),
    "port-master": (lambda patch: patch.setattr(bridge, "join", lambda port, _: f"link set {port} up\n"), "master"),
    "port-down": (soon(replace_in(bridge, "veth", " up\n", " down\n")), "up"),
    "host-address": (replace_in(bridge, "address", "addr add 10.77", "addr add 10.78"), "address"),
    "host-mac": (replace_in(bridge, "address", "02:00:0a:4d", "02:00:0a:4e"), "mac"),
    "host-mtu": (replace_in(bridge, "address", "mtu 1500", "mtu 1300"), "mtu"),
    "rate": (
        replace_in(shaping, "plan", "rate 1000000000bit ceil 1000000000bit", "rate 900000000bit ceil 900000000bit"),
        "rate",
    ),
    "burst": (replace_in(shaping, "plan", " burst 125000b", " burst 250000b"), "burst"),
    "cburst": (replace_in(shaping, "plan", "cburst 125000b", "cburst 250000b"), "cburst"),
    "no-shaper": (lambda patch: patch.setattr(shaping, "plan", lambda *_: ""), "shaper"),
    "offload": (swap_program("ethtool -K", ["true"]), "offload.tso"),
    "congestion-control": (drop_write("/proc/sys/net/ipv4/tcp_congestion_control"), "congestion_control"),
    "autocorking": (drop_write("/proc/sys/net/ipv4/tcp_autocorking"), "autocorking"),
    "receive-buffer": (drop_write("/proc/sys/net/ipv4/tcp_rmem"), "receive_buffer"),
    "send-buffer": (drop_write("/proc/sys/net/ipv4/tcp_wmem"), "send_buffer"),
    "quickack": (swap_program("ip route change", ["true"]), "quickack"),
    "initial-window": (swap_program("ip route change", ["true"]), "initial_window"),
    "queue": (replace_in(shaping, "plan", "pfifo limit 500", "pfifo limit 400"), "queue"),
    "cpus": (pin_elsewhere_without_cpusets, "cpus"),
}
QEMU: dict[str, tuple[list[Sabotage], list[str]]] = {
    "most": (
        [other_guest(nic="e1000", vcpus=2, memory=256 * 2**20), pin_elsewhere, other_accelerator],
        ["nic", "vcpus", "memory", "cpus", "accelerator"],
    ),
    "port-down": ([soon(replace_in(bridge, "tap", " up\n", " down\n"))], ["up"]),
}
"""Several at once, as guests take seconds to boot: each is named."""


def fails_with(run: Run, site: Site) -> RunFailed:
    with pytest.raises(RunFailed) as failure:
        execute(run, PLUGINS, site, Outcome(), lambda _: None)
    return failure.value


@pytest.mark.parametrize("name", CONTAINER)
def test_a_container_that_is_not_as_asked_fails_its_run(
    name: str, site: Callable[..., Site], monkeypatch: pytest.MonkeyPatch, leaves_nothing: None
) -> None:
    sabotage, setting = CONTAINER[name]
    sabotage(monkeypatch)
    failure = fails_with(one_run(CONTAINERS), site())
    assert failure.phase == Phase.CONFIGURE, failure.reason
    assert f": {setting} should be " in failure.reason


@pytest.mark.parametrize("name", QEMU)
def test_a_guest_that_is_not_as_asked_fails_its_run(
    name: str, site: Callable[..., Site], monkeypatch: pytest.MonkeyPatch, leaves_nothing: None
) -> None:
    sabotage, settings = QEMU[name]
    for each in sabotage:
        each(monkeypatch)
    failure = fails_with(one_run(A_GUEST), site())
    assert failure.phase == Phase.CONFIGURE, failure.reason
    for setting in settings:
        assert f": {setting} should be " in failure.reason


def test_tbf_is_read_back_too(site: Callable[..., Site], monkeypatch: pytest.MonkeyPatch, leaves_nothing: None) -> None:
    replace_in(shaping, "plan", "burst 125000b", "burst 200000b")(monkeypatch)
    assert ": burst should be 125000 " in fails_with(one_run(CONTAINERS, "tbf"), site()).reason


def test_an_unchanged_run_is_complete(site: Callable[..., Site], leaves_nothing: None) -> None:
    """The counterpart without which the tests above would prove nothing."""
    outcome = Outcome()
    place: Path = site().artifacts
    execute(one_run(CONTAINERS), PLUGINS, dataclasses.replace(site(), artifacts=place), outcome, lambda _: None)
    assert all(item.agrees for item in outcome.applied)
