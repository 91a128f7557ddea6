"""Results of a study with uncertain inputs, without a lab: planted values that testbeds share through their draws, and planted
run times.  For tests and the manual's examples."""

from __future__ import annotations

import json
import math
import random
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from tests.synthetic_results import write_run
from twinbed import design, registry
from twinbed.study.loading import load
from twinbed.study.study import Study

STUDY = """
study: mix
seed: 6
testbeds: {physical: {driver: fake}, virtio: {driver: fake}}
reference: physical
workload: {kind: planted}
uncertain:
  samples: 30
  workload.rate: {log_uniform: [300, 3000]}
"""
TRUE_MEAN = 2700 / math.log(10)
"""Of the rate, which is what the physical testbed answers but for its noise."""
SECONDS = {"physical": 60.0, "virtio": 3.0}


def read(text: str = STUDY) -> Study:
    return load(text, "mix.yaml", registry.catalogue())


def write(
    folder: Path,
    text: str = STUDY,
    *,
    noise: float = 0.05,
    power: float = 1.0,
    seconds: Mapping[str, float] = SECONDS,
) -> Path:
    """Every run of a study; the virtual testbed answers with a power of the rate. The results folder."""
    study = read(text)
    folder.mkdir(parents=True, exist_ok=True)
    random_noise = random.Random(11)
    runs: list[Mapping[str, Any]] = []
    for run in design.runs(study):
        rate = float(str(run.levels["workload.rate"]))
        factor = math.exp(random_noise.gauss(0, noise) - noise**2 / 2)
        value = rate * factor if run.testbed_name == "physical" else 2 * rate**power * factor
        answer = {"requests": round(value * 10), "requests_per_second": value, "packets": None, "bytes": None}
        made = write_run(folder, run.testbed_name, run.levels, run.replicate, answer, position=run.position)
        path = folder / "runs" / made / "run.json"
        record = json.loads(path.read_text())
        record["phases"] = {"workload": seconds[run.testbed_name]}
        path.write_text(json.dumps(record))
        runs.append(
            {
                "id": made,
                "cell": record["cell"],
                "levels": dict(run.levels),
                "replicate": run.replicate,
                "block": run.block,
                "position": run.position,
            }
        )
    (folder / "study.yaml").write_text(text)
    (folder / "study.json").write_text(json.dumps({**study.to_json(), "runs": runs}))
    return folder
