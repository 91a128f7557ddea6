"""A format of files made elsewhere: how it is recognised, and how it is read.

Each format is a ``Format``; ``registry.py`` lists them all.  Content decides which format a file has, never its name.  A value
that cannot be read is None and its line a ``Diagnostic``; a doubt that a tool prints about its numbers is a caution; a text of
another kind is a ``FormatError``, and nothing else is ever raised.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Protocol, TypeAlias

from twinbed.metrics.metric import Metric, Value
from twinbed.model.caution import Caution
from twinbed.model.error import TwinbedError
from twinbed.model.json import Document
from twinbed.model.run import Level, level_text

if TYPE_CHECKING:
    import pyarrow as pa


Fact: TypeAlias = str | int | float | bool


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
    """True for text around the measurement, such as a log's, of which nothing is missing."""

    def __str__(self) -> str:
        return self.text if self.line is None else f"line {self.line}: {self.text}"


@dataclass(frozen=True, slots=True)
class RunKey:
    """The run that a measurement belongs to, as far as its file says it."""

    testbed: str = ""
    """Empty where the file does not say it, but its path does."""
    levels: Mapping[str, Level] = field(default_factory=dict)
    replicate: str | None = None
    known: bool = True
    """False where the file should say it and it could not be read; a diagnostic says why. Such a measurement is of no run."""

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
    """The content of one measurement in a file. A file may hold several, one after another."""

    values: Sequence[Value] = ()
    """In base units. ``host`` is empty unless the file itself has several hosts."""
    tables: Mapping[str, pa.Table] = field(default_factory=dict)
    """Deeper rows, by the names that twinbed's own instruments and workloads give to such tables."""
    cautions: Sequence[Caution] = ()
    diagnostics: Sequence[Diagnostic] = ()
    facts: Mapping[str, Fact] = field(default_factory=dict)
    """Its circumstances: the tool's version, the kernel, protocol, streams, duration_s, mtu. A fact that differs between runs
    and is no factor is a caution."""
    started_s: float | None = None
    """Seconds since the epoch."""
    resolution: Mapping[str, float] = field(default_factory=dict)
    """Metric -> how far the file's rounding may have moved it. Two files of a run that differ by no more do not contradict each
    other, and the finer is taken."""
    run_key: RunKey | None = None
    """None where the file does not say it: then its path does, or a manifest."""


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


@dataclass(frozen=True)
class Format:
    """A kind of file: how it is recognised, and how it is read."""

    name: str
    """Of the tool and what it writes, such as ``iperf3-json``."""
    summary: str
    metrics: Sequence[Metric]
    """All that its values may be of, declared as twinbed's own plugins declare them where they have the same."""
    recognises: Callable[[bytes], object]
    """True for the first bytes of such a file, and of no other format's; raises nothing."""
    read: Callable[[Source, Document], Sequence[Measurement]]
    """Returns the measurements of a file, at least one. The second argument is what a manifest says of such files; most formats
    take no options. Raises FormatError."""
    work: str = ""
    """The metric that counts the work done, for effects divided by it; empty for what only measures beside a workload."""
    rate: str = ""
    """The metric that says how fast; empty likewise."""
