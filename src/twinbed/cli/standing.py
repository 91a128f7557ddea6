"""The runs of a study that exist in its results folder, for `plan` and `run`."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from twinbed.lab.study import due
from twinbed.model.amount import amount
from twinbed.model.run import Status
from twinbed.results.folder import Folder
from twinbed.study.run import Run
from twinbed.study.study import Study


@dataclass(frozen=True, slots=True)
class Standing:
    """Counts the runs of a study by state."""

    folder: Path
    planned: int
    complete: int
    failed: int
    due: int
    """Runs that `run` would make; an upper limit with ``at_most``, for a study with interim analyses."""
    others: int
    """Runs with other settings than the study has now."""
    at_most: bool

    def sentence(self) -> str:
        """Return such as ``12 of 30 runs are in results/x; `twinbed run` makes the other 18.``"""
        done = self.complete + self.failed
        if not done + self.others:
            return f"No runs are in {self.folder} yet."
        failed = f" ({self.failed} failed; --retry-failed repeats them)" if self.failed else ""
        rest = f"`twinbed run` makes {'at most ' if self.at_most else 'the other '}{self.due}" if self.due else "nothing to run"
        numbers = f"All {self.planned}" if done == self.planned else f"{done} of {self.planned}"
        return f"{numbers} runs are in {self.folder}{failed}; {rest}.{self.of_others()}"

    def of_others(self) -> str:
        """Return a sentence about runs with other settings; empty without any."""
        return (
            f" {amount(self.others, 'run')} there used other settings; they are kept but not compared." if self.others else ""
        )

    def to_json(self) -> dict[str, object]:
        counts = {"planned": self.planned, "complete": self.complete, "failed": self.failed, "due": self.due}
        return {"folder": str(self.folder), **counts, "of_other_settings": self.others}


def results_folder(study: Study, output: Path | None) -> Path:
    """Return the folder that was named, or the study's own."""
    return output or Path("results") / study.name


def progress(study: Study, runs: Sequence[Run], output: Path | None) -> Standing:
    """Count the runs in the results folder. Raises ResultsUnusable for an unreadable record."""
    path = results_folder(study, output)
    folder = Folder(path)
    states = {run.id: folder.status(run.id) for run in runs}
    known = [state for state in states.values() if state is not None]
    complete, others = known.count(Status.COMPLETE), folder.count() - len(known)
    left = len(due(runs, states, retry_failed=False))
    return Standing(path, len(runs), complete, len(known) - complete, left, others, study.until is not None)
