"""Files of several measurements, each of which is a run's with a copy of the file: such a file is read once, not once a run."""

from __future__ import annotations

import hashlib
import threading
from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from twinbed.contracts.format import Format, Measurement
from twinbed.imports.text.source import File, read
from twinbed.model.json import Document

MOST = 8
"""Files that are remembered: runs of a few tables may come in turn."""


@dataclass(frozen=True, slots=True)
class _Several:
    format: Format
    file: str
    options: Document
    sha256: bytes
    measurements: Sequence[Measurement]


class Repeated:
    """Remembers the last files that it read, and forgets them with its owner. Several threads may ask it."""

    def __init__(self) -> None:
        self._last: deque[_Several] = deque(maxlen=MOST)
        self._lock = threading.Lock()

    def measurements(self, kind: Format, file: File, options: Document) -> Sequence[Measurement]:
        """Those of the file. Raises FormatError."""
        if file.then:
            return read(kind, file, options)
        with self._lock:
            alike = [each for each in self._last if (each.format, each.file, each.options) == (kind, file.name, options)]
        digest = _sha256(file.path) if alike else b""
        same = next((each for each in alike if digest and each.sha256 == digest), None)
        if same is not None:
            return same.measurements
        measurements_ = read(kind, file, options)
        if len(measurements_) > 1:
            several = _Several(kind, file.name, options, digest or _sha256(file.path), measurements_)
            with self._lock:
                self._last.append(several)
        return measurements_


def _sha256(path: Path) -> bytes:
    """Empty where it cannot be read, which reading it says."""
    try:
        with path.open("rb") as stream:
            return hashlib.file_digest(stream, "sha256").digest()
    except OSError:
        return b""
