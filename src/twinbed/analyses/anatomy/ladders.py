"""The request that stands for those of one testbed and cell: the medoid of the sample that the captures have of them.

The medoid is the request whose packets and times are least unlike those of the others.  A request is a sequence of packets,
each with a kind (its letter, which also says its side) and the time since the packet before it.  The distance of two requests
is the least cost of turning one into the other.  Removing or adding a packet costs 1; changing the time before a packet by t
costs t / scale.  This is D_interval of J. D. Victor and K. P. Purpura, "Metric-space analysis of spike trains: theory,
algorithms and application", Network: Computation in Neural Systems 8 (1997) 127-164, with 1 / q = ``scale``.  Kinds cannot be
changed into each other (the labels of D. Aronov, J. Neurosci. Methods 124 (2003) 175-179, at k = 2).  It is a metric.  It
counts a delay once; D_spike of the same paper would count it again for each later packet.  The scale is the mean time between
packets of the median request.

Long requests are compared by pieces: a run of more than ``PIECES`` packets of payload, with the acknowledgments in between, is
cut into as many pieces of equal numbers.  A piece of n packets costs n to remove or to add.  Two pieces of n and m packets
differ by |n - m|, and by the times that they take.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, TypeAlias

import numpy as np
import numpy.typing as npt

from twinbed import _core
from twinbed.analyses.anatomy import steps
from twinbed.analyses.anatomy.sampled import Exchange, Request, Samples, joined
from twinbed.analyses.anatomy.steps import NAMES, Seen
from twinbed.model.run import Level

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt
    import pyarrow as pa

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


SEED = 1
"""Of the sample of the sample: the same results give the same request."""


@dataclass(frozen=True, slots=True)
class Ladder:
    """One testbed and cell."""

    cell: Mapping[str, Level]
    testbed: str
    request: Request
    of: int
    """Requests that it was chosen from."""
    runs: int
    """Runs that those are of."""
    run: str
    """The one that it is of."""


@dataclass(frozen=True, slots=True)
class _Candidate:
    run: str
    links: tuple[tuple[str, str], tuple[str, str]]
    """(run, link) of the client and of its server."""
    exchange: Exchange
    kinds: str
    times_s: npt.NDArray[np.float64]
    tables: tuple[pa.Table, pa.Table | None]
    """The rows of ``steps`` of the client's link and of the server's that are of sampled requests."""


def ladder(
    cell: Mapping[str, Level],
    testbed: str,
    runs: Sequence[str],
    links: Mapping[str, Mapping[str, pa.Table]],
    sampled: Samples,
    seen: Seen,
) -> Ladder | None:
    """Return the ladder of the medoid. ``runs``: those of this cell and testbed, in order; ``links``: run -> link -> its rows
    of ``steps``. None where no sampled request has all steps and all packets."""
    candidates = [each for run in runs for each in _candidates(run, links[run], sampled, seen)]
    if not candidates:
        return None
    places = {run: at for at, run in enumerate(runs)}
    kept = [candidates[at] for at in chosen([places[each.run] for each in candidates], SEED)]
    best = kept[medoid([timeline(each.kinds, each.times_s) for each in kept])]
    return Ladder(cell, testbed, _request(best, sampled, seen), len(kept), len({each.run for each in kept}), best.run)


def _candidates(run: str, tables: Mapping[str, pa.Table], sampled: Samples, seen: Seen) -> Iterator[_Candidate]:
    """The sampled requests of a run that have all steps, with packets at each link that they are drawn of."""
    for link, table in tables.items():
        if not link.startswith("client"):
            continue
        there = link.replace("client", "server", 1)
        places = (run, link), (run, there)
        ours, theirs = (sampled.bounds.get(place, {}) for place in places)
        rows = _rows_of(table, ours)
        others = _rows_of(tables[there], ours) if seen is not Seen.CLIENT and there in tables else None
        if not rows.num_rows or (others is None and seen is not Seen.CLIENT):
            continue
        whole = steps.requests(rows, others, seen).rows
        for exchange in _exchanges(rows.take(whole)):
            if exchange in ours and (seen is Seen.CLIENT or exchange in theirs):
                yield _Candidate(run, places, exchange, *sampled.timeline(places[0], exchange), (rows, others))


def _rows_of(table: pa.Table, exchanges: Mapping[Exchange, object]) -> pa.Table:
    """Those with a first sequence number of these, which others may have too."""
    import pyarrow as pa
    import pyarrow.compute as pc

    numbers = pa.array(sorted({exchange[-1] for exchange in exchanges}), table["request_sequence"].type)
    return table.filter(pc.is_in(table["request_sequence"], numbers))


def _exchanges(table: pa.Table) -> list[Exchange]:
    return list(zip(*(table[name].to_pylist() for name in NAMES), strict=True))


def _request(best: _Candidate, sampled: Samples, seen: Seen) -> Request:
    of_client, of_server = (None if table is None else _row(table, best.exchange) for table in best.tables)
    assert of_client is not None, "candidates have a row at the client's link"
    server = [] if seen is Seen.CLIENT else sampled.rows(best.links[1], best.exchange)
    return joined(seen, sampled.rows(best.links[0], best.exchange), server, of_client, of_server)


def _row(table: pa.Table, exchange: Exchange) -> Mapping[str, object]:
    row: Mapping[str, object] = table.slice(_exchanges(table).index(exchange), 1).to_pylist()[0]
    return row
