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
"""Pieces of a long run of payload."""
MOST = 64
"""Requests that are compared with each other; from more, a sample is taken."""
PIECE = {True: "+", False: "-"}
"""The kind of a piece of a run: of the client's payload, or of the server's."""


@dataclass(frozen=True, slots=True)
class Timeline:
    """A request as it is compared."""

    kinds: str
    """A letter for each packet or piece."""
    counts: Numbers
    """The number of packets in each."""
    gaps_s: Numbers
    """Seconds since the one before, or over all gaps of a piece; 0 for the first packet."""

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
    # The time before a packet belongs to it: a piece lasts from the last packet before it to its own last packet.
    reached = np.interp(np.array(bounds) - 1, np.arange(len(kinds)), times) if len(kinds) else np.zeros(1)
    return Timeline("".join(letters), np.diff(bounds), np.diff(reached))


def _runs(kinds: str) -> list[tuple[int, int]]:
    """Return where long runs of payload begin and end: one side's, with nothing but acknowledgments between."""
    runs = list[tuple[int, int]]()
    begin = last = None
    for at, kind in enumerate(kinds):
        if begin is not None and last is not None and kind not in ("A", "a", kinds[begin]):
            runs.append((begin, last + 1))
            begin = None
        if kind in "Pp":
            begin, last = (at if begin is None else begin), at
    if begin is not None and last is not None:
        runs.append((begin, last + 1))
    return [(begin, end) for begin, end in runs if end - begin > PIECES]


def scale_s(sequences: Sequence[Timeline]) -> float:
    """Return the mean time between packets of the median request, in seconds. A change of time by that much costs 1."""
    between = [sequence.span_s / max(1.0, sequence.counts.sum() - 1) for sequence in sequences]
    return float(np.median(between)) or 1e-9


def distances(sequences: Sequence[Timeline], scale: float) -> Numbers:
    """Return the distances between all sequences, shape (n, n); 0 on the diagonal."""
    upper = np.zeros((len(sequences), len(sequences)))
    timelines = [(sequence.kinds, sequence.counts, sequence.gaps_s / scale) for sequence in sequences]
    upper[np.triu_indices(len(sequences), 1)] = _core.timeline_distances(timelines)
    return upper + upper.T


def medoid(sequences: Sequence[Timeline]) -> int:
    """Return the place of the sequence with the least sum of distances to the others, the first of several. Raises ValueError
    for no sequences."""
    if not sequences:
        raise ValueError("no request to choose from")
    return int(distances(sequences, scale_s(sequences)).sum(axis=1).argmin())


def chosen(runs: Sequence[int], seed: int, most: int = MOST) -> list[int]:
    """Return at most ``most`` places of a list, in order. ``runs``: the run of each element. All runs get equally many places,
    as far as they have elements. A run with more requests does not count for more."""
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
"""The seed of the choice among sampled requests: the same results give the same request."""


@dataclass(frozen=True, slots=True)
class Ladder:
    """The typical request of one testbed and cell."""

    cell: Mapping[str, Level]
    testbed: str
    request: Request
    of: int
    """The number of requests that it was chosen from."""
    runs: int
    """The number of runs of those requests."""
    run: str
    """The run of the chosen request."""


@dataclass(frozen=True, slots=True)
class _Candidate:
    run: str
    links: tuple[tuple[str, str], tuple[str, str]]
    """(run, link) of the client and of its server."""
    exchange: Exchange
    kinds: str
    times_s: npt.NDArray[np.float64]
    tables: tuple[pa.Table, pa.Table | None]
    """The rows of ``steps`` of sampled requests, at the client's link and at the server's."""


def ladder(
    cell: Mapping[str, Level],
    testbed: str,
    runs: Sequence[str],
    links: Mapping[str, Mapping[str, pa.Table]],
    sampled: Samples,
    seen: Seen,
) -> Ladder | None:
    """Return the ladder of the medoid; None if no sampled request has all steps and all packets. ``runs``: the runs of this
    cell and testbed, in order. ``links``: run -> link -> its rows of ``steps``."""
    candidates = [candidate for run in runs for candidate in _candidates(run, links[run], sampled, seen)]
    if not candidates:
        return None
    places = {run: at for at, run in enumerate(runs)}
    kept = [candidates[at] for at in chosen([places[candidate.run] for candidate in candidates], SEED)]
    best = kept[medoid([timeline(candidate.kinds, candidate.times_s) for candidate in kept])]
    return Ladder(cell, testbed, _request(best, sampled, seen), len(kept), len({candidate.run for candidate in kept}), best.run)


def _candidates(run: str, tables: Mapping[str, pa.Table], sampled: Samples, seen: Seen) -> Iterator[_Candidate]:
    """Yield the sampled requests of a run that have all steps, and packets at each link that is drawn."""
    for link, table in tables.items():
        if not link.startswith("client"):
            continue
        server_link = link.replace("client", "server", 1)
        places = (run, link), (run, server_link)
        ours, theirs = (sampled.bounds.get(place, {}) for place in places)
        rows = _rows_of(table, ours)
        others = _rows_of(tables[server_link], ours) if seen is not Seen.CLIENT and server_link in tables else None
        if not rows.num_rows or (others is None and seen is not Seen.CLIENT):
            continue
        whole = steps.requests(rows, others, seen).rows
        for exchange in _exchanges(rows.take(whole)):
            if exchange in ours and (seen is Seen.CLIENT or exchange in theirs):
                yield _Candidate(run, places, exchange, *sampled.timeline(places[0], exchange), (rows, others))


def _rows_of(table: pa.Table, exchanges: Mapping[Exchange, object]) -> pa.Table:
    """Return the rows with a first sequence number of these exchanges; other exchanges may share one."""
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
