"""What an analysis is: tables in, a result out."""

from __future__ import annotations

from typing import Any, Protocol


class Analysis(Protocol):
    """An analysis."""

    name: str
    params: type
    summary: str

    def run(self, tables: Any, params: Any) -> Any: ...
