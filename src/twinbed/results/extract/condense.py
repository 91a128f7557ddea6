"""Tables of very many requests become histograms and a series, which are small whatever the number.

They answer the questions of ``analyse tails`` and ``analyse steady``. Single requests (their packets, statuses, addresses) are
only in the artifacts.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from twinbed.readers import latencies
from twinbed.results.extract.pace import CLIENT, answered

if TYPE_CHECKING:
    import pyarrow as pa

ANSWERS = "answers"


def condensed(tables: Sequence[tuple[str, pa.Table]], most: int = latencies.MOST_ROWS) -> list[tuple[str, pa.Table]]:
    """Condense tables of more than ``most`` rows. Table ``exchanges`` becomes ``latencies`` and ``answers``; ``requests``
    becomes ``latencies``, as in files made elsewhere."""
    kept: list[tuple[str, pa.Table]] = []
    for name, table in tables:
        if name == "exchanges" and table.num_rows > most:
            kept += [(latencies.NAME, part) for part in _histograms(table)]
            kept += [(ANSWERS, part) for part in _series(table)]
        elif name == "requests" and table.num_rows > most:
            kept += [(latencies.NAME, part) for part in _of_requests(table)]
        else:
            kept.append((name, table))
    return kept


def _of_requests(table: pa.Table) -> Iterator[pa.Table]:
    import numpy as np
    import pyarrow.compute as pc

    from twinbed.statistics.histogram import Histogram

    for host in table["host"].unique().to_pylist():
        own = table.filter(pc.equal(table["host"], host))["total_s"]
        known = own.drop_null()
        yield latencies.rows("requests", host, Histogram.of(np.asarray(known)), len(own) - len(known))


def _histograms(table: pa.Table) -> Iterator[pa.Table]:
    import numpy as np
    import pyarrow.compute as pc

    from twinbed.statistics.histogram import Histogram

    of_clients = table.filter(pc.starts_with(table["link"], CLIENT))
    whole = pc.and_(pc.fill_null(of_clients["complete"], False), pc.is_valid(of_clients["duration_s"]))
    for link in of_clients["link"].unique().to_pylist():
        own = pc.equal(of_clients["link"], link)
        times = of_clients.filter(pc.and_(own, whole))["duration_s"]
        unanswered = pc.sum(own).as_py() - len(times)
        yield latencies.rows("exchanges", link, Histogram.of(np.asarray(times)), unanswered)


def _series(table: pa.Table) -> Iterator[pa.Table]:
    """Yield answers in equal parts of the run: start_s from the first request, seconds, answers."""
    import pyarrow as pa

    from twinbed.statistics.steady import rates_of_answers

    own = answered(table)
    rates = rates_of_answers(own["start_ns"].to_numpy(), own["duration_s"].to_numpy())
    if rates is not None:
        seconds = rates.seconds / len(rates.rates)
        starts = [at * seconds for at in range(len(rates.rates))]
        answers = [round(rate * seconds) for rate in rates.rates]
        yield pa.table({"start_s": starts, "seconds": [seconds] * len(starts), "answers": pa.array(answers, pa.int64())})
