"""Keep results for the handbook, as archives in docs/measured.

An archive without artifacts, without pages, and without tables whose rows are single packets, requests or connections: the
handbook is made from metrics.
"""

from __future__ import annotations

import shutil
import subprocess
import tempfile
from collections.abc import Sequence
from pathlib import Path

MEASURED = Path(__file__).parents[1] / "docs/measured"
LARGE = 100_000
"""Bytes of a table from which its rows are single things."""
PAGES = ("report.html", "pages", "events.jsonl", ".lock")


def _copy(results: Path, copy: Path) -> None:
    """Copy results without what the handbook does not need; artifacts go when they are archived."""
    shutil.copytree(results, copy, ignore=shutil.ignore_patterns(*PAGES), copy_function=shutil.copyfile)
    for table in (copy / "tables").iterdir():
        if table.is_dir() and table.name != "metrics" and sum(part.stat().st_size for part in table.iterdir()) >= LARGE:
            shutil.rmtree(table)


def keep(folders: Sequence[Path]) -> None:
    """Write docs/measured/NAME.zip for each folder of results."""
    for results in folders:
        # Tables are made first, so that none of those that are left out is made again.
        subprocess.run(["twinbed", "compare", str(results), "-q"], check=False, stdout=subprocess.DEVNULL)
        with tempfile.TemporaryDirectory() as scratch:
            copy = Path(scratch) / results.name
            _copy(results, copy)
            file = MEASURED / f"{results.name}.zip"
            file.unlink(missing_ok=True)
            subprocess.run(["twinbed", "archive", str(copy), "--no-raw", "-o", str(file)], check=True)
