"""The base of plugins that measure a run, and the result of reading their artifacts."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, ClassVar, Protocol

from twinbed.metrics.metric import Metric, Value
from twinbed.model.caution import Caution
from twinbed.model.error import TwinbedError

if TYPE_CHECKING:
    import pyarrow as pa


UNREADABLE = (OSError, ValueError, LookupError, TwinbedError)
"""Errors of reading a broken artifact. Any other error is a bug and shown as one."""


@dataclass(frozen=True, slots=True)
class Extracted:
    """Values, tables for deeper analyses, and cautions, read from artifacts."""

    values: Sequence[Value] = ()
    tables: Mapping[str, pa.Table] = field(default_factory=dict)
    cautions: Sequence[Caution] = ()


def artifacts_named(artifacts: Path, name: str) -> list[Path]:
    """Return all hosts' artifacts of this name (or pattern), by host. Raises FileNotFoundError where there is none."""
    files = sorted(artifacts.glob(f"*/{name}"))
    if not files:
        raise FileNotFoundError(f"no {name} in {artifacts}")
    return files


def concatenated(tables: Iterable[pa.Table]) -> pa.Table:
    """Return tables of the same columns as one."""
    import pyarrow as pa

    return pa.concat_tables(tables)


class Measuring(Protocol):
    """The attributes of every workload, instrument and background load."""

    name: str
    """Its name in study files."""
    summary: str
    """One line for readers."""
    also: ClassVar[tuple[str, ...]] = ()
    """Other names that users may write: an error then gives the right name."""
    files: ClassVar[tuple[str, ...]] = ()
    """Names of its artifacts, as shell patterns; for a folder in a host's artifacts the folder's name."""
    raw: ClassVar[str] = ""
    """Facts that only these files hold, for readers; without the files no analysis has them."""
    metrics: Sequence[Metric]
    """All metrics of which it may return values."""
