"""Writes results folders without a lab: planted artifacts, run records, study.json.  For tests and benchmarks."""

from __future__ import annotations

import hashlib
import itertools
import json
import math
import random
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from twinbed.model.caution import Caution
from twinbed.model.record import Record
from twinbed.model.run import Status

Response = Callable[[str, Mapping[str, Any], int], Mapping[str, float | None]]
"""(testbed, levels, replicate) -> what the planted program answers."""


def planted_response(ratios: Mapping[str, float], spread: float, seed: int) -> Response:
    """Lognormal requests per second around 1000 times the testbed's ratio; 10 packets a request, exactly."""
    noise = random.Random(seed)

    def respond(testbed: str, levels: Mapping[str, Any], replicate: int) -> Mapping[str, float | None]:
        rate = 1000 * ratios[testbed] * math.exp(noise.gauss(0, spread))
        requests = round(rate * 10)
        return {"requests": requests, "requests_per_second": rate, "packets": requests * 10, "bytes": requests * 1200}

    return respond


def identity(*parts: Any) -> str:
    return hashlib.sha256(json.dumps(parts, sort_keys=True).encode()).hexdigest()[:12]


def write_run(
    folder: Path,
    testbed: str,
    levels: Mapping[str, Any],
    replicate: int,
    answer: Mapping[str, float | None],
    *,
    position: int = 0,
    failed: str | None = None,
    cautions: Sequence[Caution] = (),
    passport: Mapping[str, Any] | None = None,
    applied: Sequence[Mapping[str, Any]] = (),
    workload: Mapping[str, Any] | None = None,
) -> str:
    """One run folder; returns the run's id."""
    settings = {
        "levels": dict(levels),
        "testbed": {"name": testbed, "kind": "fake"},
        "topology": {"kind": "pairs", "pairs": 1},
        "workload": {"kind": "planted", "rate": 1000.0, "spread": 0.02, "seconds": 0.0, **(workload or {})},
        "instruments": {},
    }
    run = identity(settings, replicate)
    home = folder / "runs" / run
    place = home / "artifacts" / "client"
    place.mkdir(parents=True)
    text = json.dumps(answer)
    (place / "planted.json").write_text(text)
    record = Record(
        id=run,
        cell=identity(settings),
        levels=dict(levels),
        replicate=replicate,
        block=replicate,
        position=position,
        settings=settings,
        status=Status.FAILED if failed else Status.COMPLETE,
        started_s=1_700_000_000.0 + 10 * position,
        phases={"up": 0.5, "workload": 2.0, "down": 0.1},
        failed_phase="workload" if failed else None,
        reason=failed,
        cautions=tuple(cautions),
        artifacts=[{"path": "artifacts/client/planted.json", "bytes": len(text)}],
        twinbed="0.1.0",
        lab="lab-1",
    )
    (home / "run.json").write_text(json.dumps(record.to_json()))
    (home / "passport.json").write_text(json.dumps(passport if passport is not None else {"client": {"kernel": "6.1.0"}}))
    (home / "applied.json").write_text(json.dumps(list(applied)))
    return run


def write_study(
    folder: Path,
    testbeds: Sequence[str],
    factors: Mapping[str, Sequence[Any]],
    replicates: int,
    respond: Response,
    *,
    reference: str | None = None,
    margin: float = 0.10,
    **rest: Any,
) -> Path:
    """A results folder with every run of a full factorial study; ``rest`` goes to every run."""
    folder.mkdir(parents=True, exist_ok=True)
    runs = []
    cells = list(itertools.product(testbeds, *factors.values()))
    for replicate in range(replicates):
        for testbed, *levels_of in cells:
            levels = {"testbed": testbed, **dict(zip(factors, levels_of, strict=True))}
            answer = respond(testbed, levels, replicate)
            run = write_run(folder, testbed, levels, replicate, answer, position=len(runs), **rest)
            runs.append(
                {"id": run, "cell": run, "levels": levels, "replicate": replicate, "block": replicate, "position": len(runs)}
            )
    source = f"study: synthetic\ntestbeds: {{{', '.join(f'{name}: {{driver: fake}}' for name in testbeds)}}}\n"
    (folder / "study.yaml").write_text(source, encoding="utf-8", errors="surrogatepass")
    study = {
        "study": "synthetic",
        "testbeds": {name: {"driver": "fake"} for name in testbeds},
        "reference": reference or testbeds[0],
        "topology": {"kind": "pairs", "pairs": 1},
        "workload": {"kind": "planted"},
        "factors": {"testbed": list(testbeds), **{name: list(levels) for name, levels in factors.items()}},
        "instruments": {},
        "replicates": replicates,
        "order": "randomized-blocks",
        "seed": 1,
        "margin": margin,
        "confidence": 0.95,
        "source": source,
        "runs": runs,
    }
    (folder / "study.json").write_text(json.dumps(study))
    return folder
