"""The exported folder: which one may be written, and parts that appear in it whole or not at all."""

from __future__ import annotations

import contextlib
import json
import shutil
from collections.abc import Iterator
from pathlib import Path

from twinbed.model.error import TwinbedError

MARK = "export.json"
FORMAT = 1


def opened(folder: Path, study: str, version: str) -> None:
    """Makes the folder, or finds that an export made it. Raises TwinbedError where something else did."""
    mark = folder / MARK
    if folder.exists() and not mark.is_file() and not (folder.is_dir() and not any(folder.iterdir())):
        raise TwinbedError(f"{folder} is there, and no export made it", advice="name another folder with -o")
    if mark.is_file():
        before = _study(mark)
        if before != study:
            raise TwinbedError(f"{folder} is the export of {before!r}, not of {study!r}", advice="name another folder with -o")
    folder.mkdir(parents=True, exist_ok=True)
    mark.write_text(json.dumps({"format": FORMAT, "study": study, "twinbed": version}) + "\n")


def _study(mark: Path) -> str:
    try:
        return str(json.loads(mark.read_bytes())["study"])
    except (ValueError, LookupError, TypeError) as error:
        raise TwinbedError(f"{mark} is no export's: {error}", advice="name another folder with -o") from error


@contextlib.contextmanager
def part(folder: Path, name: str) -> Iterator[Path]:
    """A new folder that takes the place of ``name`` when all of it is written."""
    making, there = folder / f".{name}.partial", folder / name
    shutil.rmtree(making, ignore_errors=True)
    making.mkdir()
    try:
        yield making
        shutil.rmtree(there, ignore_errors=True)
        making.rename(there)
    finally:
        shutil.rmtree(making, ignore_errors=True)
