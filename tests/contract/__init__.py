"""The contracts of plugins: the promises of ``twinbed.lab.suite``, kept by every plugin of twinbed."""

from __future__ import annotations

from collections.abc import Iterable

from twinbed.lab.suite import Promise


def broken(promises: Iterable[Promise]) -> list[Promise]:
    """Return the promises that are not kept; there must be some that are checked."""
    checked = list(promises)
    assert checked
    return [each for each in checked if each[1]]
