"""What of a testbed gives it away, and the setting that removes it.

A setting removes a feature where it makes it alike on both testbeds by construction: what the kernel announces is set, what the
card cuts and joins is switched off, what the hardware calls itself is chosen.  Features that no setting reaches (how long
things take) have none; they are what is left after all settings are applied.  Each setting is one of testbeds' drivers, or of
the topology where ``topology.`` says so.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from twinbed.model.json import Document, Json


@dataclass(frozen=True, slots=True)
class Remedy:
    """A setting, and the value that it takes on both testbeds; None is any, the same on both."""

    setting: str
    value: str | None = None

    def __str__(self) -> str:
        return f"{self.setting}: {self.value or 'the same'}"


BUFFERS = Remedy("buffers", "alike")
OFFLOAD = Remedy("offload", "off")
NIC = Remedy("nic")
REMEDIES: Mapping[str, Remedy] = {
    **dict.fromkeys(
        ("window_scale", "syn_window", "window_mean", "tcp_signature", "nmap_win", "nmap_ops", "nmap_ecn"), BUFFERS
    ),
    **dict.fromkeys(("bytes_mean", "bytes_sd", "full_share"), OFFLOAD),
    "mss": Remedy("topology.link.mtu"),
    "ttl": Remedy("topology.routers"),
    "icmp_ttl": Remedy("topology.routers"),
    "push_share": Remedy("autocorking", "off"),
    "ack_share": Remedy("quickack", "on"),
    **dict.fromkeys(("mac_vendor", "mac_local", "net_mac_vendors"), Remedy("mac_prefix")),
    **dict.fromkeys(("pci_ids", "net_drivers", "arp_reply_bytes"), NIC),
    "burst_share": Remedy("coalescing", "off"),
    **dict.fromkeys(("cpuid_hypervisor", "cpuid_hypervisor_vendor", "cpu_model", "cpu_vendor", "cpu_flags"), Remedy("cpu")),
    **dict.fromkeys(("timer_cost_s", "cpuid_cost_s", "rdtsc_cost_s"), Remedy("accelerator")),
}
"""By the feature's own name, whatever its host or direction. Why, feature by feature: docs/detectability.md."""
TOGETHER = ("sg", "tso", "gso", "gro")
"""What ``offload`` sets."""


def remedy_of(feature: str) -> Remedy | None:
    """Return the setting that removes a feature, whatever its host or direction; None where no setting does."""
    return REMEDIES.get(feature.rpartition(".")[2])


def is_applied(remedy: Remedy, settings: tuple[Document, Document]) -> bool:
    """Return whether both testbeds, by the settings of a run of each, have it already: then it did not remove the feature."""
    values = [_value(remedy.setting, each) for each in settings]
    return values[0] == values[1] and values[0] is not None and remedy.value in (None, values[0])


def _value(setting: str, settings: Document) -> str | None:
    """As text; None where it is left as it is found."""
    value: Json = settings
    for name in setting.split("."):
        value = value.get(name) if isinstance(value, Mapping) else None
    if setting == OFFLOAD.setting and value is None:
        alone = [settings.get(name) for name in TOGETHER]
        value = alone[0] if all(each == alone[0] for each in alone) else None
    return None if value is None else str(value)
