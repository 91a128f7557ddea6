"""What each host says of its own clock: whose kernel's it is, and whether it is synchronised.

``twinbed-probe clock`` writes it, once when it starts and once when it ends.  Hosts with the same boot id run on one kernel and
share its clocks; of others only what their kernels say of synchronisation (adjtimex(2)) is known.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path

ARTIFACT = "clock.json"


@dataclass(frozen=True, slots=True)
class HostClock:
    """``max_error_s`` is the largest that the kernel gave; None where it never or no longer said that it is synchronised."""

    boot_id: str | None
    max_error_s: float | None


def read(file: Path) -> HostClock | None:
    """None where there is nothing to read, or it was cut off."""
    try:
        readings = [json.loads(line) for line in file.read_text().splitlines()]
    except (OSError, ValueError):
        return None
    if len(readings) < 2:
        return None
    synchronised = all(reading["synchronised"] for reading in readings)
    return HostClock(readings[0]["boot_id"], max(reading["max_error_s"] for reading in readings) if synchronised else None)
