"""Figures of results in a notebook: drawn as Vega-Lite if the notebook knows it, else as the report's SVG. Neither needs a
network."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import cached_property

from markupsafe import Markup

from twinbed.model.json import Document
from twinbed.render import standing
from twinbed.render.collected import Figure
from twinbed.render.html import html
from twinbed.show.words import heading

VEGA_LITE = "application/vnd.vegalite.v5+json"


class Plot:
    """One figure. ``name`` and ``label`` describe it."""

    def __init__(self, figure: Figure) -> None:
        self._figure = figure
        self.name, self.label = figure.name, figure.label

    @cached_property
    def spec(self) -> Document | None:
        """Return its Vega-Lite specification with its data; None for a chain's picture or a ladder, which have none."""
        return None if self._figure.spec is None else standing.specification(self._figure)

    @cached_property
    def svg(self) -> str:
        """Return the drawn figure, as in the report."""
        return standing.svg(self._figure)

    def __repr__(self) -> str:
        return f"<figure {self.name}: {self.label}>"

    def _repr_html_(self) -> str:
        drawn = Markup(self.svg)  # Its texts were escaped as it was drawn.
        return str(html("<figure><figcaption>{}</figcaption>{}</figure>", heading(self.name), drawn))

    def _repr_mimebundle_(self, include: object = None, exclude: object = None) -> dict[str, object]:
        """Return the forms among which a notebook chooses."""
        vega = {} if self.spec is None else {VEGA_LITE: self.spec}
        return {**vega, "text/html": self._repr_html_(), "text/plain": repr(self)}


class Figures:
    """The figures of a result, in the order of the report."""

    def __init__(self, figures: Sequence[Figure]) -> None:
        self._plots = tuple(map(Plot, figures))

    def __len__(self) -> int:
        return len(self._plots)

    def __getitem__(self, at: int) -> Plot:
        return self._plots[at]

    def __iter__(self) -> Iterator[Plot]:
        return iter(self._plots)

    def __repr__(self) -> str:
        return "\n".join(f"[{number}] {plot.name}: {plot.label}" for number, plot in enumerate(self))

    def _repr_html_(self) -> str:
        return "".join(plot._repr_html_() for plot in self)

    def _repr_mimebundle_(self, include: object = None, exclude: object = None) -> dict[str, object]:
        """Return a single figure's own bundle; several figures are drawn one below the other."""
        if len(self) == 1:
            return self[0]._repr_mimebundle_()
        return {"text/html": self._repr_html_(), "text/plain": repr(self)}
