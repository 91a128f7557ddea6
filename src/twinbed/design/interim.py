"""When a study that goes on until it is decided is looked at: after which blocks."""

from __future__ import annotations

from twinbed.model.interim import UntilDecided

MOST_LOOKS = 6
"""More cost replicates, since each has its share of alpha, and end a study hardly sooner."""


def look_blocks(until: UntilDecided) -> tuple[int, ...]:
    """Numbers of complete blocks at which there is a look: from least to most, evenly spread."""
    count = min(MOST_LOOKS, until.most - until.least + 1)
    return tuple(until.least + round(step * (until.most - until.least) / (count - 1)) for step in range(count))
