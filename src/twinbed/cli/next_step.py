"""`twinbed` without a command: what to do next in this folder, by the studies and results in it."""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterator, Mapping
from itertools import islice
from pathlib import Path

from twinbed.model.amount import amount

_STUDY = re.compile(rb"^study:[ \t]*['\"]?([\w.-]+)", re.MULTILINE)
_MOST_FILES, _MOST_BYTES = 100, 2**16
_ALL = "All commands: twinbed --help"


def next_step(folder: Path) -> Iterator[str]:
    """Yield at most eight lines: what is here, and the commands that go on from it."""
    studies, results = _studies(folder), _results(folder)
    waiting = [file for file, name in studies.items() if not any(path.name == name for path in results)]
    steps: dict[str, str] = {}
    if results:
        latest = shlex.quote(str(next(iter(results))))
        more = f" ({amount(len(results), 'folder')} of results in all)" if len(results) > 1 else ""
        yield f"{latest} holds {amount(next(iter(results.values())), 'run')}{more}. Next:"
        steps[f"twinbed compare {latest}"] = "compare each testbed with the reference"
        steps[f"twinbed explain {latest}"] = "find causes of the differences"
        steps[f"twinbed report {latest}"] = "write the results as one page"
        if own := next((file for file, name in studies.items() if next(iter(results)).name == name), None):
            steps[f"twinbed run {shlex.quote(str(own))}"] = "make runs that are missing"
    elif waiting:
        others = f" (one of {len(waiting)})" if len(waiting) > 1 else ""
        yield f"{waiting[0]} is a study without results{others}. Next:"
    else:
        yield "This folder holds no study and no results. Next:"
        steps["twinbed init"] = "write a first study, study.yaml"
        steps["twinbed studies"] = "list the studies that come with twinbed"
        steps["twinbed import DIR"] = "use captures and logs that were measured elsewhere"
    if waiting:
        study = shlex.quote(str(waiting[0]))
        steps[f"twinbed plan {study}"] = "show its runs, time and disk"
        steps[f"twinbed run {study}"] = "run it"
    width = max(map(len, steps))
    yield from (f"  {command:<{width}}  {text}" for command, text in steps.items())
    yield _ALL


def _studies(folder: Path) -> Mapping[Path, str]:
    """Return the study files here and in ``studies/``, the latest first, with the names that they give their studies."""
    files = [
        file for part in (folder, folder / "studies") for file in islice(part.glob("*.y*ml"), _MOST_FILES) if file.is_file()
    ]
    if (folder / "study.json").is_file():  # a folder of results, which keeps its study
        files = []
    names: dict[Path, str] = {}
    for file in sorted(files, key=_changed, reverse=True):
        try:
            with file.open("rb") as text:
                match = _STUDY.search(text.read(_MOST_BYTES))
        except OSError:
            continue
        if match:
            names[file] = match[1].decode()
    return names


def _results(folder: Path) -> Mapping[Path, int]:
    """Return the folders of results here and in ``results/``, the latest first, with their numbers of runs."""
    places = [folder, *islice(folder.glob("*/"), _MOST_FILES), *islice(folder.glob("results/*/"), _MOST_FILES)]
    folders = [place for place in places if (place / "study.json").is_file() and (place / "runs").is_dir()]
    return {place: _runs(place) for place in sorted(folders, key=lambda place: _changed(place / "runs"), reverse=True)}


def _runs(results: Path) -> int:
    return sum(not run.name.startswith(".") for run in (results / "runs").iterdir())


def _changed(path: Path) -> float:
    try:
        return path.stat().st_mtime
    except OSError:
        return 0.0
