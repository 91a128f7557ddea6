"""A host's clock against the captures': packets with equal delays both ways give its offset at every time to the nanosecond."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest

from twinbed.analyses.anatomy.stations import offset
from twinbed.analyses.anatomy.steps import Times

FIRST_NS = 1_700_000_000_000_000_000
AHEAD_NS = 25_200_000_000_123
DELAY_NS = 1000
NS = 1_000_000_000


@pytest.mark.parametrize("drift", [Fraction(0), Fraction(1, 2000), Fraction(-1, 2000), Fraction(1, 20)])
def test_a_clock_that_drifts_is_followed_to_the_nanosecond(drift: Fraction) -> None:
    """The offset changes with the captures' time, and is asked for by the host's: exact arithmetic tells them apart."""
    # Multiples of 2 us, so that the drifts are whole nanoseconds.
    link = FIRST_NS + np.arange(0, 20 * NS, NS // 50, dtype=np.int64)
    host = np.array([int(at + AHEAD_NS + drift * (at - FIRST_NS)) for at in link.tolist()], np.int64)
    captured, entered, left = (Times(ns, np.ones(len(ns), bool)) for ns in (link, host + DELAY_NS, host - DELAY_NS))
    found = offset([(captured, entered)], [(captured, left)])
    assert found is not None
    assert found.bound_s == pytest.approx(DELAY_NS / NS)
    assert np.abs(host - found.at(host) - link).max() <= 1
