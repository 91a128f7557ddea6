"""What a format of files made elsewhere is: how it is recognised, and how it is read.

A format is an object with the attributes of ``Format``; ``registry.py`` lists them all.  It is told apart by content, never by
a file's name, and reads honestly: a value that cannot be read is None and its line a ``Diagnostic``; what a tool says against
its numbers is a caution; a text of another kind is a ``FormatError``, and nothing else is ever raised.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Protocol

from twinbed.metrics.metric import Metric, Value
from twinbed.model.caution import Caution
from twinbed.model.error import TwinbedError
from twinbed.model.json import Document
from twinbed.model.run import Level, level_text

if TYPE_CHECKING:
    import pyarrow as pa


class FormatError(TwinbedError):
    """A file is not what a format is, or nothing of it can be read. ``line`` counts from 1; None where there are no lines."""

    def __init__(self, reason: str, line: int | None = None) -> None:
        super().__init__(reason if line is None else f"line {line}: {reason}")
        self.reason, self.line = reason, line


@dataclass(frozen=True, slots=True)
class Diagnostic:
    """A part of a file that could not be read. ``line`` counts from 1; None where there are no lines."""

    text: str
    line: int | None = None
    harmless: bool = False
    """Whether it is text beside the measurement, such as a log's, of which nothing is missing."""

    def __str__(self) -> str:
        return self.text if self.line is None else f"line {self.line}: {self.text}"


@dataclass(frozen=True, slots=True)
class RunKey:
    """What a measurement is of, where its file itself says it."""

    testbed: str = ""
    """Empty where the file does not say it, but its path does."""
    levels: Mapping[str, Level] = field(default_factory=dict)
    replicate: str | None = None
    known: bool = True
    """False where it should be there and could not be read, as a flaw says: such a measurement is of no run."""

    @property
    def key(self) -> str:
        """The same for measurements of one run alone."""
        return json.dumps([self.testbed, dict(self.levels), self.replicate])

    def __str__(self) -> str:
        levels = [f"{name} {level_text(level)}" for name, level in self.levels.items()]
        replicate = [] if self.replicate is None else [f"replicate {self.replicate}"]
        return ", ".join(([self.testbed] if self.testbed else []) + levels + replicate)


@dataclass(frozen=True, slots=True)
class Measurement:
    """What one measurement in a file says. A file may hold several, one after another."""

    values: Sequence[Value] = ()
    """In base units. ``host`` is empty unless the file itself tells several apart."""
    tables: Mapping[str, pa.Table] = field(default_factory=dict)
    """Deeper rows, by the names that twinbed's own instruments and workloads give to such tables."""
    cautions: Sequence[Caution] = ()
    diagnostics: Sequence[Diagnostic] = ()
    facts: Mapping[str, str | int | float | bool] = field(default_factory=dict)
    """What it says of its circumstances: the tool's version, the kernel, protocol, streams, duration_s, mtu. What differs
    between runs and is no factor is a caution."""
    started_s: float | None = None
    """Seconds since the epoch."""
    resolution: Mapping[str, float] = field(default_factory=dict)
    """Metric -> how far the file's rounding may have moved it. Two files of a run that differ by no more do not contradict each
    other, and the finer is taken."""
    run_key: RunKey | None = None
    """None where the file says nothing of it: then its path does, or a manifest."""


class Source(Protocol):
    """A file to be read. ``twinbed.imports.text.source.File`` is one."""

    @property
    def path(self) -> Path: ...
    @property
    def name(self) -> str:
        """As its owner knows it: for messages."""
        ...

    def head(self) -> bytes:
        """Its first 64 KiB, decompressed: all that recognising it may look at."""
        ...

    def content(self) -> bytes:
        """All of it, decompressed. Raises FormatError where that is more than memory should hold, or damaged at its start."""
        ...

    def text(self) -> str:
        """All of it as text: UTF-8 or UTF-16 by its mark, other bytes replaced, line ends as ``\\n``, no terminal colours, no
        ``[STDOUT]`` before lines, nor what else a harness writes before each of them."""
        ...


class Format(Protocol):
    """A kind of file."""

    name: str
    """Of the tool and what it writes, such as ``iperf3-json``."""
    summary: str
    metrics: Sequence[Metric]
    """All that its values may be of, declared as twinbed's own plugins declare them where they have the same."""
    work: str = ""
    """The metric that counts the work done, for effects divided by it; empty for what only measures beside a workload."""
    rate: str = ""
    """The metric that says how fast; empty likewise."""

    def recognises(self, head: bytes) -> bool:
        """Whether a file that begins so is one; what two formats would recognise is a bug of one of them. Raises nothing."""
        ...

    def read(self, source: Source, options: Document) -> Sequence[Measurement]:
        """The measurements of a file, at least one. ``options`` is what a manifest says of such files; most take none.
        Raises FormatError."""
        ...
