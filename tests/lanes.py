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

SHARED = (
    "tests/remote/",
    "tests/fleet/",
    "tests/contract/test_testbeds.py",
    *(
        f"tests/e2e/test_{name}.py"
        for name in (
            "bad_input",
            "boundary",
            "image",
            "ladder_browser",
            "report_browser",
            "report_hostile",
            "report_print",
            "tcp_kinds",
        )
    ),
)
"""Labs' files whose tests share something that a fixture of the module makes: they are one worker's. They begin first, so that
no long file is the last."""


def unit(nodeid: str) -> str:
    """Return the name of what one worker runs as a whole: a test that makes a lab of its own, a file, or the files that read
    the program's own sources, so that these are parsed once."""
    file = nodeid.partition("::")[0]
    if file.rpartition("/")[0] == "tests/unit":
        return "tests/unit"
    return nodeid if is_lab(file) and not file.startswith(SHARED) else file


def is_lab(unit: str) -> bool:
    return unit.split("/")[1] in LABS


def order(item: pytest.Item) -> int:
    """Return the place of a test: labs that tests share, other labs, and what needs none."""
    file = item.nodeid.partition("::")[0]
    if not is_lab(file):
        return 2
    return 0 if file.startswith(SHARED) else 1


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
