"""The caution for runs that never settle."""

from __future__ import annotations

from twinbed.show.quantities import two_digits
from twinbed.statistics.steady import Settling


def unsettled(found: Settling) -> str | None:
    """Return the detail of the caution; None if nothing shows that runs do not settle."""
    if found.settles is False:
        return f"the rate {_way(found.over.mean)} in the second half of runs"
    if found.astray is not None:
        others = f"by {two_digits(100 * found.astray.others, '+')} % in the mean of the others"
        return f"the rate {_way(found.astray.value)} in the second half of one run, {others}"
    return None


def _way(change: float) -> str:
    return f"{'rises' if change > 0 else 'falls'} by {two_digits(100 * abs(change))} %"
