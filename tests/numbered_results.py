"""Results of studies whose pairs vary, for tests of the analyses of N."""

from __future__ import annotations

import math
import random
import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa

from synthetic_results import write_study
from twinbed.results.store import Store

LOSS = Path(__file__).parent / "golden" / "anova" / "loss.csv"
PAIRS = (1, 2, 4, 8, 16, 24, 32, 40)
SHARES = {"slow": (1, 1.08, 1.05, 1, 0.8, 0.6, 0.45, 0.35), "fast": (1, 1, 1, 1, 1, 1, 0.98, 0.7)}
RATE = ("--response", "requests_per_second")


def planted(folder: Path) -> Path:
    """Eight replicates of two testbeds; the whole run's rate is of all pairs together."""
    noise = random.Random(11)

    def respond(testbed: str, levels: Mapping[str, Any], _replicate: int) -> Mapping[str, float | None]:
        share = dict(zip(PAIRS, SHARES[testbed], strict=True))[levels["pairs"]]
        rate = 100 * share * math.exp(noise.gauss(0, 0.01))
        requests = round(rate * levels["pairs"] * 10)
        return {
            "requests": requests,
            "requests_per_second": rate * levels["pairs"],
            # More of them a request where a pair is faster; bytes go with the work, and packets are half of the time alone.
            "packets": round((requests * 5 + 50 * PAIRS[-1]) * math.exp(noise.gauss(0, 0.001))),
            "bytes": round(requests * 12 * rate**2 * math.exp(noise.gauss(0, 0.001))),
        }

    return write_study(folder, ["slow", "fast"], {"pairs": PAIRS}, 8, respond)


def small(folder: Path, factors: Mapping[str, Any]) -> Path:
    """Six replicates of one testbed; a pair is slower by 1 % with each one more."""

    def respond(_testbed: str, levels: Mapping[str, Any], replicate: int) -> Mapping[str, float | None]:
        n = next(level for name, level in levels.items() if name != "testbed")
        rate = n * (100 - n) + 0.1 * replicate
        return {"requests": 1000, "requests_per_second": rate, "packets": 100, "bytes": 1000}

    return write_study(folder, ["bed"], factors, 6, respond)


class WithMachine:
    """The results with metrics of the machine, as the instrument that reads it would add."""

    def __init__(self, store: Store, without: Sequence[str] = ()) -> None:
        """``without``: runs that it did not measure."""
        self._store = store
        noise = random.Random(12)
        rows = []
        for record in store.records:
            if record.id in without:
                continue
            pairs = record.levels["pairs"]
            assert isinstance(pairs, int)
            load = max(0.0, pairs - 6) / 34 if record.levels["testbed"] == "slow" else max(0.0, pairs - 28) / 34
            for metric, value in (("cpu_idle", 0.9 - 0.6 * load), ("interrupts", 5e3 + 9e4 * load), ("constant", 1.0)):
                spread = 0.0 if metric == "constant" else 0.01 * value
                rows.append((record.id, metric, "machine", "", value + noise.gauss(0, spread)))
        self._machine = pa.table(
            dict(zip(("run", "metric", "host", "direction", "value"), map(list, zip(*rows, strict=True)), strict=True))
        )

    def __getattr__(self, name: str) -> Any:
        return getattr(self._store, name)

    def table(self, name: str) -> pa.Table:
        found = self._store.table(name)
        if name != "metrics":
            return found
        added = self._machine
        for field in found.schema:
            if field.name not in added.column_names:
                kind = {"unit": "1", "scale": "ratio", "layer": "host", "headline": False}.get(field.name)
                added = added.append_column(field.name, pa.array([kind] * len(added), field.type))
        return pa.concat_tables([found, added.select(found.column_names).cast(found.schema)])


def drawn(page: str) -> tuple[int, set[str]]:
    """The number of pictures, and what the marks say."""
    shown = page.split("<main>")[1].split("</main>")[0]
    assert not re.search(r"NaN|undefined|&lt;figure", shown)
    return shown.count("<figure>"), set(re.findall(r'(?:aria-label|data-said)="([^"]*)"', shown))
