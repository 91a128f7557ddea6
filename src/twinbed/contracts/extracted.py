"""What a plugin reads from the artifacts of a run."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

from twinbed.metrics.metric import Value
from twinbed.model.caution import Caution

if TYPE_CHECKING:
    import pyarrow as pa


@dataclass(frozen=True, slots=True)
class Extracted:
    """What was read from artifacts: values, tables for deeper analyses, cautions."""

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
