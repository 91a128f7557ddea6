"""What is no plain file, put at every place of a results folder, and every command that reads or writes results run on it.

Places come from the program's own list of what a results folder holds. A case is a place, a kind of what is put there, and a
command. Nothing outside the folder may change, no byte of what a link leads to may be told, and each command ends with an
answer or one error.

``python -m tests.links_everywhere`` from the repository tries every case; the test suite tries each place and kind with some of
the commands.
"""

from __future__ import annotations

import argparse
import contextlib
import io
import itertools
import json
import os
import random
import re
import shutil
import signal
import stat
import sys
import tempfile
import traceback
import zipfile
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from types import FrameType

import pyarrow as pa

from twinbed.cli.main import run
from twinbed.results.folder import HOLDS

SECRET = "the-secret-that-nobody-may-tell"
LIMIT_S = 120
"""A command that takes longer waits for something that never comes."""
STUDY = """study: planted
testbeds:
  near: {driver: fake, seed: 1}
  far: {driver: fake, ratio: 0.7, seed: 2}
reference: near
workload: {kind: planted, rate: 1000, features: 3}
factors:
  testbed: [near, far]
replicates: {least: 4, most: 5}
"""
COMMANDS: Mapping[str, Sequence[str]] = {
    "compare": ("compare", "R"),
    "run": ("run", "S", "-o", "R"),
    "report": ("report", "R"),
    "prune": ("prune", "R", "--keep", "tables"),
    "publish": ("publish", "R", "file://OUT"),
    "archive": ("archive", "R", "-o", "OUT.zip"),
    "merge": ("merge", "R", "BASE", "-o", "OUT"),
    "analyse": ("analyse", "anova", "R", "--html"),
    "export": ("export", "R", "-o", "OUT", "--tables", "csv"),
    "archive tables": ("archive", "R", "--no-raw", "-o", "OUT.zip"),
    "publish tables": ("publish", "R", "file://OUT", "--no-raw"),
    "run again": ("run", "S", "-o", "R", "--retry-failed"),
    "calibrate": ("calibrate", "R"),
    "plan": ("plan", "S", "-o", "R"),
    "import": ("import", "IN", "-o", "R"),
    "advise": ("advise", "R"),
    "passport": ("passport", "R"),
    "explain": ("explain", "R"),
}
KINDS: Mapping[str, Callable[[Path, Path], object]] = {
    "link to a file": lambda place, target: place.symlink_to(target),
    "link to a folder": lambda place, target: place.symlink_to(target.with_name("folder")),
    "dangling link": lambda place, target: place.symlink_to(target.with_name("new")),
    "named pipe": lambda place, target: os.mkfifo(place),
    "hard link": lambda place, target: place.hardlink_to(target),
    "folder": lambda place, target: (place / "inner").mkdir(parents=True),
}
TOLD = {"hard link"}
"""Kinds that no reader can tell from a file of its own: nothing behind them may change, but they may be read."""


@dataclass
class Tally:
    """What came of cases."""

    cases: int = 0
    codes: Counter[int] = field(default_factory=Counter)
    faults: list[str] = field(default_factory=list)


class Waits(BaseException):
    """Raised in a command that waits for ever."""


def base(folder: Path) -> Path:
    """Make results of the fake driver with one run less than planned, and with everything that commands leave beside them."""
    results, study = folder / "base", folder / "study.yaml"
    study.write_text(STUDY)
    _done("run", str(study), "-o", str(results))
    _done("analyse", "anova", str(results), "--html")
    first, *_, last = sorted((results / "runs").iterdir())
    for name, text in (("fleet.json", '{"id": "x", "image": "", "machines": {}}'), ("links/x.json", "{}")):
        (results / name).parent.mkdir(exist_ok=True)
        (results / name).write_text(text)
    kept = results / "kept"
    shutil.copytree(results, kept)
    _done("prune", str(kept), "--keep", "tables")
    for name in ("kept.json", "rows.zip"):
        shutil.copy(kept / "runs" / first.name / name, folder / name)
    shutil.rmtree(kept)
    shutil.rmtree(last)
    return results


def _done(*arguments: str) -> None:
    code, said = _ended(arguments)
    assert code in (0, 1, 4, 5), said


def places(results: Path, pattern: str) -> list[str]:
    """Return each place that a name of ``HOLDS`` stands for, as it is called in these results: folders on the way, and names of
    what is not whole yet, too."""
    first = sorted(path.name for path in (results / "runs").iterdir())[0]
    there = [path.relative_to(results).as_posix() for path in sorted(results.glob(pattern.replace("runs/*", f"runs/{first}")))]
    names = there if pattern.startswith("tables/*") else there[:1]
    found: list[str] = []
    for name in names or [pattern.replace("runs/*", f"runs/{first}").replace("*", "x")]:
        above = [str(each) for each in list(Path(name).parents)[:-1]]
        found += [*above, name, str(Path(name).with_name(f".{Path(name).name}.partial"))]
        if name.endswith("run.json"):
            found += ["runs/.unfinished-x"]
    return list(dict.fromkeys(found))


def put(results: Path, place: str, kind: str, outside: Path) -> None:
    """Put something at a place of results; what it leads to is what could be there, with the secret in it."""
    path = results / place
    path.parent.mkdir(parents=True, exist_ok=True)
    target, folder = outside / "file", outside / "folder"
    shutil.rmtree(outside, ignore_errors=True)
    folder.mkdir(parents=True)
    (folder / SECRET).write_text(SECRET)
    target.write_bytes(SECRET.encode())
    if path.is_dir():
        shutil.copytree(path, folder, dirs_exist_ok=True)
        shutil.rmtree(path)
    elif path.exists():
        target.write_bytes(_with_secret(path))
        path.unlink()
    KINDS[kind](path, target)


def _with_secret(file: Path) -> bytes:
    content = file.read_bytes()
    if file.suffix == ".json":
        with contextlib.suppress(ValueError):
            data = json.loads(content)
            if isinstance(data, dict):
                told = {name: SECRET for name in ("study", "source", "reason", "workload", "reference") if name in data}
                return json.dumps({**data, **told, SECRET: SECRET}).encode()
    return content + f"\n# {SECRET}\n".encode() if file.suffix in (".yaml", ".jsonl", ".html") else content or SECRET.encode()


def snapshot(folder: Path) -> dict[str, tuple[int, int, bytes]]:
    """Name -> mode, time of change of its names or content, content."""
    found = {}
    for path in (folder, *sorted(folder.rglob("*"))):
        about = path.lstat()
        content = path.read_bytes() if stat.S_ISREG(about.st_mode) else b""
        found[str(path)] = (about.st_mode, about.st_mtime_ns, content)
    return found


def told(folder: Path) -> Iterator[str]:
    """Yield files below a folder in which the secret is, as it is or compressed."""
    for path in sorted(folder.rglob("*")) if folder.is_dir() else [folder]:
        if path.is_symlink() or not path.is_file():
            continue
        content = path.read_bytes()
        texts = [content]
        with contextlib.suppress(pa.ArrowException, OSError):
            texts.append(pa.CompressedInputStream(pa.BufferReader(content), "zstd").read())
        if zipfile.is_zipfile(path):
            with zipfile.ZipFile(path) as archive:
                texts += [archive.read(name) for name in archive.namelist()]
        if any(SECRET.encode() in text for text in texts):
            yield str(path)


def tried(made: Path, place: str, kind: str, command: str, tally: Tally) -> None:
    """Run a command on results with something at a place, and note what is wrong with what came of it. ``made`` is the folder
    that ``base`` was given."""
    with tempfile.TemporaryDirectory(dir=made) as name:
        here = Path(name)
        results, outside, out = here / "results", here / "outside", here / "out"
        shutil.copytree(made / "base", results, symlinks=True)
        if place.endswith(("kept.json", "rows.zip")):
            for each in ("kept.json", "rows.zip"):
                shutil.copy(made / each, results / Path(place).with_name(each))
        put(results, place, kind, outside)
        (out.with_name("in")).mkdir()
        before = snapshot(outside)
        words = {"R": str(results), "BASE": str(made / "base"), "S": str(made / "study.yaml"), "IN": str(here / "in")}
        arguments = [words.get(word, word.replace("OUT", str(out))) for word in COMMANDS[command]]
        case = f"{place} ({kind}): twinbed {' '.join(COMMANDS[command])}"
        code, said = _ended(arguments)
        tally.cases += 1
        tally.codes[code] += 1
        if code < 0:
            tally.faults.append(f"{case}: {said}")
        if code == 2 and not re.search(r"twinbed: \S", said):
            tally.faults.append(f"{case}: no error is told: {said}")
        if snapshot(outside) != before:
            tally.faults.append(f"{case}: changed what is outside: {_differs(before, snapshot(outside))}")
        if kind not in TOLD:
            leaks = ["the terminal"] if SECRET in said else []
            leaks += [leak for each in (out, out.with_suffix(".zip"), results) if each.exists() for leak in told(each)]
            if leaks:
                tally.faults.append(f"{case}: the secret is in {leaks[0]}")


def _differs(before: Mapping[str, object], after: Mapping[str, object]) -> list[str]:
    return [name for name in before.keys() | after.keys() if before.get(name) != after.get(name)]


def _ended(arguments: Sequence[str]) -> tuple[int, str]:
    """The exit code, and all that was told; -1 with a traceback for what no command may end with."""

    def waits(_: int, frame: FrameType | None) -> None:
        raise Waits("".join(traceback.format_stack(frame, 5)))

    raw = io.BytesIO()
    told_here = io.TextIOWrapper(raw, encoding="utf-8", write_through=True)
    previous = signal.signal(signal.SIGALRM, waits)
    signal.alarm(LIMIT_S)
    try:
        with contextlib.redirect_stdout(told_here), contextlib.redirect_stderr(told_here):
            code = run(arguments)
        return code, raw.getvalue().decode(errors="replace")
    except Waits as error:
        return -2, f"waits for ever: {error}"
    except Exception:  # noqa: BLE001 - a traceback of any kind is what is looked for
        return -1, traceback.format_exc()
    finally:
        signal.alarm(0)
        signal.signal(signal.SIGALRM, previous)


def main() -> int:
    """Try every case, or some of them, and print what is wrong."""
    parser = argparse.ArgumentParser("python -m tests.links_everywhere", description=main.__doc__)
    parser.add_argument("--cases", type=int, help="so many, drawn at random (default: every case)")
    parser.add_argument("--seed", type=int, default=1, help="of the draw")
    options = parser.parse_args()
    tally, shown = Tally(), 0
    with tempfile.TemporaryDirectory() as name:
        results = base(Path(name))
        every = dict.fromkeys(place for pattern in HOLDS for place in places(results, pattern))
        cases = list(itertools.product(every, KINDS, COMMANDS))
        if options.cases is not None:
            cases = random.Random(options.seed).sample(cases, min(options.cases, len(cases)))
        for number, (place, kind, command) in enumerate(cases, 1):
            tried(Path(name), place, kind, command, tally)
            if number % 100 == 0:
                sys.stderr.write(f"{number} of {len(cases)}, {len(tally.faults)} faults\n")
                sys.stderr.writelines(f"{fault}\n" for fault in tally.faults[shown:])
                shown = len(tally.faults)
    summary = f"{tally.cases} cases, exit codes {dict(sorted(tally.codes.items()))}, {len(tally.faults)} faults"
    sys.stdout.write("\n".join([summary, *tally.faults, ""]))
    return bool(tally.faults)


if __name__ == "__main__":
    sys.exit(main())
