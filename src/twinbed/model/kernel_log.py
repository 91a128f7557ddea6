"""What a kernel's log says that makes a run doubtful."""

from __future__ import annotations

import re
from collections.abc import Iterable

from twinbed.model.caution import Caution, Kind

NIC_TROUBLE = re.compile(
    r"NETDEV WATCHDOG|transmit queue .* timed out|Detected Tx Unit Hang|Reset adapter|NIC Link is Down", re.IGNORECASE
)


def nic_trouble(where: str, lines: Iterable[str]) -> Caution | None:
    """A NIC that was reset, or stopped sending."""
    trouble = [line for line in lines if NIC_TROUBLE.search(line)]
    if not trouble:
        return None
    more = f" (and {len(trouble) - 1} more)" if len(trouble) > 1 else ""
    return Caution(Kind.NIC_RESET, f"{where}: {trouble[0]}{more}")
