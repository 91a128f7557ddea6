"""Small studies of two machines, as twinbed's own program carries them out."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

from tests.remote.machines import Machines


def study(folder: Path, two: Machines, workload: dict[str, Any], replicates: int = 1, **more: Any) -> list[str]:
    file = folder / "study.yaml"
    testbeds = {"physical": {"driver": "remote", **two.settings(**more)}}
    text = {"study": "faults", "testbeds": testbeds, "workload": {"kind": "http", **workload}, "replicates": replicates}
    file.write_text(json.dumps({**text, "instruments": ["packets", "counters"]}))
    return [sys.executable, "-m", "twinbed.cli.main", "run", str(file), "-o", str(folder / "results"), "--no-report"]


def records(folder: Path) -> list[dict[str, Any]]:
    found = [json.loads(path.read_text()) for path in (folder / "results" / "runs").glob("[0-9a-f]*/run.json")]
    return sorted(found, key=lambda record: record["position"])


def begun(folder: Path, phase: str, times: int = 1) -> Callable[[], bool]:
    """Whether so many runs have come to a phase."""

    def look() -> bool:
        log = folder / "results" / "events.jsonl"
        events = [json.loads(line) for line in log.read_text().splitlines()] if log.exists() else []
        return sum(event.get("phase") == phase for event in events) >= times

    return look
