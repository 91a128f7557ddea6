"""Facts that a passport takes from what tools print; lines as in ip-route(8)."""

from __future__ import annotations

import pytest

from twinbed.hosts.passport import initial_window


@pytest.mark.parametrize(
    ("routes", "segments"),
    [
        ("10.77.0.0/24 proto kernel scope link src 10.77.0.1 \n", 10),
        ("default via 10.77.0.254 initcwnd 4 initrwnd 20 \n10.77.0.0/24 proto kernel scope link src 10.77.0.1 \n", 4),
        ("default via 10.77.0.254 initcwnd 32 \n", 32),
        ("", None),
    ],
)
def test_the_initial_window_is_the_least_of_the_routes(routes: str, segments: int | None) -> None:
    assert initial_window(routes) == segments
