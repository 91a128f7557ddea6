"""The kinds of traffic by name: what each makes, on which wire, and the function that makes it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from tests.traffic.wire import Settings, Wire

Maker = Callable[[Wire], None]


@dataclass(frozen=True, slots=True)
class Kind:
    name: str
    settings: Settings
    make: Maker

    @property
    def says(self) -> str:
        return " ".join((self.make.__doc__ or "").split())


KINDS: dict[str, Kind] = {}


def kind(**settings: object) -> Callable[[Maker], Maker]:
    """Add a kind under its function's name. ``settings`` are those of the wire."""

    def add(make: Maker) -> Maker:
        KINDS[make.__name__] = Kind(make.__name__, Settings(**settings), make)  # type: ignore[arg-type]
        return make

    return add
