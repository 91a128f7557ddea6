"""How payload was cut into segments, as a picture: a row a testbed, a disc a size, its area the share of the segments.

From the table ``segment_sizes`` of the packets instrument, over the clients' links and all replicates of a cell.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from math import log2

from twinbed.model.tables import Tables
from twinbed.render.plots import INK, MOST_CELLS, MUTED, ROW, WIDTH, Spec, panels, testbed_axis
from twinbed.show.quantities import share
from twinbed.show.words import cell_title

TABLE = "segment_sizes"
MEAN = "mean_segment_bytes"
"""The metric that these sizes have a verdict by."""
DIRECTIONS = {"originator": "client_to_server", "responder": "server_to_client"}
"""Who sent, as the table says it and as metrics do: clients open the connections."""
DECADES = (1, 10, 100, 1_000, 10_000, 100_000)
"""Marks of the axis, in bytes."""
MOST_SIZES = 20
"""Discs of a testbed in a panel; sizes are joined to bins of a quarter of an octave where there are more."""

Sizes = Mapping[str, Mapping[str, Mapping[int, int]]]
"""Cell -> testbed -> payload bytes -> segments."""


def segment_sizes(tables: Tables) -> dict[str, Sizes]:
    """Return what was captured, by direction; empty where nothing was."""
    table = tables.table(TABLE)
    if not table.num_rows:
        return {}
    records = {record.id: record for record in tables.records}
    sizes: dict[str, dict[str, dict[str, dict[int, int]]]] = {}
    for row in table.to_pylist():
        record = records.get(row["run"])
        if record is None or not row["segments"] or not row["link"].startswith("client"):
            continue
        cell = cell_title({factor: level for factor, level in record.levels.items() if factor != "testbed"})
        testbeds = sizes.setdefault(DIRECTIONS[row["direction"]], {}).setdefault(cell, {})
        counts = testbeds.setdefault(str(record.settings["testbed"]["name"]), defaultdict(int))
        counts[row["most_payload_bytes"]] += row["segments"]
    return dict(sizes)


def plot(sizes: Sizes, order: Sequence[str]) -> Spec:
    """Panels of discs over payload bytes, on a logarithmic scale that all cells share."""
    most = max(size for testbeds in sizes.values() for counts in testbeds.values() for size in counts)
    least = min(size for testbeds in sizes.values() for counts in testbeds.values() for size in counts)
    return panels([_panel(cell, testbeds, order, least, most) for cell, testbeds in list(sizes.items())[:MOST_CELLS]])


def _panel(cell: str, testbeds: Mapping[str, Mapping[int, int]], order: Sequence[str], least: int, most: int) -> Spec:
    names = [name for name in order if name in testbeds]
    rows: list[Spec] = []
    for name in names:
        total = sum(testbeds[name].values())
        for size, count in joined(testbeds[name]).items():
            part = count / total
            label = f"{name}: {share(round(part, 4))} of {total:,} segments have about {size:,} bytes of payload"
            rows.append({"testbed": name, "bytes": size, "share": part, "said": label})
    axis = {"title": "payload bytes of a segment", "format": "~s", "values": DECADES, "titleAnchor": "end", "titlePadding": 2}
    scale = {"type": "log", "domain": [max(least / 1.5, 0.7), most * 1.5], "nice": False}
    discs: Spec = {
        "data": {"values": rows},
        "mark": {"type": "circle", "opacity": 0.55, "color": INK, "stroke": MUTED, "strokeWidth": 0.5},
        "encoding": {
            "y": testbed_axis(names),
            "x": {"field": "bytes", "type": "quantitative", "scale": scale, "axis": axis},
            "size": {
                "field": "share",
                "type": "quantitative",
                "scale": {"domain": [0, 1], "range": [4, ROW * ROW * 0.8]},
                "legend": None,
            },
            "description": {"field": "said"},
        },
    }
    return {"title": cell, "width": WIDTH, "height": (ROW + 4) * len(names), "layer": [discs]}


def joined(counts: Mapping[int, int]) -> Mapping[int, int]:
    """Return the counts themselves; where there are too many sizes, bins of a quarter of an octave at their mean size."""
    if len(counts) <= MOST_SIZES:
        return counts
    bins: dict[int, list[int]] = defaultdict(lambda: [0, 0])
    for size, count in counts.items():
        bin_ = bins[round(4 * _log2(size))]
        bin_[0] += size * count
        bin_[1] += count
    return {round(total / count): count for total, count in bins.values()}


def _log2(size: int) -> float:
    return log2(max(size, 1))
