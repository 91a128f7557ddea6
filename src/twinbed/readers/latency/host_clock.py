"""Each host's own clock: which kernel's it is, and whether it is synchronised.

``twinbed-probe clock`` writes it, once when it starts and once when it ends.  Hosts with the same boot id run on one kernel and
share its clocks; for others only their kernels' synchronisation (adjtimex(2)) is known.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from twinbed.model.json import WRONG, Document, document, number, optional, parsed, text, value_of

ARTIFACT = "clock.json"


@dataclass(frozen=True, slots=True)
class HostClock:
    """``max_error_s`` is the largest that the kernel gave; None where the clock was not synchronised all the time."""

    boot_id: str | None
    max_error_s: float | None


def read(file: Path) -> HostClock | None:
    """Read a file; None where there is nothing to read, or it was cut off."""
    try:
        readings = [_reading(document(parsed(line))) for line in file.read_bytes().splitlines()]
    except (OSError, *WRONG):
        return None
    if len(readings) < 2:
        return None
    errors_s = [error_s for _, error_s in readings if error_s is not None]
    return HostClock(readings[0][0], max(errors_s) if len(errors_s) == len(readings) else None)


def _reading(data: Document) -> tuple[str | None, float | None]:
    """Return the boot id, and the largest error of a clock, which is None where it is not synchronised."""
    error_s = value_of(data, "max_error_s", optional(number))
    return value_of(data, "boot_id", optional(text)), error_s if data.get("synchronised") is True else None
