"""Elements of SVG as texts. Every text and attribute is escaped here."""

from __future__ import annotations

from collections.abc import Sequence
from html import escape

from twinbed.show.figure import PAGE, Colours
from twinbed.terminal import visible

FONT = "system-ui, -apple-system, 'Segoe UI', Roboto, 'Helvetica Neue', Arial, sans-serif"


def element(tag: str, /, *inner: str, **attributes: object) -> str:
    """Return an element with its attributes and inner elements. In names ``_`` stands for ``-``, and at their end for nothing;
    an attribute that is None is left out, a number has one decimal."""
    written = "".join(f' {_name(name)}="{_value(value)}"' for name, value in attributes.items() if value is not None)
    within = "".join(inner)
    return f"<{tag}{written}>{within}</{tag}>" if within else f"<{tag}{written}/>"


def picture(
    label: str, width: float, height: float, inner: Sequence[str], size: float, colours: Colours, class_: str | None = None
) -> str:
    """Return the whole drawing; ``label`` says what it shows, ``size`` is that of its font. A file has the paper's colour."""
    paper = [] if colours is PAGE else [element("rect", width=width, height=height, fill=colours["paper"])]
    return element(
        "svg",
        *paper,
        *inner,
        xmlns="http://www.w3.org/2000/svg",
        class_=class_,
        role="img",
        aria_label=label,
        viewBox=f"0 0 {_value(width)} {_value(height)}",
        width=width,
        height=height,
        font_family=FONT,
        font_size=size,
    )


def line(x1: float, y1: float, x2: float, y2: float, stroke: str, **more: object) -> str:
    """Return a line."""
    return element("line", x1=x1, y1=y1, x2=x2, y2=y2, stroke=stroke, **more)


def words(x: float, y: float, text: str, fill: str, **more: object) -> str:
    """Return a text. A whole drawing is one image to a screen reader, which reads its label."""
    return element("text", _escaped(text), x=x, y=y, fill=fill, **more)


def _name(name: str) -> str:
    return name.removesuffix("_").replace("_", "-")


def _value(value: object) -> str:
    return f"{round(value, 1) + 0.0:g}" if isinstance(value, float) else _escaped(str(value))


def _escaped(text: str) -> str:
    return escape(visible(text), quote=False).replace('"', "&quot;")
