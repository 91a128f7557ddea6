"""The figures of a page, for whoever wants them as files: handed over while the page is written.

``plots.svg`` and ``sections`` offer what they are to draw; inside ``collected()`` it is kept instead of drawn.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Figure:
    """One of a page. Either ``spec`` is its Vega-Lite specification, with the placeholders of ``plots``, or ``drawing`` is SVG
    in the colours of a file."""

    name: str
    """A few words for a file's name."""
    label: str
    """What it shows."""
    spec: Mapping[str, object] | None = None
    drawing: str | None = None


_KEPT: ContextVar[list[Figure] | None] = ContextVar("figures", default=None)


@contextmanager
def collected() -> Iterator[list[Figure]]:
    """Yield the list that figures are put into, in the order of the page."""
    figures: list[Figure] = []
    token = _KEPT.set(figures)
    try:
        yield figures
    finally:
        _KEPT.reset(token)


def kept(make: Callable[[], Figure]) -> bool:
    """Return whether the figure was wanted as such, so that nobody will see it drawn."""
    figures = _KEPT.get()
    if figures is None:
        return False
    figures.append(make())
    return True
