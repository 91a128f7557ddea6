"""Common terms of runs: levels of factors, status, phases."""

from __future__ import annotations

from enum import StrEnum
from typing import TypeAlias

from twinbed.model.json import Json, number

Level: TypeAlias = str | int | float | bool | None


def level(value: Json) -> Level:
    """Return a level of a JSON text. Raises TypeError or ValueError for a value that is no level."""
    return value if value is None or isinstance(value, str | bool) else number(value)


def level_text(level: Level) -> str:
    """Return a level for readers: ``none``, ``on``, ``off``, ``0.5``, ``500B``."""
    if level is None:
        return "none"
    if isinstance(level, bool):
        return "on" if level else "off"
    return f"{level:g}" if isinstance(level, float) else str(level)


class Status(StrEnum):
    COMPLETE = "complete"
    FAILED = "failed"


class Phase(StrEnum):
    """The phases of a run, in order; a failed run names the one it failed in."""

    UP = "up"
    CONFIGURE = "configure"
    LINK_CHECK = "link-check"
    """Before the first run of a cell."""
    SERVE = "serve"
    WARM_UP = "warm-up"
    BACKGROUND = "background"
    """Only for a run with a background load."""
    INSTRUMENT = "instrument"
    WORKLOAD = "workload"
    EXAMINE = "examine"
    """Only for a run with an instrument that examines hosts after the workload."""
    COLLECT = "collect"
    DOWN = "down"
