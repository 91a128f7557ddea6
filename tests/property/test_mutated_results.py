"""Whatever is changed in a file of results, every command leaves something out with a caution, or ends with a clear error.

The short form is a part of the tests. ``TWINBED_MUTATED_CALLS`` and ``TWINBED_MUTATED_SEED`` ask for more calls and for others,
``TWINBED_MUTATED_NOTES`` names a file that has the tally while they go on.
"""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from mutated_results import call, frozen, fuzz, planted, shown

CALLS = int(os.environ.get("TWINBED_MUTATED_CALLS", "21"))
SEED = int(os.environ.get("TWINBED_MUTATED_SEED", "1"))


@pytest.mark.timeout(300 + 30 * CALLS)
def test_no_change_to_a_file_of_results_ends_in_a_traceback(tmp_path: Path) -> None:
    bases = {"planted": planted(tmp_path / "planted"), "frozen": frozen(tmp_path / "frozen")}
    for base in bases.values():
        assert call(("compare", str(base)))[1] is None
    notes = os.environ.get("TWINBED_MUTATED_NOTES")
    tally = fuzz(bases, tmp_path, CALLS, SEED, Path(notes) if notes else None)
    assert tally.calls >= CALLS
    assert not tally.tracebacks, shown(tally)
