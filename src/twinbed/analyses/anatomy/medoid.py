"""The medoid of requests: the one whose packets and times are least unlike those of the others.

A request is a sequence of packets, each of a kind (its letter, which tells its side too) and with the time since the packet
before it.  The distance of two is the least cost of turning one into the other by steps of three sorts: a packet is removed,
or added, for 1; the time before a packet is changed by t, for t / scale.  That is D_interval of J. D. Victor and K. P.
Purpura, "Metric-space analysis of spike trains: theory, algorithms and application", Network: Computation in Neural Systems 8
(1997) 127-164, with 1 / q = ``scale``, of packets whose kinds cannot be changed into each other (the labels of D. Aronov, J.
Neurosci. Methods 124 (2003) 175-179, at k = 2).  It is a metric.  It counts a delay once, where D_spike of the same paper
would count it again for each packet that comes after.  The scale is the mean time between packets of the median request.

Long requests are compared by pieces: a run of payload (with the acknowledgments in between) of more than ``PIECES`` packets
is cut into as many pieces of equal numbers.  A piece of n packets costs n to remove or to add, and two pieces of n and m
packets differ by |n - m|, and by the times that they take.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TypeAlias

import numpy as np
import numpy.typing as npt

from twinbed import _core

Numbers: TypeAlias = npt.NDArray[np.float64]
PIECES = 64
"""Of a run of payload."""
MOST = 64
"""Requests that are compared with each other; of more a sample is taken."""
PIECE = {True: "+", False: "-"}
"""The kind of a piece of a run: of the client's payload, or of the server's."""


@dataclass(frozen=True, slots=True)
class Timeline:
    """A request as it is compared."""

    kinds: str
    """A letter a packet or piece."""
    counts: Numbers
    """Packets of each."""
    gaps_s: Numbers
    """Seconds since the one before, or over all gaps of a piece; 0 of the first packet."""

    @property
    def span_s(self) -> float:
        return float(self.gaps_s.sum())


def timeline(kinds: str, times_s: Numbers) -> Timeline:
    """Return a request as it is compared. ``kinds``: a letter a packet, in order; ``times_s``: when each was seen, as many."""
    times = times_s - times_s[:1]
    letters, bounds = list[str](), [0.0]
    at = 0
    for begin, end in [*_runs(kinds), (len(kinds), len(kinds))]:
        letters += kinds[at:begin]
        bounds += np.arange(at + 1, begin + 1, dtype=float).tolist()
        if begin < end:
            letters += PIECE[kinds[begin].isupper()] * PIECES
            bounds += np.linspace(begin, end, PIECES + 1)[1:].tolist()
        at = end
    # The time before a packet belongs to it: that of a piece is from the last packet before it to its own last.
    reached = np.interp(np.array(bounds) - 1, np.arange(len(kinds)), times) if len(kinds) else np.zeros(1)
    return Timeline("".join(letters), np.diff(bounds), np.diff(reached))


def _runs(kinds: str) -> list[tuple[int, int]]:
    """Where long runs of payload begin and end: one side's, with nothing but acknowledgments between."""
    found = list[tuple[int, int]]()
    begin = last = None
    for at, kind in enumerate(kinds):
        if begin is not None and last is not None and kind not in ("A", "a", kinds[begin]):
            found.append((begin, last + 1))
            begin = None
        if kind in "Pp":
            begin, last = (at if begin is None else begin), at
    if begin is not None and last is not None:
        found.append((begin, last + 1))
    return [(begin, end) for begin, end in found if end - begin > PIECES]


def scale_s(sequences: Sequence[Timeline]) -> float:
    """Return the mean time between packets of the median request, in seconds: what a change of time by as much as that costs is
    1."""
    between = [each.span_s / max(1.0, each.counts.sum() - 1) for each in sequences]
    return float(np.median(between)) or 1e-9


def distances(sequences: Sequence[Timeline], scale: float) -> Numbers:
    """Return the distance of each to each, shape (n, n); 0 on the diagonal."""
    found = np.zeros((len(sequences), len(sequences)))
    one, two = np.triu_indices(len(sequences), 1)
    found[one, two] = _core.timeline_distances([(each.kinds, each.counts, each.gaps_s / scale) for each in sequences])
    return found + found.T


def medoid(sequences: Sequence[Timeline]) -> int:
    """Return which one has the least sum of distances to the others; the first of several. Raises ValueError where there is
    none."""
    if not sequences:
        raise ValueError("no request to choose from")
    return int(distances(sequences, scale_s(sequences)).sum(axis=1).argmin())


def chosen(runs: Sequence[int], seed: int, most: int = MOST) -> list[int]:
    """Return at most so many places of a list whose elements are of the ``runs`` given: as many of each run as of the others,
    where it has them, so that a run that made more requests does not count for more. In the order of the list."""
    if len(runs) <= most:
        return list(range(len(runs)))
    random = np.random.default_rng(seed)
    rank = np.zeros(len(runs))
    of = np.asarray(runs)
    for run in np.unique(of):
        places = np.flatnonzero(of == run)
        rank[random.permutation(places)] = np.arange(len(places))
    # The first of each run before the second of any; within one rank by chance.
    order = np.lexsort((random.random(len(runs)), rank))
    return sorted(order[:most].tolist())
