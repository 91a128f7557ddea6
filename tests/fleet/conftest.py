"""A fleet on this machine."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from benchmarks.machines import Fleet


@pytest.fixture(scope="module")
def fleet(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Fleet]:
    """A scheduler and three machines."""
    one = Fleet(tmp_path_factory.mktemp("fleet"))
    try:
        one.scheduler()
        for name in ("m1", "m2", "m3"):
            one.machine(name)
        one.wait_for(3)
        yield one
    finally:
        one.end()
