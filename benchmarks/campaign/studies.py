"""Small studies, carried out with an eye on their phases, and what is left of their results."""

from __future__ import annotations

import contextlib
import json
import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path

from benchmarks.campaign import alone

_RUNS = """
study: campaign
testbeds: {{bed: {testbed}}}
workload: {{kind: http, duration: 5s, max_requests: 60}}
factors: {{testbed: [bed], payload: {payloads}}}
# @link
instruments: [packets, counters]
replicates: 1
seed: 5
"""
STUDIES = {
    "fake": """
study: campaign
testbeds: {one: {driver: fake, seed: 1}, two: {driver: fake, seed: 2}}
workload: {kind: planted}
instruments: []
factors: {testbed: [one, two], workload.rate: [1000, 2000]}
replicates: 2
seed: 5
""",
    "container": _RUNS.format(testbed="{driver: container}", payloads="[500B, 20kB]"),
    "qemu": _RUNS.format(testbed="{driver: qemu}", payloads="[500B]"),
    "remote": _RUNS.format(testbed="@remote", payloads="[500B, 20kB]"),
}
LINK = "topology: {link: {rate: 100mbit}}"
"""In the place of @link: links are checked."""
LIMIT_S = 240.0
_ANSWER_LIMIT_S = 5
"""Of ab: at its half a minute what happens is the same."""


def controller(study: Path, results: Path, tell: Callable[[str], None], *words: str) -> Callable[[], None]:
    """``twinbed run``, which tells of each phase as it begins."""
    command = alone.command("run", str(study), "-o", str(results), "--keep-going", *words)

    def before(phase: str, call: Callable[..., object]) -> Callable[..., object]:
        def told(*arguments: object, **named: object) -> object:
            tell(phase)
            return call(*arguments, **named)

        return told

    @contextlib.contextmanager
    def watcher(*_: object, **__: object) -> Iterator[Callable[[object], None]]:
        yield lambda event: tell(str(event.phase)) if hasattr(event, "phase") else None

    def call() -> None:
        from twinbed.cli import run_study
        from twinbed.workloads import http

        http.ANSWER_LIMIT_S = _ANSWER_LIMIT_S
        run_study._ready = before("preflight", run_study._ready)  # type: ignore[assignment]
        run_study._conclude = before("conclude", run_study._conclude)  # type: ignore[assignment]
        run_study.watcher = watcher  # type: ignore[assignment]
        command()

    return call


def carry(study: Path, results: Path, said: Path, at: tuple[str, int], then: Callable[[int], None], *words: str) -> int | None:
    """The controller's exit code, or None if it had to be ended; ``then`` is done with its process id as the phase begins for
    the n-th time (``at``)."""
    reading, writing = os.pipe()

    def tell(phase: str) -> None:
        with contextlib.suppress(OSError):
            os.write(writing, f"{phase}\n".encode())

    def call() -> None:
        os.close(reading)
        controller(study, results, tell, *words)()

    child = alone.forked(call, said)
    os.close(writing)
    begun = 0
    with os.fdopen(reading) as phases:
        for line in phases:
            begun += line == f"{at[0]}\n"
            if begun == at[1] and line == f"{at[0]}\n":
                then(child)
                break
        code = alone.ended(child, LIMIT_S)
    if code is None:
        with contextlib.suppress(ProcessLookupError):
            os.kill(child, 9)
        alone.ended(child, LIMIT_S)
    return code


def records(results: Path) -> dict[str, tuple[int, Mapping[str, object]]]:
    """Run -> when its record was written, and the record."""
    return {
        path.parent.name: (path.stat().st_mtime_ns, json.loads(path.read_text()))
        for path in (results / "runs").glob("[0-9a-f]*/run.json")
    }


def complete(results: Path) -> dict[str, int]:
    return {name: written for name, (written, record) in records(results).items() if record["status"] == "complete"}


def values(results: Path, said: Path) -> Sequence[str]:
    """Every value of every run, without those that are times; read in a child."""
    file = said.with_name("values.json")

    def call() -> None:
        from twinbed.api import Results

        rows = Results(results).metrics().to_pylist()
        found = [json.dumps({**row, "time": None}, sort_keys=True, default=str) for row in rows if row.get("unit") != "s"]
        file.write_text(json.dumps(sorted(found)))

    file.unlink(missing_ok=True)
    alone.ended(alone.forked(call, said), LIMIT_S)
    return tuple(json.loads(file.read_text())) if file.exists() else ()


def judged(study: Path, results: Path, said: Path, first: Mapping[str, int], same: Sequence[str] | None) -> dict[str, str]:
    """Goes on with a study that something has befallen; kind of failure -> text. ``first``: runs that were complete then.
    ``same``: the values of an undisturbed study, where they are the same each time."""
    words = ("run", str(study), "-o", str(results), "--retry-failed", "--keep-going", "--no-report")
    code = alone.ended(alone.forked(alone.command(*words), said), LIMIT_S)
    if code not in (0, 5):
        return {"not resumed": f"exit code {code}"}
    wrong, last = dict[str, str](), complete(results)
    planned = [run["id"] for run in json.loads((results / "study.json").read_text())["runs"]]
    if lost := set(planned) - last.keys():
        wrong["lost"] = ", ".join(sorted(lost))
    again = {name for name, written in first.items() if last.get(name) != written}
    if twice := again | (records(results).keys() - set(planned)):
        wrong["twice"] = ", ".join(sorted(twice))
    if same is not None and values(results, said) != same:
        wrong["changed"] = "values are not those of the undisturbed study"
    return wrong
