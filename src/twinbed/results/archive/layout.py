"""Names and limits of the files in an archive."""

from __future__ import annotations

from collections.abc import Iterator

from twinbed.tree import Tree

METADATA = "ro-crate-metadata.json"
CITATION = "CITATION.cff"
CHECKSUMS = "SHA256SUMS"
REPORT = "report.html"
ABOUT_RUNS = ("run.json", "passport.json", "applied.json")
MOST_BYTES = 2**40
MOST_RATIO = 200
"""The most bytes of all files for each byte of the archive: captures and logs pack to a fifth, at most to a hundredth."""
_FREE_BYTES = 64 * 2**20
"""Up to so many bytes together the ratio does not matter."""
STUDY = ("study.yaml", "study.json", "looks.json", "events.jsonl")


def most_bytes(packed: int) -> int:
    """Return how many bytes the files of an archive of this size may have together."""
    return min(MOST_BYTES, max(_FREE_BYTES, MOST_RATIO * packed))


def members(results: Tree, *, raw: bool) -> Iterator[str]:
    """Yield the names of all packed files of a results folder, in order. With ``raw`` artifacts are included. Raises NotPlain
    for a link or the like in a run."""
    yield from sorted(_members(results, raw))


def _members(results: Tree, raw: bool) -> Iterator[str]:
    for name in STUDY:
        if results.kind(name) is not None:
            yield name
    for own in results.entries("own"):
        yield from (f"own/{own}/{name}" for name in results.entries(f"own/{own}"))
    for name in results.entries("links"):
        if name.endswith(".json"):
            yield f"links/{name}"
    for table, kind in results.entries("tables").items():
        if kind != "file":
            parts = (name for name in results.entries(f"tables/{table}") if name.startswith("part-"))
            yield from (f"tables/{table}/{name}" for name in parts if name.endswith(".parquet"))
    for run, kind in results.entries("runs").items():
        if run.startswith(".") or kind == "file" or results.kind(f"runs/{run}/run.json") is None:
            continue
        for name, _ in results.files(f"runs/{run}"):
            if raw or name in ABOUT_RUNS:
                yield f"runs/{run}/{name}"
