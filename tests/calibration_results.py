"""Writes results whose rates follow a world of benchmarks/simulated/calibrated.py: many payloads on ``virtio``, some on
``physical``."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from benchmarks.simulated.calibrated import World, world

from tests.synthetic_results import write_run
from twinbed.model.caution import Caution

SOURCE = """study: calibrated
testbeds:
  virtio: {driver: fake}  # cheap
  physical: {driver: fake, only: {payload: {random: %d}}}
workload: {kind: planted}
factors:
  testbed: [virtio, physical]
  payload: {log_uniform: [500B, 16MiB], samples: %d}
"""
PASSPORTS = {name: {"client": {"kernel": kernel}} for name, kernel in (("virtio", "6.1.0"), ("physical", "6.9.0"))}


def write_calibrated(
    folder: Path,
    *,
    seed: int = 1,
    name: str = "joint laws",
    payloads: int = 16,
    expensive: int = 8,
    replicates: tuple[int, int] = (4, 3),
    threads: Sequence[int] = (1, 2, 4),
    is_drawn: bool = True,
    passports: Mapping[str, Mapping[str, Any]] = PASSPORTS,
    cautions: Mapping[str, Sequence[Caution]] = {},
) -> tuple[Path, World, Sequence[str]]:
    """The folder, its world, and the payloads in the order drawn: the first ``expensive`` are measured on both."""
    noise = np.random.default_rng(seed)
    of = world(name, noise, payloads)
    levels = [f"{round(math.exp(payload))}B" for payload in of.payloads]
    runs: list[dict[str, Any]] = []
    folder.mkdir(parents=True)
    for replicate in range(max(replicates)):
        for testbed, rate, deviation, some, most in (
            ("virtio", of.cheap, of.cheap_noise, levels, replicates[0]),
            ("physical", of.expensive, of.expensive_noise, levels[:expensive], replicates[1]),
        ):
            for payload in some if replicate < most else ():
                for count in threads:
                    place = np.array([math.log(float(payload[:-1]))]), np.array([float(count)])
                    value = math.exp(float(rate(*place)[0]) + deviation * noise.normal())
                    answer = {"requests": round(value * 10), "requests_per_second": value, "packets": None, "bytes": None}
                    at = {"testbed": testbed, "payload": payload, "threads": count}
                    run = write_run(
                        folder,
                        testbed,
                        at,
                        replicate,
                        answer,
                        position=len(runs),
                        passport=passports[testbed],
                        cautions=cautions.get(testbed, ()),
                    )
                    own = {"id": run, "cell": run, "levels": at, "replicate": replicate, "block": replicate}
                    runs.append({**own, "position": len(runs)})
    source = SOURCE % (expensive, payloads)
    study = {
        "study": "calibrated",
        "testbeds": {"virtio": [], "physical": []},
        "reference": "physical",
        "factors": {"testbed": ["virtio", "physical"], "payload": levels, "threads": list(threads)},
        "drawn": {"virtio": {"payload": levels}, "physical": {"payload": levels[:expensive]}} if is_drawn else {},
        "replicates": max(replicates),
        "seed": 1,
        "margin": 0.1,
        "confidence": 0.95,
        "source": source,
        "runs": runs,
    }
    (folder / "study.json").write_text(json.dumps(study))
    (folder / "study.yaml").write_text(source)
    return folder, of, levels
