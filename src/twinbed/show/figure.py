"""A figure as data: a Vega-Lite specification, or a drawing of our own."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, TypeAlias

Spec: TypeAlias = dict[str, Any]
"""A plot or a part of one, as Vega-Lite's schema has it."""
Colours: TypeAlias = Mapping[str, str]
"""The use of a colour (``ink``, ``rule``) -> CSS."""
PAGE: Colours = {
    name: f"var(--{name})" for name in ("ink", "muted", "rule", "paper", "band", "different", "equivalent", "inconclusive")
}
"""The colours of a page's style sheet, which follow dark mode and print."""


@dataclass(frozen=True, slots=True)
class Figure:
    """One figure. ``spec`` makes it where it is a plot, with the placeholders of ``render/plots`` for colours; else ``drawing``
    makes SVG in the colours that it is given."""

    name: str
    """A few words, for a file's name."""
    label: str = ""
    """Describes it to those who cannot see it. By default the caption; the section's table has the numbers."""
    spec: Callable[[], Spec] | None = None
    drawing: Callable[[Colours], str] | None = None
    caption: str = ""
    is_narrow: bool = False
    """True if as many stand side by side as have room."""
