"""The contract of a format of files made elsewhere: how it is recognised and read.

Each format is a ``Format``; ``registry.py`` lists them all. Content decides which format a file has, never its name. A value
that cannot be read is None, and its line a ``Diagnostic``. A tool's own warning about its numbers is a caution. A text of
another kind is a ``FormatError``, the only error that a format raises.
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
    """A file has another format, or nothing in it can be read. ``line`` counts from 1; None without lines."""

    def __init__(self, reason: str, line: int | None = None) -> None:
        super().__init__(reason if line is None else f"line {line}: {reason}")
        self.reason, self.line = reason, line


@dataclass(frozen=True, slots=True)
class Diagnostic:
    """A part of a file that could not be read. ``line`` counts from 1; None without lines."""

    text: str
    line: int | None = None
    harmless: bool = False
    """It is other text, such as a log's: no part of the measurement is missing."""

    def __str__(self) -> str:
        return self.text if self.line is None else f"line {self.line}: {self.text}"


@dataclass(frozen=True, slots=True)
class RunKey:
    """The run of a measurement, if its file names it."""

    testbed: str = ""
    """Empty if only the path names it."""
    levels: Mapping[str, Level] = field(default_factory=dict)
    replicate: str | None = None
    known: bool = True
    """False if it should be there and could not be read, as a diagnostic reports: such a measurement has no run."""

    @property
    def key(self) -> str:
        """Return a text that only measurements of the same run share."""
        return json.dumps([self.testbed, dict(self.levels), self.replicate])

    def __str__(self) -> str:
        levels = [f"{name} {level_text(level)}" for name, level in self.levels.items()]
        replicate = [] if self.replicate is None else [f"replicate {self.replicate}"]
        return ", ".join(([self.testbed] if self.testbed else []) + levels + replicate)


@dataclass(frozen=True, slots=True)
class Measurement:
    """One measurement of a file, which may hold several."""

    values: Sequence[Value] = ()
    """In base units. ``host`` is empty unless the file distinguishes several."""
    tables: Mapping[str, pa.Table] = field(default_factory=dict)
    """Deeper rows, by the table names of twinbed's own instruments and workloads."""
    cautions: Sequence[Caution] = ()
    diagnostics: Sequence[Diagnostic] = ()
    facts: Mapping[str, Fact] = field(default_factory=dict)
    """Its circumstances: the tool's version, the kernel, protocol, streams, duration_s, mtu. A fact that differs between runs
    and is no factor becomes a caution."""
    started_s: float | None = None
    """Seconds since the epoch."""
    resolution: Mapping[str, float] = field(default_factory=dict)
    """The largest rounding error of each metric. Two files of a run within it do not contradict each other, and the finer one
    is taken."""
    run_key: RunKey | None = None
    """None if only the path or a manifest names the run."""


class Source(Protocol):
    """A file to be read. ``twinbed.imports.text.source.File`` is one."""

    @property
    def path(self) -> Path: ...
    @property
    def name(self) -> str:
        """Return its name as its owner knows it, for messages."""
        ...

    def head(self) -> bytes:
        """Return its first 64 KiB, decompressed; only these may be used to recognise it."""
        ...

    def content(self) -> bytes:
        """Return all of it, decompressed. Raises FormatError if it is too large for memory, or damaged at its start."""
        ...

    def text(self) -> str:
        """Return it as text: UTF-8 or UTF-16 by its mark, other bytes replaced, line ends as ``\\n``.

        Terminal colours, ``[STDOUT]`` and other prefixes that a harness writes before each line are removed."""
        ...


@dataclass(frozen=True)
class Format:
    """A kind of file: how it is recognised, and how it is read."""

    name: str
    """The tool and its output, such as ``iperf3-json``."""
    summary: str
    metrics: Sequence[Metric]
    """All metrics of its values, declared as in twinbed's own plugins if these have them."""
    recognises: Callable[[bytes], object]
    """True for the first bytes of such a file, and of no other format's; raises nothing."""
    read: Callable[[Source, Document], Sequence[Measurement]]
    """Returns the measurements of a file, at least one. The second argument: a manifest's options for such files; most formats
    have none. Raises FormatError."""
    work: str = ""
    """The metric that counts the work done, by which effects are divided; empty for a tool that makes no load."""
    rate: str = ""
    """The metric of speed; empty likewise."""
