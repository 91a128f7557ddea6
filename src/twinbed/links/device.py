"""A network device as `ip -j -d link show` and `ip -j addr show` describe it, on whatever host that ran, and a port of a
switch."""

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
    """The part of a device's JSON from ip that is read here."""

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
    """True if the link is up. An emulated card takes up to seconds to report it, and loses frames that are sent before."""
    mac: str
    addresses: tuple[str, ...]
    details: Document


def parse(output: bytes) -> tuple[Device, ...]:
    """Return the devices in the JSON of SHOW. Raises ValueError for other text."""
    try:
        return tuple(_device(entry) for entry in loads(output or b"[]") if entry)
    except (AttributeError, KeyError, TypeError, ValueError) as error:
        raise ValueError(f"`{' '.join(SHOW)}` did not print devices: {error!r}: {output[:200]!r}") from None


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
    """A device as a port of any kind of switch. It has at most one of the two VLANs; with neither, frames pass unchanged."""

    device: str
    switch: str
    access: int | None = None
    """The VLAN of the port's frames, which have no tag on the link."""
    tagged: int | None = None
    """The only VLAN that the port carries, with a tag on every frame (IEEE 802.1Q)."""
