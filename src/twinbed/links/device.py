"""A network device as `ip -j -d link show` and `ip -j addr show` describe it, on whatever host that ran.

What a switch does with the frames of a port, for every kind of switch.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NotRequired, TypedDict

from twinbed.model.json import Document, loads

SHOW = ("ip", "-j", "-d", "addr", "show")


class _Kind(TypedDict, total=False):
    info_kind: str
    info_data: Document


class _Address(TypedDict):
    local: str
    prefixlen: int


class _Shown(TypedDict):
    """What ip prints of a device, as far as it is read here."""

    ifname: str
    mtu: int
    flags: Sequence[str]
    master: NotRequired[str]
    address: NotRequired[str]
    addr_info: NotRequired[Sequence[_Address]]
    linkinfo: NotRequired[_Kind]


@dataclass(frozen=True, slots=True)
class Device:
    name: str
    kind: str | None
    master: str | None
    mtu: int
    up: bool
    carrier: bool
    """The link is there: an emulated card takes up to seconds to say so, and loses what is sent before."""
    mac: str
    addresses: tuple[str, ...]
    details: Document


def parse(output: bytes) -> tuple[Device, ...]:
    """Devices from the JSON of SHOW. Raises ValueError when it is not that."""
    try:
        return tuple(_device(entry) for entry in loads(output or b"[]") if entry)
    except (AttributeError, KeyError, TypeError, ValueError) as error:
        raise ValueError(f"`{' '.join(SHOW)}` said something else than devices: {error!r}: {output[:200]!r}") from None


def _device(entry: _Shown) -> Device:
    info: _Kind = entry.get("linkinfo", {})
    return Device(
        name=entry["ifname"],
        kind=info.get("info_kind"),
        master=entry.get("master"),
        mtu=entry["mtu"],
        up="UP" in entry["flags"],
        carrier="LOWER_UP" in entry["flags"],
        mac=entry.get("address", ""),
        addresses=tuple(f"{item['local']}/{item['prefixlen']}" for item in entry.get("addr_info", [])),
        details=info.get("info_data", {}),
    )


@dataclass(frozen=True, slots=True)
class Port:
    """A device as a port of a switch. At most one of the two VLANs is given; with neither, frames pass as they are."""

    device: str
    switch: str
    access: int | None = None
    """The VLAN of its frames, which have no tag on the link."""
    tagged: int | None = None
    """The one VLAN that it carries, with a tag on every frame (IEEE 802.1Q)."""
