"""A fleet on this machine."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from benchmarks.machines import Fleet

NAMES = ("m1", "m2", "m3")


@pytest.fixture(scope="module")
def _fleet(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Fleet]:
    one = Fleet(tmp_path_factory.mktemp("fleet"))
    try:
        one.scheduler()
        yield one
    finally:
        one.end()


@pytest.fixture
def fleet(_fleet: Fleet) -> Fleet:
    """A scheduler and three machines: those that an earlier test has killed are started again."""
    there = _fleet.registered()
    missing = [name for name in NAMES if name not in _fleet.processes]
    for name in missing:
        _fleet.machine(name)
    _fleet.wait_for(there + len(missing))
    return _fleet
