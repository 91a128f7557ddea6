"""Deletes artifacts after each run of a study that keeps less (`keep:`), before the next run begins."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

import twinbed
from twinbed import registry
from twinbed.model.amount import amount
from twinbed.model.record import Record
from twinbed.model.run import Status
from twinbed.results.extract.rows import Readers
from twinbed.results.folder import DiskFull, Folder, NotWritable
from twinbed.results.keep.thin import Thinner
from twinbed.show.quantities import quantity
from twinbed.study.run import Run
from twinbed.study.study import Study

_MOST = 3
"""Unreadable runs that are named with their reason."""


def thinner(folder: Folder, study: Study) -> Thinner:
    readers = Readers(registry.PLUGINS.read, registry.PLUGINS.accompanying)
    return Thinner(folder.path, study.keep, readers, twinbed.__version__)


@dataclass(slots=True)
class Keeping:
    """Deletes artifacts of runs, and counts what was deleted."""

    folder: Folder
    thinner: Thinner
    runs: int = 0
    bytes: int = 0
    """Bytes of deleted artifacts."""
    kept_bytes: int = 0
    """Bytes that were written in their place."""
    whole: dict[str, str] = field(default_factory=dict)
    """Each run that keeps its artifacts, with the reason."""
    earlier: int = 0
    """Earlier runs that keep more than the study says."""

    def of_earlier(self, runs: Sequence[Run]) -> None:
        """Finish what an ended command had begun. Complete earlier runs are not changed: the study may have kept more then."""
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
                f"{quantity(self.bytes, 'bytes')} of artifacts of {amount(self.runs, 'run')} were deleted (keep: {keep}), and"
                f" {quantity(self.kept_bytes, 'bytes')} kept in their place."
            )
        if self.whole:
            some = "; ".join(f"{run}: {why}" for run, why in list(self.whole.items())[:_MOST])
            yield f"{amount(len(self.whole), 'run')} could not be read, and keep all artifacts: {some}"
        if self.earlier:
            yield (
                f"{amount(self.earlier, 'earlier run')} still keep all artifacts."
                f" To delete them too: twinbed prune {self.folder.path}"
            )
