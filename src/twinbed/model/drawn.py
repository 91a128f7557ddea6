"""The pairs of hosts that carried an instrument, if not all did."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction

from twinbed.model.json import Document, Json, documents, integer, text, value_of

LEAST = 2
"""One pair alone does not show how pairs differ, and so not how exact a total is."""


@dataclass(frozen=True, slots=True)
class Drawn:
    """A simple random sample of the pairs of a run, without replacement."""

    pairs: Sequence[tuple[str, str]]
    """(client, server) of each that was drawn, in the order of the topology."""
    of: int
    """The number of pairs in the run."""
    seed: int
    """The study's seed."""

    @property
    def hosts(self) -> frozenset[str]:
        return frozenset(host for pair in self.pairs for host in pair)

    def to_json(self) -> Document:
        pairs: list[Json] = [{"client": client, "server": server} for client, server in self.pairs]
        return {"pairs": pairs, "of": self.of, "seed": self.seed}

    @classmethod
    def from_json(cls, data: Document) -> Drawn:
        """Read a sample. Raises ValueError, KeyError or TypeError for other data."""
        pairs = tuple((text(pair["client"]), text(pair["server"])) for pair in documents(data["pairs"]))
        drawn = cls(pairs, value_of(data, "of", integer), value_of(data, "seed", integer))
        if not 0 < len(set(pairs)) == len(pairs) <= drawn.of:
            raise ValueError(f"{len(pairs)} pairs were drawn of {drawn.of}")
        return drawn


def size(share: float, of: int) -> int:
    """Return how many pairs a share means: rounded up, at least two if there are two."""
    return min(of, max(LEAST, math.ceil(Fraction(str(share)) * of)))
