"""Which worker runs which tests, and in which order.

Tests that make labs wait most of their time: for boots, links, limits. The others compute. A third of the workers take what
computes first and the others take labs first, so that processors are busy from the beginning to the end.
"""

from __future__ import annotations

from typing import Any

import pytest
from xdist.scheduler import LoadScopeScheduling

LABS = ("contract", "e2e", "fleet", "minimega", "remote")
"""Folders of tests that make labs."""

FIRST = ("tests/remote", "tests/contract", "tests/e2e", "tests/minimega", "tests/fleet")
"""Files that take long, so that none of them is the last."""


def unit(nodeid: str) -> str:
    """Return the name of what one worker runs as a whole: a test that makes a lab of its own, or a file."""
    return nodeid.partition("::")[0]


def is_lab(unit: str) -> bool:
    return unit.split("/")[1] in LABS


def order(item: pytest.Item) -> int:
    """Return the place of a test, by FIRST."""
    return next((place for place, prefix in enumerate(FIRST) if item.nodeid.startswith(prefix)), len(FIRST))


class Lanes(LoadScopeScheduling):
    """A scheduler of xdist's."""

    def __init__(self, config: pytest.Config, log: Any) -> None:
        config.option.loadscopereorder = False
        super().__init__(config, log)

    def _split_scope(self, nodeid: str) -> str:
        return unit(nodeid)

    def _assign_work_unit(self, node: Any) -> None:
        """Give a worker the next unit of its lane, or of the other one when its own is empty."""
        computes = self.nodes.index(node) < len(self.nodes) // 3
        mine = next((name for name in self.workqueue if is_lab(name) != computes), None)
        if mine is not None:
            self.workqueue.move_to_end(mine, last=False)
        super()._assign_work_unit(node)
