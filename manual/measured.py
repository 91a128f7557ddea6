"""Keep results for the manual, as archives in docs/measured (the handbook's) and docs/examples (those of console examples).

An archive has neither artifacts nor a page nor tables whose rows are single packets, requests or connections. Metrics suffice
for the manual.
"""

from __future__ import annotations

import hashlib
import io
import json
import subprocess
import tempfile
import zipfile
from collections.abc import Sequence, Set
from pathlib import Path

import pyarrow.parquet as pq

from twinbed.results.listed import LIST, read_list

MEASURED = Path(__file__).parents[1] / "docs/measured"
LARGE = 100_000
"""Bytes of a table that is left out."""


def keep(folders: Sequence[Path], kept: Path = MEASURED) -> None:
    """Write NAME.zip for each folder of results into the folder ``kept``."""
    for results in folders:
        with tempfile.TemporaryDirectory() as scratch:
            whole = Path(scratch) / "whole.zip"
            subprocess.run(["twinbed", "archive", str(results), "--no-raw", "-o", str(whole)], check=True)
            slim(whole, kept / f"{results.name}.zip")


def slim(whole: Path, file: Path) -> None:
    """Copy an archive without its page and its large tables, which are then in no list of the archive either."""
    with zipfile.ZipFile(whole) as archive:
        content = {entry.filename: archive.read(entry) for entry in archive.infolist() if not _is_left_out(entry)}
    for name in content:
        if name.startswith("tables/runs/"):
            content[name] = _listing(content[name], {each.split("/")[1] for each in content if each.startswith("tables/")})
    sums = {name: hashlib.sha256(text).hexdigest() for name, text in content.items() if name != "SHA256SUMS"}
    content["SHA256SUMS"] = "".join(f"{digest}  {name}\n" for name, digest in sums.items()).encode()
    with zipfile.ZipFile(file, "w", zipfile.ZIP_DEFLATED) as copy:
        for name, text in content.items():
            copy.writestr(zipfile.ZipInfo(name), text, zipfile.ZIP_DEFLATED)


def _listing(runs: bytes, kept: Set[str]) -> bytes:
    """Return the table of runs, whose list of other tables names only those that are kept."""
    table = pq.read_table(io.BytesIO(runs))
    listed = read_list(table.schema) or {}
    rest = json.dumps({name: entry for name, entry in listed.items() if name in kept}).encode()
    written = io.BytesIO()
    pq.write_table(table.replace_schema_metadata({**table.schema.metadata, LIST: rest}), written)
    return written.getvalue()


def _is_left_out(entry: zipfile.ZipInfo) -> bool:
    large = entry.filename.startswith("tables/") and entry.file_size >= LARGE
    return entry.filename == "report.html" or (large and not entry.filename.startswith("tables/metrics/"))
