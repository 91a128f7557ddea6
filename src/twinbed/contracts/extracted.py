"""The result of a plugin that reads the artifacts of a run."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from twinbed.metrics.metric import Value
from twinbed.model.caution import Caution

if TYPE_CHECKING:
    import pyarrow as pa


@dataclass(frozen=True, slots=True)
class Extracted:
    """Values, tables for deeper analyses, and cautions, read from artifacts."""

    values: Sequence[Value] = ()
    tables: Mapping[str, pa.Table] = field(default_factory=dict)
    cautions: Sequence[Caution] = ()
