"""Cautions from a kernel's log."""

from __future__ import annotations

import re
from collections.abc import Iterable

from twinbed.model.caution import Caution, Kind

NIC_TROUBLE = re.compile(
    r"NETDEV WATCHDOG|transmit queue .* timed out|Detected (?:Tx|Hardware) Unit Hang|Reset adapter|NIC Link is Down"
    r"|TX timeout detected|transmit timed out|\btx_timeout\b",
    re.IGNORECASE,
)

OUT_OF_MEMORY = re.compile(r"Out of memory: Kill|Memory cgroup out of memory: Kill|invoked oom-killer", re.IGNORECASE)


def nic_trouble(where: str, lines: Iterable[str]) -> Caution | None:
    """Return a caution on a NIC that was reset, or stopped sending."""
    return _caution(Kind.NIC_RESET, NIC_TROUBLE, where, lines)


def out_of_memory(where: str, lines: Iterable[str]) -> Caution | None:
    """Return a caution on a process that the kernel ended because memory ran out."""
    return _caution(Kind.OUT_OF_MEMORY, OUT_OF_MEMORY, where, lines)


def _caution(kind: Kind, pattern: re.Pattern[str], where: str, lines: Iterable[str]) -> Caution | None:
    trouble = [line for line in lines if pattern.search(line)]
    if not trouble:
        return None
    more = f" (and {len(trouble) - 1} more)" if len(trouble) > 1 else ""
    return Caution(kind, f"{where}: {trouble[0]}{more}")
