"""What a switch does with the frames of a port, for every kind of switch."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Port:
    """A device as a port of a switch. At most one of the two VLANs is given; with neither, frames pass as they are."""

    device: str
    switch: str
    access: int | None = None
    """The VLAN of its frames, which have no tag on the link."""
    tagged: int | None = None
    """The one VLAN that it carries, with a tag on every frame (IEEE 802.1Q)."""
