"""The blocks after which a study that runs until it is decided has an interim analysis."""

from __future__ import annotations

from twinbed.model.interim import UntilDecided

MOST_INTERIM = 6
"""More interim analyses cost replicates, since each takes its share of alpha, and hardly end a study sooner."""


def interim_blocks(until: UntilDecided) -> tuple[int, ...]:
    """Return the numbers of complete blocks at which there is an interim analysis: from least to most, evenly spread."""
    count = min(MOST_INTERIM, until.most - until.least + 1)
    return tuple(until.least + round(step * (until.most - until.least) / (count - 1)) for step in range(count))
