"""minimega's own capture of guests' packets, at their taps on the node: one file a guest, kept as an artifact."""

from __future__ import annotations

import contextlib
import time
from collections.abc import Iterator, Mapping
from pathlib import Path

from twinbed.contracts.bed import Applied
from twinbed.hosts.error import HostError
from twinbed.testbeds.minimega.machine import Machine
from twinbed.testbeds.minimega.space import Space

_HELD_BACK_S = 1.5
"""libpcap hands packets to minimega in batches at most 1 s apart, and minimega closes a capture without asking for the last."""


@contextlib.contextmanager
def captured(own: Space, guests: Mapping[str, Machine], to: Path) -> Iterator[list[Applied]]:
    """Capture while the block runs. minimega keeps 1600 bytes of a packet, on the node that runs the guest."""
    here = own.head.node
    if elsewhere := [f"{name} on {machine.node}" for name, machine in guests.items() if machine.node != here]:
        where = ", ".join(elsewhere)
        raise HostError(f"minimega: captures are fetched from the head node ({here}) only, not of {where}; use capture: off")
    files = {guest: f"{own.name}-{guest}.pcap" for guest in guests}
    for guest, file in files.items():
        own.socket.ask("capture", "pcap", "vm", guest, "0", file)
    capture_of = {row["interface"]: row for row in own.socket.ask("capture").rows}
    applied = [
        Applied(
            guest,
            "capture",
            file,
            Path(capture_of[f"{guest}:0"]["path"]).name if f"{guest}:0" in capture_of else None,
            "capture",
        )
        for guest, file in files.items()
    ]
    try:
        yield applied
    finally:
        time.sleep(_HELD_BACK_S)  # nothing says when the last batch was written
        own.socket.ask("clear", "capture")
        for guest, file in files.items():
            if (row := capture_of.get(f"{guest}:0")) is None:
                raise HostError(f"minimega: {guest}: `capture` does not list the capture {file}")
            own.head.get(row["path"], to / f"{guest}.pcap")
