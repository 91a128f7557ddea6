"""Two machines for all tests of a module, found after each test as they were before it."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tests.remote.machines import Machines, machines, state
from twinbed.contracts.site import Site


@pytest.fixture(scope="module")
def _made(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Machines]:
    with machines(tmp_path_factory.mktemp("machines")) as made:
        yield made


@pytest.fixture
def two(_made: Machines) -> Iterator[Machines]:
    """The machines; fails when they are not left as they were found."""
    before = {name: state(space) for name, space in _made.hosts.items()}
    yield _made
    found = differences(before, _made)
    assert not found, found


def differences(before: dict[str, dict[str, object]], made: Machines) -> dict[str, object]:
    """Host and what differs -> (before, now). IPv6 addresses take a moment to be valid again."""
    import time

    deadline = time.monotonic() + 30
    while True:
        now = {name: state(space) for name, space in made.hosts.items()}
        found = {
            f"{name}: {what}": (was, now[name][what])
            for name, facts in before.items()
            for what, was in facts.items()
            if was != now[name][what]
        }
        if not found or time.monotonic() > deadline:
            return found
        time.sleep(0.1)


@pytest.fixture
def place(tmp_path: Path, site: Callable[..., Site]) -> Site:
    return site("remote")
