"""The request that stands for those of one testbed and cell: the medoid of the sample that the captures have of them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from twinbed.analyses.anatomy import medoid, steps
from twinbed.analyses.anatomy.sampled import Exchange, Request, Samples, joined
from twinbed.analyses.anatomy.steps import NAMES, Seen
from twinbed.model.run import Level

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt
    import pyarrow as pa

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
    kept = [candidates[at] for at in medoid.chosen([places[each.run] for each in candidates], SEED)]
    best = kept[medoid.medoid([medoid.timeline(each.kinds, each.times_s) for each in kept])]
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
