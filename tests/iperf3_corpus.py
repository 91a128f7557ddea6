"""A folder of iperf3's reports as people keep them: real ones, made in a network namespace, with rates varied by known factors.

``real_reports`` runs iperf3 over a namespace's own loopback.  ``write`` writes one file a measurement, each from a real report
with every rate and byte count in it multiplied by the same number, so that a file is as consistent as iperf3 left it; some are
cut short, some have lines of a log around them, some are there twice.
"""

from __future__ import annotations

import json
import math
import random
import subprocess
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

Reports = Mapping[tuple[str, int], Mapping[str, Any]]
"""(direction, streams) -> report."""
PATTERN = "{testbed}_{peer}_{direction}_parallel-{parallel:int}_{replicate:int}.txt"
RATIOS = {"host": 1.0, "nat": 0.8, "overlay": 0.5}
_SCALED = {"bytes", "bits_per_second"}
_SCRIPT = """
ip link set lo up
iperf3 -s >/dev/null 2>&1 &
for job in "$@"; do
  for try in $(seq 500); do
    iperf3 -c 127.0.0.1 -J -t 1 -i 0.1 $job > out; grep -q sum_received out && break
  done
  cat out; printf '\\0'
done
"""


@dataclass
class Corpus:
    """What was written. ``rates`` maps (testbed, direction, streams) to the received bit/s of what can be read in full."""

    rates: dict[tuple[str, str, int], list[float]] = field(default_factory=dict)
    cut: list[str] = field(default_factory=list)
    copies: list[str] = field(default_factory=list)
    files: int = 0


def real_reports(streams: Iterable[int]) -> dict[tuple[str, int], Mapping[str, Any]]:
    """One of 1 s, with ten intervals, for each direction and number of streams."""
    jobs = [(direction, count) for direction in ("send", "receive") for count in streams]
    arguments = [f"-P {count}{' -R' if direction == 'receive' else ''}" for direction, count in jobs]
    inside = ["unshare", "--net", "--pid", "--fork", "--kill-child", "sh", "-c", f'cd "$(mktemp -d)"\n{_SCRIPT}', "sh"]
    found = subprocess.run([*inside, *arguments], capture_output=True, check=True, timeout=60 + 5 * len(jobs)).stdout
    return {job: json.loads(text) for job, text in zip(jobs, found.split(b"\0"), strict=False)}


def write(
    folder: Path,
    reports: Reports,
    *,
    replicates: int,
    ratios: Mapping[str, float] = RATIOS,
    spread: float = 0.03,
    seed: int = 1,
    every: Sequence[int] = (),
) -> Corpus:
    """``every``: after so many files one is (cut short, in a log, there twice). Rates vary by ``spread`` around the ratio."""
    noise = random.Random(seed)
    cut, logged, twice = every or (0, 0, 0)
    corpus = Corpus()
    folder.mkdir(parents=True, exist_ok=True)
    for (direction, streams), report in reports.items():
        for testbed, ratio in ratios.items():
            for replicate in range(1, replicates + 1):
                factor = ratio * math.exp(noise.gauss(0, spread))
                varied = _varied(report, factor)
                varied["start"]["timestamp"]["timesecs"] += corpus.files * 10
                text = json.dumps(varied, indent="\t")
                name = f"{testbed}_srv_{direction}_parallel-{streams}_{replicate}.txt"
                corpus.files += 1
                if cut and corpus.files % cut == 0:
                    text = text[: len(text) // 40]
                    corpus.cut.append(name)
                else:
                    rate = varied["end"]["sum_received"]["bits_per_second"]
                    corpus.rates.setdefault((testbed, direction, streams), []).append(rate)
                if logged and corpus.files % logged == 1:
                    text = f"[12:00:00] starting {name}\n{text}\n[12:00:11] done\n"
                (folder / name).write_text(text)
                if twice and corpus.files % twice == 2:
                    (folder / "backup").mkdir(exist_ok=True)
                    (folder / "backup" / name).write_text(text)
                    corpus.copies.append(name)
    return corpus


def _varied(data: Any, factor: float) -> Any:
    if isinstance(data, dict):
        return {key: _scaled(key, value, factor) for key, value in data.items()}
    return [_varied(each, factor) for each in data] if isinstance(data, list) else data


def _scaled(key: str, value: Any, factor: float) -> Any:
    if key in _SCALED and isinstance(value, int | float):
        return int(value * factor) if isinstance(value, int) else value * factor
    return _varied(value, factor)
