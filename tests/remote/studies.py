"""Small studies of two machines, as twinbed's own program carries them out."""

from __future__ import annotations

import contextlib
import json
import subprocess
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from tests.remote.machines import Machines, until

ANSWER_LIMIT_S = 5

PROGRAM = f"""
from twinbed.cli.main import main
from twinbed.workloads import http
http.ANSWER_LIMIT_S = {ANSWER_LIMIT_S}
main()
"""
"""twinbed that waits less long for an answer that never comes."""


def study(
    folder: Path,
    two: Machines,
    workload: dict[str, Any],
    replicates: int = 1,
    instruments: Sequence[str] = ("packets", "counters"),
    rate: str | None = None,
    **more: Any,
) -> list[str]:
    """The command that carries out a study. ``rate``: that of the link; a long workload at a low rate leaves the processors to
    others. A capture of a long workload may need more disk than there is."""
    file = folder / "study.yaml"
    testbeds = {"physical": {"driver": "remote", **two.settings(**more)}}
    text = {"study": "faults", "testbeds": testbeds, "workload": {"kind": "http", **workload}, "replicates": replicates}
    link = {"topology": {"link": {"rate": rate}}} if rate else {}
    file.write_text(json.dumps({**text, **link, "instruments": list(instruments)}))
    return [sys.executable, "-c", PROGRAM, "run", str(file), "-o", str(folder / "results"), "--no-report"]


def records(folder: Path) -> list[dict[str, Any]]:
    made = [json.loads(path.read_text()) for path in (folder / "results" / "runs").glob("[0-9a-f]*/run.json")]
    return sorted(made, key=lambda record: record["position"])


@contextlib.contextmanager
def at_work(argv: list[str], folder: Path) -> Iterator[subprocess.Popen[bytes]]:
    """The program, once its first workload runs. It is killed in the end, if it has not ended by then."""
    log = folder / "output"
    with log.open("wb") as output:
        process = subprocess.Popen(argv, stdout=output, stderr=output)

    def workload_runs() -> bool:
        events = _events(folder)
        assert process.poll() is None, f"ended with {process.returncode}: {log.read_text()}\n{events}"
        return any(event.get("phase") == "workload" for event in events)

    try:
        until("the workload runs", workload_runs, 200, said=lambda: f"{log.read_text()}\n{_events(folder)}")
        yield process
    finally:
        process.kill()
        process.wait()


def _events(folder: Path) -> list[dict[str, Any]]:
    """Those of whole lines."""
    log = folder / "results" / "events.jsonl"
    text = log.read_text() if log.exists() else ""
    return [json.loads(line) for line in text[: text.rfind("\n") + 1].splitlines()]
