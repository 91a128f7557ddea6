"""The most that the links of a testbed can carry, above which no prediction makes sense."""

from __future__ import annotations

from collections.abc import Iterator

from twinbed.analyses.calibrate.data import Runs
from twinbed.model.record import IMPORTED, Record
from twinbed.model.tables import Tables
from twinbed.model.topology import Topology
from twinbed.statistics.physics import Accounting, Path, tcp_goodput

GOODPUT = "goodput"
ROUNDED = 1.001
"""A run may be above the limit by so much, since sources round."""


def limit(tables: Tables, testbed: str, response: str, runs: Runs) -> float | None:
    """Bit/s of goodput; None of any other response, of links without a rate, and where ``runs`` show that it is no limit."""
    metric, *where = response.split("@")
    if metric != GOODPUT:
        return None
    found = [list(_carried(each, bool(where))) for each in tables.records if each.settings["testbed"]["name"] == testbed]
    if not found or not all(found):
        return None
    most = max(each for own in found for each in own)
    return None if max(runs.values, default=0.0) > most * ROUNDED else most


def _carried(record: Record, is_of_host: bool) -> Iterator[float]:
    topology = Topology.model_validate(record.settings["topology"])
    if topology.link.rate is not None:
        # A shaper of ours counts less of each frame than a wire does.
        counted = Accounting.WIRE if record.settings["testbed"]["kind"] == IMPORTED else Accounting.SHAPER
        links = 1 if is_of_host else topology.pairs
        yield links * tcp_goodput(topology.link.rate, Path(mtu=topology.link.mtu, accounting=counted))
