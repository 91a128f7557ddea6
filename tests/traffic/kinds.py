"""All kinds of traffic: importing this fills the catalogue."""

from tests.traffic import ends, headers, losses, windows
from tests.traffic.catalogue import KINDS, Kind

__all__ = ["KINDS", "Kind", "ends", "headers", "losses", "windows"]
