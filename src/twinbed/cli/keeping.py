"""What `twinbed run` does with each run of a study that keeps less, when it is in the folder and before the next one begins."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

import twinbed
from twinbed import registry
from twinbed.model.record import Record
from twinbed.model.run import Status
from twinbed.results.extract.rows import Readers
from twinbed.results.folder import DiskFull, Folder, NotWritable
from twinbed.results.keep.thin import Thinner
from twinbed.show.quantities import quantity
from twinbed.study.run import Run
from twinbed.study.study import Study

_MOST = 3
"""Runs that stay whole, whose reasons are told."""


def thinner(folder: Folder, study: Study) -> Thinner:
    readers = Readers(registry.PLUGINS.read, registry.PLUGINS.accompanying)
    return Thinner(folder.path, study.keep, readers, twinbed.__version__)


@dataclass(slots=True)
class Keeping:
    """Thins runs, and knows what came of it."""

    folder: Folder
    thinner: Thinner
    runs: int = 0
    bytes: int = 0
    """That were not kept."""
    kept_bytes: int = 0
    """Of what was written for them."""
    whole: dict[str, str] = field(default_factory=dict)
    """Run -> why its artifacts stay as they are."""
    earlier: int = 0
    """Runs that were made before, and of which more is kept than the study says."""

    def of_earlier(self, runs: Sequence[Run]) -> None:
        """Finishes what an ended command had begun. Runs that were made whole stay so: the study may have said so then."""
        for run in runs:
            record = self.folder.record(run.id)
            if record is None or record.status is not Status.COMPLETE:
                continue
            if self.thinner.begun(record):
                self._thin(record)
            elif self.thinner.going(record):
                self.earlier += 1

    def on_made(self, run: str) -> None:
        record = self.folder.record(run)
        if record is not None and record.status is Status.COMPLETE:
            self._thin(record)

    def _thin(self, record: Record) -> None:
        try:
            thinned = self.thinner.thin(record)
        except (DiskFull, NotWritable):
            raise
        except Exception as error:  # noqa: BLE001 - no reader's fault costs the runs to come; the report meets it again
            self.whole[record.id] = str(error) or repr(error)
            self.folder.log({"run": record.id, "kept": "everything", "reason": self.whole[record.id]})
            return
        self.runs += 1
        self.bytes += thinned.bytes
        self.kept_bytes += thinned.kept_bytes
        self.folder.log({"run": record.id, "kept": str(self.thinner.keep), "bytes": thinned.bytes})

    def sentences(self) -> Iterator[str]:
        keep = self.thinner.keep
        if self.runs:
            yield (
                f"Of {_runs(self.runs)} {quantity(self.bytes, 'bytes')} of artifacts were not kept (keep: {keep}); what is kept"
                f" of them takes {quantity(self.kept_bytes, 'bytes')}."
            )
        if self.whole:
            some = "; ".join(f"{run}: {why}" for run, why in list(self.whole.items())[:_MOST])
            yield f"{_runs(len(self.whole))} could not be read as they should be, and keep everything: {some}"
        if self.earlier:
            yield (
                f"{_runs(self.earlier)} that were made before keep more than that: twinbed prune {self.folder.path} does the"
                " same with them."
            )


def _runs(number: int) -> str:
    return f"{number} run{'' if number == 1 else 's'}"
