"""What the instrument and its readers both know of probes: their two ways, the names of their files, the fewest of a window.

Nothing is imported here: what starts programs needs these names, and none of what reads the files.
"""

from __future__ import annotations

CLIENT_TO_SERVER, SERVER_TO_CLIENT = WAYS = ("client_to_server", "server_to_client")
LEAST = 20
"""Probes that a window needs: of fewer the 95th percentile is little else than the largest."""


def of_irtt(server: str) -> str:
    return f"irtt-{server}.json"


def of_owping(server: str, way: str) -> str:
    return f"owping-{server}.{way}.txt"
