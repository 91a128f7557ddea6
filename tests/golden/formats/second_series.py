"""Expected values of JSON files worked out a second time: the samples as the file has them, and the means of docs/metrics.md."""

from __future__ import annotations

import gzip
import json
import math
from collections.abc import Iterator
from pathlib import Path

Sums = dict[str, str]


def moments(name: str, cells: list[str], unit: str) -> Sums:
    """Quantiles between order statistics (type 7 of R), and the standard deviation of all, as ping's mdev."""
    ordered = sorted(cells, key=float)
    count, place = len(cells), 0.95 * (len(cells) - 1)
    low, above = int(place), place - int(place)
    mean = math.fsum(map(float, cells)) / count
    return {
        f"{name}_min": f"{ordered[0]}*{unit}",
        f"{name}_max": f"{ordered[-1]}*{unit}",
        f"{name}_mean": f"({'+'.join(ordered)})/{count}*{unit}",
        f"{name}_median": f"({ordered[(count - 1) // 2]}+{ordered[count // 2]})/2*{unit}",
        f"{name}_p95": f"({ordered[low]}+{above!r}*({ordered[min(low + 1, count - 1)]}-{ordered[low]}))*{unit}",
        f"{name}_sd": "sqrt((" + "+".join(f"({cell}-{mean!r})**2" for cell in ordered) + f")/{count})*{unit}",
    }


def flent(case: Path) -> Iterator[Sums]:
    """Pings in milliseconds; of streams the bits of all samples by their time."""
    (file,) = case.glob("input*")
    whole = file.read_bytes()
    data = json.loads(gzip.decompress(whole) if file.suffix == ".gz" else whole, parse_float=str)
    raw, meta = data.get("raw_values", {}), data["metadata"]["SERIES_META"]
    sums: Sums = {}
    pings: dict[str, list[str]] = {}
    for series, values in data["results"].items():
        if series.endswith((" avg", " sum")):
            continue
        if series.startswith("Ping"):
            cells = (
                [str(sample["val"]) for sample in raw[series]] if series in raw else [str(v) for v in values if v is not None]
            )
            pings[series] = cells
            about = meta.get(series, {})
            if "PACKETS_SENT" in about:
                sent, received = about["PACKETS_SENT"], about["PACKETS_RECEIVED"]
                sums |= {f"probes_sent@{series}": f"{sent}", f"probes_received@{series}": f"{received}"}
                sums[f"probe_loss@{series}"] = f"1-{received}/{sent}"
        elif series in raw:
            way = "client_to_server" if "upload" in series else "server_to_client"
            bits = "+".join(f"{sample['val']}*{sample['dur']}" for sample in raw[series])
            sums[f"goodput@{series}>{way}"] = f"({bits})/({'+'.join(sample['dur'] for sample in raw[series])})*1e6"
    sums |= moments("probe_rtt", [cell for cells in pings.values() for cell in cells], "1e-3")
    for series, cells in pings.items():
        sums |= {f"{name}@{series}": each for name, each in moments("probe_rtt", cells, "1e-3").items()}
    yield sums


READERS = {"flent": flent}
