"""How far a study has come in its results folder: what `plan` says of it, and where `run` makes it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from twinbed.lab.study import due
from twinbed.model.run import Status
from twinbed.results.folder import Folder
from twinbed.study.run import Run
from twinbed.study.study import Study


@dataclass(frozen=True, slots=True)
class Standing:
    """Numbers of runs."""

    folder: Path
    planned: int
    complete: int
    failed: int
    due: int
    """What `run` would make; at most, where a study ends as soon as it is decided."""
    others: int
    """Runs of other settings than the study has now."""
    at_most: bool

    def sentence(self) -> str:
        """Such as ``12 of 30 runs are in results/x: run goes on with 18.``"""
        if not self.complete + self.failed + self.others:
            return f"No runs are in {self.folder} yet."
        failed = f" ({self.failed} failed: --retry-failed makes them again)" if self.failed else ""
        goes_on = (
            f"run goes on with {'at most ' if self.at_most else ''}{self.due}" if self.due else "run has none left to make"
        )
        others = f" {self.others} more are of other settings." if self.others else ""
        return f"{self.complete + self.failed} of {self.planned} runs are in {self.folder}{failed}: {goes_on}.{others}"

    def to_json(self) -> dict[str, object]:
        counts = {"planned": self.planned, "complete": self.complete, "failed": self.failed, "due": self.due}
        return {"folder": str(self.folder), **counts, "of_other_settings": self.others}


def results_folder(study: Study, output: Path | None) -> Path:
    """The one that was named, or the study's own."""
    return output or Path("results") / study.name


def progress(study: Study, runs: Sequence[Run], output: Path | None) -> Standing:
    """Raises ResultsUnusable for a record that cannot be read."""
    path = results_folder(study, output)
    folder = Folder(path)
    states = {run.id: folder.status(run.id) for run in runs}
    found = [state for state in states.values() if state is not None]
    complete, others = found.count(Status.COMPLETE), folder.count() - len(found)
    left = len(due(runs, states, retry_failed=False))
    return Standing(path, len(runs), complete, len(found) - complete, left, others, study.until is not None)
