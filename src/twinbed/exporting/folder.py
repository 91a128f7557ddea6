"""The exported folder: which one may be written, and parts that appear in it whole or not at all."""

from __future__ import annotations

import contextlib
import json
import re
import shutil
from collections.abc import Iterator
from pathlib import Path

from twinbed.model.error import TwinbedError

MARK = "export.json"
FORMAT = 1
_LONGEST_NAME = 120
_OTHERS = re.compile(r"[^A-Za-z0-9.+]+")


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


def plain(text: str) -> str:
    """A text as a file's name: ASCII letters, digits, ``.``, ``+`` and ``-``.

    >>> plain("payload 1MiB, switch ovs: requests/s")
    'payload-1MiB-switch-ovs-requests-s'
    """
    words = _OTHERS.sub("-", text).strip("-.")
    return words if len(words) <= _LONGEST_NAME else words[:_LONGEST_NAME].rpartition("-")[0] or words[:_LONGEST_NAME]


class Names:
    """File names that differ from each other, on file systems that do not tell capitals apart too."""

    def __init__(self) -> None:
        self._taken: set[str] = set()

    def of(self, text: str) -> str:
        """``plain(text)``, numbered from the second on."""
        name = plain(text) or "unnamed"
        number = 2
        chosen = name
        while chosen.lower() in self._taken:
            chosen = f"{name}-{number}"
            number += 1
        self._taken.add(chosen.lower())
        return chosen
