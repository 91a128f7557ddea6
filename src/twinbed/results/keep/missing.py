"""Explains why a file of results is missing, for a command given an artifact that was not kept."""

from __future__ import annotations

from pathlib import Path

from twinbed.model.error import TwinbedError
from twinbed.results.keep.names import KEPT
from twinbed.tree import Tree


def refuse_what_was_not_kept(file: Path) -> None:
    """Raise TwinbedError for an artifact that once existed; do nothing if the file exists, or was never an artifact."""
    if file.exists():
        return
    for artifacts in file.parents:
        run = artifacts.parent
        if artifacts.name == "artifacts" and run.parent.name == "runs":
            break
    else:
        return
    if run.is_dir():
        _of_run(file, run)
    elif pruned := sum(1 for _ in run.parent.glob(f"*/{KEPT}")):  # a pattern that no file matched
        raise TwinbedError(
            f"{file}: no such file: the artifacts of {pruned} runs in {run.parent.parent} were not kept",
            advice="each run's kept.json lists them; commands that read results use the rows",
        )


def _of_run(file: Path, run: Path) -> None:
    from twinbed.results.keep.kept import Damaged, Kept

    try:
        kept = Kept.read(Tree(run))
    except Damaged:
        return
    path = file.relative_to(run).as_posix()
    for entry in kept.files:
        if entry.path == path and entry.kept_as is not None:
            raise TwinbedError(
                f"{file}: only the packets' headers of this capture were kept (keep: {kept.keep})",
                advice=f"read {run / entry.kept_as}",
            )
        if entry.path == path:
            raise TwinbedError(
                f"{file}: the artifacts of run {run.name} were not kept (keep: {kept.keep})",
                advice="commands that read results use its rows; the rest of the artifacts is lost",
            )
