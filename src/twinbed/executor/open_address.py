"""Checks of schedulers' addresses: only this machine's own need no TLS, unless the user allows others."""

from __future__ import annotations

import ipaddress
import socket
from urllib.parse import urlsplit

from twinbed.executor.protocol import NoExecutor


def refuse_open(address: str, on: str, insecure: bool) -> None:
    """Raise NoExecutor for an address without TLS that leads to another machine, unless ``insecure``."""
    if insecure or address.startswith("tls://") or _is_loopback(host := urlsplit(address).hostname or ""):
        return
    raise NoExecutor(
        f"--on {on}: no TLS to {host or address}. Whoever reaches that scheduler, or answers in its place, can send "
        "results of their own and run programs on its workers",
        advice="use tls:// (docs/scale.md, TLS), or add --insecure if the network is yours alone",
    )


def _is_loopback(host: str) -> bool:
    """Return whether a name leads to this machine: all its addresses must."""
    try:
        found = socket.getaddrinfo(host, None, type=socket.SOCK_STREAM)
    except (OSError, UnicodeError):
        return False
    return bool(found) and all(ipaddress.ip_address(str(each[4][0]).partition("%")[0]).is_loopback for each in found)
