"""Opens results for the commands of analyses."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from twinbed.contracts.analysis import TwoResults
    from twinbed.executor import Executor
    from twinbed.model.tables import Tables


class ResultsFolders:
    """Implements ``Inputs`` of contracts/analysis.py for folders and archives of results."""

    @property
    def executor(self) -> Executor:
        from twinbed.cli.on import executor

        return executor()

    def is_results(self, source: Path) -> bool:
        from twinbed.results.archive.unpack import is_results

        return is_results(source)

    def tables(self, results: Path, reference: str | None = None, *, all_settings: bool = False) -> Tables:
        from twinbed.api import with_reference
        from twinbed.cli import extraction

        return with_reference(extraction.extracted(results, all_settings=all_settings), reference)

    def side_by_side(self, one: Path, other: Path, *, all_settings: bool = False) -> TwoResults:
        from twinbed.cli import extraction
        from twinbed.contracts.analysis import TwoResults
        from twinbed.results.merge.side_by_side import RESULTS, side_by_side

        both = side_by_side(*(extraction.extracted(path, all_settings=all_settings) for path in (one, other)))
        return TwoResults(both, RESULTS, both.names, both.left_out)
