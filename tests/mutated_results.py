"""Results folders whose files are changed one at a time, and every command that reads results."""

from __future__ import annotations

import contextlib
import io
import json
import os
import random
import shutil
import traceback
import zipfile
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from listed_parts import list_again
from mutations import change_json, change_parquet
from twinbed.cli.main import run

ROOT = Path(__file__).parents[1]
SOURCES = ("quickstart", "icnc-2019", "nic-survey", "oversubscription", "syscalls")
"""Archives with real rows of many tables, the first of which gives the runs."""
ROWS = 25
"""Rows of a table and run that are kept."""
STUDY = """study: planted
testbeds:
  near: {driver: fake, seed: 1}
  far: {driver: fake, ratio: 0.7, seed: 2}
reference: near
workload: {kind: planted, rate: 1000, features: 3}
factors:
  testbed: [near, far]
  pairs: [1, 2, 4]
replicates: 4
"""
COMMANDS: Mapping[str, Sequence[str]] = {
    "compare": ("compare", "R"),
    "compare json": ("compare", "R", "--all", "--format", "json"),
    "compare with": ("compare", "R", "BASE"),
    "report": ("report", "R", "--markdown", "-o", "OUT.md"),
    "report csv": ("report", "R", "--csv", "-o", "OUT.csv"),
    "anova": ("analyse", "anova", "R"),
    "regression": ("analyse", "regression", "R", "--formula", "log(requests_per_second) ~ testbed"),
    "capacity": ("analyse", "capacity", "R", "--response", "requests_per_second", "--at-least", "10"),
    "contention": ("analyse", "contention", "R"),
    "tails": ("analyse", "tails", "R"),
    "steady": ("analyse", "steady", "R"),
    "stalls": ("analyse", "stalls", "R"),
    "sockets": ("analyse", "sockets", "R"),
    "monitor": ("analyse", "monitor", "R"),
    "detectability": ("analyse", "detectability", "R"),
    "multifidelity": ("analyse", "multifidelity", "R"),
    "anomaly": ("analyse", "anomaly", "R"),
    "anatomy": ("anatomy", "R"),
    "anatomy ladder": ("anatomy", "R", "--ladder"),
    "explain": ("explain", "R"),
    "passport": ("passport", "R"),
    "chain": ("chain", "R"),
    "export tables": ("export", "R", "-o", "OUT", "--tables", "csv"),
    "export metrics": ("export", "R", "-o", "OUT", "--metrics"),
    "export flent": ("export", "R", "-o", "OUT", "--flent"),
    "export chains": ("export", "R", "-o", "OUT", "--chains"),
    "export latex": ("export", "R", "-o", "OUT", "--latex"),
    "archive": ("archive", "R", "-o", "OUT.zip"),
    "archive tables": ("archive", "R", "--no-raw", "-o", "OUT.zip"),
    "merge": ("merge", "R", "BASE", "-o", "OUT"),
    "prune": ("prune", "R", "--keep", "tables", "--dry-run"),
    "advise": ("advise", "R"),
    "calibrate": ("calibrate", "R"),
    "plan": ("plan", "STUDY", "-o", "R", "--pilot", "R"),
    "run": ("run", "STUDY", "-o", "R", "--no-report"),
    "publish": ("publish", "R", "file://OUT"),
    "published": ("published", "compare", "R"),
}


@dataclass
class Tally:
    """What calls came to."""

    calls: int = 0
    codes: Counter[int] = field(default_factory=Counter)
    tracebacks: dict[str, list[str]] = field(default_factory=dict)
    """Place in the code -> what led there."""


def frozen(folder: Path) -> Path:
    """A small folder without artifacts, with real rows of all the tables that the sources have."""
    archives = [ROOT / "tests" / "golden" / "results" / "quickstart.zip"]
    archives += [ROOT / "docs" / "measured" / f"{name}.zip" for name in SOURCES[1:]]
    with zipfile.ZipFile(archives[0]) as archive:
        archive.extractall(folder)
    (folder / "report.html").unlink()
    study = json.loads((folder / "study.json").read_text())
    runs = [each["id"] for each in study["runs"]]
    for file in folder.glob("runs/*/run.json"):
        record = json.loads(file.read_text())
        record["settings"]["instruments"] |= {name: {"kind": name} for name in _INSTRUMENTS}
        file.write_text(json.dumps(record))
    for archive_file in archives:
        with zipfile.ZipFile(archive_file) as archive:
            _take(archive, folder, runs)
    for file in (folder / "tables").glob("*/*"):
        if file.name != _PART:
            file.unlink()
    list_again(folder / "tables", _PART)
    return folder


_METRICS = (
    "requests_per_second",
    "requests",
    "transfer_rate",
    "link_goodput",
    "packets",
    "packets_per_request",
    "cpu_seconds_per_request",
    "failed_requests",
)
_INSTRUMENTS = ("fingerprint", "sockets", "syscalls", "counters", "events")
_PART = "part-0123456789abcdef.parquet"


def _take(archive: zipfile.ZipFile, folder: Path, runs: Sequence[str]) -> None:
    names = sorted({name.split("/")[1] for name in archive.namelist() if name.startswith("tables/")})
    theirs: list[str] = []
    tables = {}
    for name in names:
        parts = [each for each in archive.namelist() if each.startswith(f"tables/{name}/")]
        read = [pq.read_table(pa.BufferReader(archive.read(each))) for each in parts]
        tables[name] = pa.concat_tables(read, promote_options="permissive")
    theirs = sorted(set(tables["runs"]["run"].to_pylist()))[: len(runs)]
    if set(runs) <= set(tables["runs"]["run"].to_pylist()):
        theirs = list(runs)
    of = dict(zip(theirs, runs, strict=False))
    for name, table in tables.items():
        file = folder / "tables" / name / _PART
        if file.exists():
            continue
        if name == "metrics":
            table = table.filter(pc.is_in(table["metric"], pa.array(_METRICS)))
        kept = []
        for one, other in of.items():
            rows = table.filter(pc.equal(table["run"], one))
            rows = rows if name in ("metrics", "runs") else rows.slice(0, ROWS)
            at = rows.column_names.index("run")
            kept.append(rows.set_column(at, "run", pa.array([other] * rows.num_rows, pa.string())))
        file.parent.mkdir(exist_ok=True)
        pq.write_table(pa.concat_tables(kept).combine_chunks(), file)


def planted(folder: Path) -> Path:
    """A folder with artifacts, made by the fake driver, and its study beside it."""
    study = folder.with_name("planted.yaml")
    study.write_text(STUDY)
    code, place = call(("run", str(study), "-o", str(folder), "--no-report"))
    assert (code, place) == (0, None)
    call(("compare", str(folder)))
    return folder


def call(arguments: Sequence[str]) -> tuple[int, str | None]:
    """The exit code, and the place in the code where a traceback ends, if one does."""
    sink = io.TextIOWrapper(io.BytesIO(), "utf-8", errors="strict")
    with contextlib.redirect_stdout(sink), contextlib.redirect_stderr(sink):
        try:
            return run(arguments), None
        except Exception as error:  # noqa: BLE001 - it is a bug whatever it is, and is counted
            return 1, _place(error)


def _place(error: BaseException) -> str:
    frames = traceback.extract_tb(error.__traceback__)
    ours = [frame for frame in frames if "/twinbed/" in frame.filename]
    last = ours[-1]
    return f"{last.filename.partition('/twinbed/')[2]}:{last.lineno} {last.name}: {type(error).__name__}: {str(error)[:100]}"


def copied(base: Path, folder: Path) -> None:
    shutil.copytree(base, folder, copy_function=os.link)


def mutate(base: Path, kind: str, chance: random.Random, folder: Path) -> str:
    """A copy of a folder with one file changed, and what was."""
    copied(base, folder)
    if kind == "parquet":
        files = sorted(folder.glob("tables/*/*.parquet"))
        names = sorted({file.parent.name for file in files})
        name = chance.choice(names)
        file = chance.choice([each for each in files if each.parent.name == name])
        return f"{file.relative_to(folder)}: {change_parquet(file, chance)}"
    files = [
        each for each in sorted(folder.rglob("*.json*")) if "artifacts" not in each.parts and each.suffix in (".json", ".jsonl")
    ]
    names = sorted({each.name if "links" not in each.parts else "links" for each in files})
    weights = [6 if name == "run.json" else 3 if name == "study.json" else 1 for name in names]
    name = chance.choices(names, weights)[0]
    file = chance.choice([each for each in files if each.name == name or (name == "links" and "links" in each.parts)])
    return f"{file.relative_to(folder)}: {change_json(file, chance)}"


def fuzz(bases: Mapping[str, Path], folder: Path, calls: int, seed: int, notes: Path | None = None) -> Tally:
    """``calls`` calls, three of every mutation. The same seed does the same. ``notes``: where the tally is kept meanwhile."""
    tally = Tally()
    chance = random.Random(seed)
    number = 0
    order: list[str] = []
    while tally.calls < calls:
        number += 1
        name, kind = chance.choice(sorted(bases)), chance.choice(["json", "parquet"])
        place = folder / f"r{number}"
        what = mutate(bases[name], kind, chance, place)
        for _ in range(3):
            order = order or chance.sample(sorted(COMMANDS), len(COMMANDS))
            command = order.pop()
            out = folder / f"out{number}"
            words = {"R": str(place), "BASE": str(bases[name]), "STUDY": str(bases["planted"].with_name("planted.yaml"))}
            arguments = [words.get(word, word.replace("OUT", str(out))) for word in COMMANDS[command]]
            code, traced = call(arguments)
            tally.calls += 1
            tally.codes[code] += 1
            if traced is not None:
                tally.tracebacks.setdefault(traced, []).append(f"{command} of {name}: {what}")
            for left in folder.glob(f"out{number}*"):
                shutil.rmtree(left) if left.is_dir() else left.unlink()
        shutil.rmtree(place)
        if notes is not None:
            notes.write_text(shown(tally))
    return tally


def shown(tally: Tally) -> str:
    count = sum(map(len, tally.tracebacks.values()))
    places = len(tally.tracebacks)
    lines = [f"{tally.calls} calls, {count} tracebacks at {places} places, exit codes {dict(tally.codes)}"]
    for where, led in sorted(tally.tracebacks.items(), key=lambda each: -len(each[1])):
        lines.append(f"{len(led)} {where}")
        lines += [f"      {one}" for one in led[:2]]
    return "\n".join(lines) + "\n"
