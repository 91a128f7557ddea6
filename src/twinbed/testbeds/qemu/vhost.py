"""Whether this machine's kernel can move a virtio NIC's packets itself: tried by opening its device."""

from __future__ import annotations

import os
from pathlib import Path

DEVICE = Path("/dev/vhost-net")


def vhost() -> tuple[bool, str]:
    """Whether it can, and what was found."""
    try:
        os.close(os.open(DEVICE, os.O_RDWR | os.O_CLOEXEC))
    except OSError as error:
        return False, f"{DEVICE}: {error.strerror}"
    return True, f"{DEVICE} can be opened"
