"""How many studies the tests of statistics simulate, and from which seed on.

The tests draw few, always from the same seeds: what fails was changed. ``make soak`` sets TWINBED_SOAK_SEED; then they draw
many from that seed on, and tolerate so much that a correct program fails such a round less often than once in 10,000.
"""

from __future__ import annotations

import os

SOAKING = "TWINBED_SOAK_SEED" in os.environ
SEED = int(os.environ.get("TWINBED_SOAK_SEED", "0"))
SIGMAS = 5.5 if SOAKING else 3.0
"""Standard errors that a share may be off. Of fixed seeds three are enough; one share of many draws is off by 5.5 of its own
once in 50 million rounds."""


def studies(few: int, many: int) -> int:
    return many if SOAKING else few


def room(share: float, count: int) -> float:
    """Return how far the share of ``count`` draws may be from the true one."""
    return SIGMAS * (share * (1 - share) / count) ** 0.5
