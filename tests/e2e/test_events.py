"""The instrument `events` in a guest, whose kernel nobody else uses: its counts are those of the kernel's own counters."""

from __future__ import annotations

from collections.abc import Callable

from twinbed import design
from twinbed.contracts.place import MACHINE
from twinbed.contracts.site import Site
from twinbed.instruments.counters import CountersParams, counters
from twinbed.instruments.events import EventsParams, events
from twinbed.lab.execution import Outcome, execute
from twinbed.registry import PLUGINS, catalogue
from twinbed.study.loading import load

STUDY = """
study: events
testbeds:
  guest:
    {driver: mixed, client: {driver: qemu, nic: e1000, offload: off}, server: {driver: container, offload: off}}
workload: {kind: http, tool: ab, payload: 500B, duration: 30s, max_requests: 200}
instruments: {counters: , events: {share: 1}}
replicates: 1
"""
AT_THE_ENDS = 30
"""Packets (of ARP, of connections that end) between the start or stop of the one instrument and the other's."""


def test_packets_of_a_guest_are_those_of_its_kernels_counters(site: Callable[..., Site], leaves_nothing: None) -> None:
    place = site()
    (run,) = design.runs(load(STUDY, "events.yaml", catalogue()))
    execute(run, PLUGINS, place, Outcome(), lambda _: None)
    found = events.extract(EventsParams(share=1), place.artifacts)
    of_counters = counters.extract(CountersParams(), place.artifacts)
    counted = {(value.metric, value.host): value.value for value in of_counters.values}
    rows = {(row["host"], row["event"], row["device"]): row["hits"] for row in found.tables["events"].to_pylist()}
    for tracepoint, metric in (("net_dev_xmit", "nic_tx_packets"), ("netif_receive_skb", "nic_rx_packets")):
        expected = counted[metric, "client"]
        assert expected is not None and expected > 100
        assert abs(rows["client", tracepoint, "eth0"] - expected) <= AT_THE_ENDS, tracepoint
    values = {(value.metric, value.host): value.value for value in found.values}
    assert {host for _, host in values} == {"client", MACHINE}
    # A guest has no guests: KVM is not loaded there, so that nothing is known of its exits.
    assert values["kvm_exit_events", "client"] is None and values["kvm_exit_seconds", "client"] is None
    lines = {row["line"] for row in of_counters.tables["interrupts"].to_pylist() if row["host"] == "client"}
    assert any("eth0" in line for line in lines) and "LOC" in lines
