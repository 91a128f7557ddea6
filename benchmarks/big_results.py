"""Large published results with planted values, made by the writers that runs go through: records by ``catalogue.table_of``, the
rows of tables by ``extract.parts.part_of``, as extraction writes them of planted answers. No artifacts, no run folders.

``python -m benchmarks.big_results RUNS FOLDER`` makes them by itself.
"""

from __future__ import annotations

import itertools
import math
import random
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path

import pyarrow as pa

from twinbed.metrics.derived import declared
from twinbed.metrics.metric import Value
from twinbed.model.record import Record, Settings
from twinbed.model.run import Level, Status
from twinbed.model.tables import Planned
from twinbed.results.bucket.address import Address, address_of
from twinbed.results.bucket.objects import Objects
from twinbed.results.bucket.snapshot import Batch, Snapshot
from twinbed.results.catalogue import Entry, planned_table, table_of
from twinbed.results.extract.derived import derive
from twinbed.results.extract.parts import part_of
from twinbed.results.extract.rows import RunRows
from twinbed.workloads.planted import planted

RATIOS = {"physical": 1.0, "container": 1.0, "virtio": 1.05, "e1000": 1.2}
"""What was planted: the rate on each testbed, times that on the first."""
SPREAD = 0.02
CELLS = 25
OUTLIER, OUTLIERS_EVERY = 4.0, 15
"""Where values are to be far from normal, one replicate of so many has so many times the rate."""
AT_ONCE = 50_000
STARTED_S, SECONDS_A_RUN = 1_700_000_000.0, 3.0


def publish(runs: int, folder: Path, cells: int = CELLS, *, skewed: bool = False) -> Address:
    """Results of so many runs, rounded down to whole replicates of 4 testbeds and so many cells; their address. ``skewed``:
    values are far from normal."""
    address = address_of(f"file://{folder.absolute()}")
    assert address
    objects = Objects(address)
    batches, planned = [], []
    remaining = iter(_records(runs // (cells * len(RATIOS)), cells))
    noise = random.Random(1)
    while records := list(itertools.islice(remaining, AT_ONCE)):
        catalogue = table_of([Entry(record, f"{record.position:032x}", "key") for record in records])
        part = part_of([_rows(record, noise, skewed) for record in records])
        tables = {name: [objects.put(content)] for name, content in part.files.items()}
        batches.append(Batch(len(records), objects.put(_parquet(catalogue)), tables))
        planned += [Planned(each.id, each.cell, each.levels, each.replicate, each.block, each.position) for each in records]
    files = {"study.json": objects.put(_study(cells))}
    snapshot = Snapshot(1, "0", files, objects.put(_parquet(planned_table(planned))), batches)
    assert snapshot.put(objects)
    return address


def _study(cells: int) -> bytes:
    return (
        b'{"study": "big", "reference": "physical", "margin": 0.1, "confidence": 0.95, "seed": 1,'
        b' "testbeds": {"physical": {}, "container": {}, "virtio": {}, "e1000": {}},'
        b' "factors": {"testbed": ["physical", "container", "virtio", "e1000"], "payload": ['
        + b", ".join(b'"%dB"' % size for size in range(cells))
        + b"]}}"
    )


def _records(replicates: int, cells: int) -> Iterator[Record]:
    order = random.Random(2)
    places = list(itertools.product(RATIOS, range(cells)))
    position = 0
    for replicate in range(replicates):
        order.shuffle(places)
        for testbed, size in places:
            yield _record(testbed, f"{size}B", replicate, position)
            position += 1


def _record(testbed: str, payload: str, replicate: int, position: int) -> Record:
    levels: Mapping[str, Level] = {"testbed": testbed, "payload": payload}
    settings: Settings = {
        "levels": levels,
        "testbed": {"name": testbed, "kind": "fake"},
        "topology": {"kind": "pairs", "pairs": 1},
        "workload": {"kind": "planted", "rate": 1000.0, "spread": SPREAD, "seconds": 0.0},
        "instruments": {},
    }
    return Record(
        id=f"{position:012x}",
        cell=f"{testbed}-{payload}",
        levels=levels,
        replicate=replicate,
        block=replicate,
        position=position,
        settings=settings,
        status=Status.COMPLETE,
        started_s=STARTED_S + SECONDS_A_RUN * position,
        phases={"up": 0.5, "workload": 2.0, "down": 0.1},
        failed_phase=None,
        reason=None,
        cautions=(),
        artifacts=[{"path": "artifacts/client/planted.json", "bytes": 100}],
        twinbed="0.1.0",
        lab="lab-1",
    )


def _rows(record: Record, noise: random.Random, skewed: bool) -> RunRows:
    """As extraction has them: what the client answered, and what follows from it."""
    metrics = {metric.name: metric for metric in planted.metrics}
    rate = 1000 * RATIOS[str(record.levels["testbed"])] * math.exp(noise.gauss(0, SPREAD))
    if skewed and record.replicate % OUTLIERS_EVERY == 0:
        rate *= OUTLIER
    requests = round(rate * 10)
    answer = {"requests": requests, "requests_per_second": rate, "packets": requests * 10, "bytes": requests * 1200}
    values = [Value(name, float(answer[name]), metric.unit) for name, metric in metrics.items() if name in answer]
    known = declared(planted.metrics, planted.work)
    rows = RunRows(record, "key")
    rows.values = [(value, known[value.metric]) for value in (*values, *derive(values, metrics, planted.work, requests))]
    rows.facts = [("client", "kernel", "6.1.0")]
    return rows


def _parquet(table: pa.Table) -> memoryview:
    sink = pa.BufferOutputStream()
    pa.parquet.write_table(table, sink, compression="zstd")
    return memoryview(sink.getvalue()).cast("B")


if __name__ == "__main__":
    sys.stdout.write(f"{publish(int(sys.argv[1]), Path(sys.argv[2]))}\n")
