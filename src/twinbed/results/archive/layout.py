"""What is in an archive, by its name there."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path, PurePosixPath

from twinbed.model.error import TwinbedError

METADATA = "ro-crate-metadata.json"
CITATION = "CITATION.cff"
CHECKSUMS = "SHA256SUMS"
REPORT = "report.html"
ABOUT_RUNS = ("run.json", "passport.json", "applied.json")
STUDY = ("study.yaml", "study.json", "looks.json", "events.jsonl")


def members(results: Path, *, raw: bool) -> Iterator[tuple[str, Path]]:
    """(name, file) of all that is packed of a results folder, in the order of names. ``raw``: artifacts too."""
    for name, file in sorted(_members(results, raw)):
        if file.is_symlink() or any((results / above).is_symlink() for above in PurePosixPath(name).parents[:-1]):
            raise TwinbedError(
                f"{results / name} is a link, or in a linked folder", advice="an archive holds files alone: move it away"
            )
        yield name, file


def _members(results: Path, raw: bool) -> Iterator[tuple[str, Path]]:
    for name in STUDY:
        if (results / name).is_file():
            yield name, results / name
    for pattern in ("links/*.json", "tables/*/part-*.parquet"):
        for file in results.glob(pattern):
            yield file.relative_to(results).as_posix(), file
    for run in (results / "runs").iterdir():
        if run.name.startswith(".") or not (run / "run.json").is_file():
            continue
        files = run.rglob("*") if raw else (run / name for name in ABOUT_RUNS)
        for file in files:
            if file.is_file():
                yield file.relative_to(results).as_posix(), file
