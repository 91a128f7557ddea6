"""twinbed: how faithful a virtual testbed is to the real one, for your workload, and what to do about it.

In Python: ``twinbed.open(RESULTS)`` (docs/python.md).
"""

from __future__ import annotations

import importlib
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

from twinbed.model.error import TwinbedError

if TYPE_CHECKING:
    from twinbed.api import Results

__all__ = ["TwinbedError", "__version__", "open"]
__version__ = "0.1.0"


def open(path: Path | str, on_progress: Callable[[int, int], None] | None = None) -> Results:
    """Open a results folder, for notebooks and scripts. Raises TwinbedError where it is none."""
    # By name: the package's own module is imported with every other, and so imports none of them.
    results: Results = importlib.import_module("twinbed.api").Results(path, on_progress)
    return results
