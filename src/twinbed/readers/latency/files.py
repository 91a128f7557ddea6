"""Names that the instrument and its readers share: directions, files, and the fewest probes of a window.

Nothing is imported here: the code that starts programs needs these names without the code that reads files.
"""

from __future__ import annotations

CLIENT_TO_SERVER, SERVER_TO_CLIENT = WAYS = ("client_to_server", "server_to_client")
LEAST = 20
"""Probes that a window needs: with fewer the 95th percentile is little else than the largest."""


def of_irtt(server: str) -> str:
    return f"irtt-{server}.json"


def of_owping(server: str, way: str) -> str:
    return f"owping-{server}.{way}.txt"
