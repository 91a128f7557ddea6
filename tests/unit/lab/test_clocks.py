"""How fast a host's clock runs: bounds from two questions, by exact arithmetic."""

from __future__ import annotations

import math
import time

import pytest

from twinbed.hosts.error import HostError
from twinbed.lab.watch import Reading, rate, read, same_rate


def reading(monotonic_s: float, before_s: float, after_s: float) -> Reading:
    return Reading(monotonic_s, 1e9 + monotonic_s, before_s, after_s)


def test_bounds_are_of_the_shortest_and_the_longest_time_between() -> None:
    first, last = reading(50.0, 10.0, 10.5), reading(54.0, 14.0, 14.5)
    assert rate(first, last) == (4 / 4.5, 4 / 3.5)


def test_questions_that_meet_bound_nothing_above() -> None:
    low, high = rate(reading(50.0, 10.0, 11.0), reading(50.5, 10.5, 12.0))
    assert (low, high) == (0.25, math.inf)


@pytest.mark.parametrize(
    ("passed_s", "found"),
    [(100.0, 1.0), (100.004, 1.0), (100.9, 1.01)],
)
def test_a_rate_within_a_hundredth_is_recorded(passed_s: float, found: float) -> None:
    applied = same_rate("client", reading(5.0, 0.0, 0.0), reading(5.0 + passed_s, 100.0, 100.0))
    assert (applied.subject, applied.setting, applied.asked, applied.found) == ("client", "clock rate", None, found)
    assert applied.agrees


def test_what_slow_questions_do_not_tell_is_null_and_no_failure() -> None:
    # 2 s or 6 s have passed here while 5 s passed there.
    assert same_rate("client", reading(5.0, 0.0, 2.0), reading(10.0, 4.0, 6.0)).found is None


@pytest.mark.parametrize(("passed_s", "said"), [(103.0, "1.02 to 1.04"), (98.0, "0.9703 to 0.9899"), (4000.0, "39.6 to 40.4")])
def test_another_rate_is_no_run(passed_s: float, said: str) -> None:
    # 99 to 101 s have passed here: exactly 103/101 and 103/99, 98/101 and 98/99, 4000/101 and 4000/99.
    with pytest.raises(HostError, match=f"server: the clock runs {said} times as fast as this machine's"):
        same_rate("server", reading(5.0, 0.0, 1.0), reading(5.0 + passed_s, 100.0, 101.0))


def test_a_host_is_asked_between_two_moments() -> None:
    class Host:
        def ping(self, limit_s: float) -> dict[str, float]:
            return {"monotonic_s": time.monotonic(), "realtime_s": time.monotonic() + 1234.5}

    found = read(Host())
    assert found.before_s <= found.monotonic_s <= found.after_s
    assert found.ahead_s == pytest.approx(1234.5, abs=1.0)
