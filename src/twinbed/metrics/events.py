"""The metrics of the instrument ``events``, hits of the kernel's tracepoints, and of the instrument ``stations``, its
records."""

from __future__ import annotations

from twinbed.metrics.metric import Layer, Metric

NET = {
    "net_dev_queue": "packets handed to a device's queue",
    "net_dev_xmit": "packets handed to a device's driver",
    "netif_rx": "packets received by way of a CPU's backlog, as from a veth",
    "netif_receive_skb": "packets received by the network stack, of any device",
    "napi_poll": "polls of devices for received packets",
    "kfree_skb": "packets that the kernel dropped (Linux before 5.18: or freed otherwise)",
}
"""Tracepoint -> the meaning of a hit. A packet is what the kernel handles as one: with segmentation offload up to 64 KiB."""
KVM = {
    "vmexit": ("kvm_exit", "times that a guest left hardware virtualisation"),
    "mmio": ("kvm_mmio", "accesses of guests to the memory of emulated devices"),
    "ioport": ("kvm_port", "accesses of guests to ports of emulated devices"),
}
"""Timed event -> the name of its metrics, and its meaning."""

HITS = {
    tracepoint: Metric(f"{tracepoint}_events", "1", Layer.NETWORK, meaning, extensive=True)
    for tracepoint, meaning in NET.items()
}
ACCESSES = {kind: Metric(f"{name}_events", "1", Layer.HOST, meaning, extensive=True) for kind, (name, meaning) in KVM.items()}
SECONDS = {
    kind: Metric(f"{name}_seconds", "s", Layer.HOST, f"time of {meaning}, until the guest ran again", extensive=True)
    for kind, (name, meaning) in KVM.items()
}
METRICS = (*HITS.values(), *ACCESSES.values(), *SECONDS.values())

RECORDS = Metric(
    "station_records",
    "1",
    Layer.OS,
    "records of packets at stations of the host's kernel, and of calls that moved their bytes",
    extensive=True,
)
STATION_METRICS = (RECORDS,)
