"""Slim drawings: the same picture in a fifth of the bytes, so that a page with forty of them opens at once."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from itertools import groupby
from xml.etree import ElementTree
from xml.etree.ElementTree import Element

_SVG = "{http://www.w3.org/2000/svg}"
_NEEDLESS = {"class", "pointer-events", "aria-roledescription", "stroke-miterlimit", "font-family", "role", "version"}
_DEFAULTS = {"opacity": "1", "stroke-width": "1", "font-size": "11px", "transform": "translate(0,0)", "text-anchor": "start"}
_INHERITED = ("fill", "stroke", "stroke-width", "stroke-dasharray", "text-anchor", "font-size", "font-weight")
_SHARED = ("fill", "stroke", "stroke-width", "opacity")
"""Attributes that circles in a row share."""
_GEOMETRY = ("d", "transform", "x", "y", "x1", "x2", "y1", "y2", "width", "height", "r")
_DECIMALS = re.compile(r"-?\d+\.\d+")
_PLACE = re.compile(r"translate\((-?[\d.]+),(-?[\d.]+)\)")
_DISC = re.compile(r"M([\d.]+),0A\1,\1,0,1,1,-\1,0A\1,\1,0,1,1,\1,0")


def slim(drawn: str, font: str) -> str:
    """Return a drawing of Vega's without empty groups and backgrounds, attributes at their defaults and digits that no screen
    shows. Marks keep the labels that say their numbers."""
    ElementTree.register_namespace("", _SVG[1:-1])
    root = ElementTree.fromstring(drawn)
    _clean(root)
    _hoist(root)
    root.attrib = {name: root.get(name, "") for name in ("viewBox", "width", "height")}
    root.attrib |= {"font-family": font, "font-size": "11px", "fill": "none"}
    return ElementTree.tostring(root, encoding="unicode").replace(" />", "/>")


def _clean(element: Element) -> None:
    """Clean what is below an element, and take groups that say nothing out of the way."""
    kept: list[Element] = []
    for child in element:
        is_ground = child.get("class") in ("background", "foreground") and not {"fill", "stroke"} & set(child.attrib)
        is_hidden = child.get("display") == "none" or (
            child.tag == f"{_SVG}text" and (child.get("opacity") == "0" or not "".join(child.itertext()))
        )
        if is_ground or is_hidden:
            continue
        _clean_one(child)
        _clean(child)
        if child.tag == f"{_SVG}g" and not child.attrib:
            kept += list(child)
        elif child.tag != f"{_SVG}g" or len(child):
            kept.append(child)
    element[:] = _joined(kept)


def _clean_one(element: Element) -> None:
    is_group, is_text = element.tag == f"{_SVG}g", element.tag == f"{_SVG}text"
    is_mark = bool(element.get("aria-label")) and not is_group
    left = {
        name: _DECIMALS.sub(_short, value) if name in _GEOMETRY else value
        for name, value in element.attrib.items()
        if name not in _NEEDLESS and _DEFAULTS.get(name) != value
    }
    left.pop("aria-hidden", None)  # the whole is one image to a screen reader
    label = left.pop("aria-label", None)
    if is_mark and label:
        left["data-said"] = label
    if is_group and left.get("fill") == "none":
        del left["fill"]
    place = _PLACE.fullmatch(left.get("transform", ""))
    if place and is_text:
        del left["transform"]
        left |= {"x": place[1], "y": place[2]}
    if place and (disc := _DISC.fullmatch(left.get("d", ""))):
        element.tag = f"{_SVG}circle"
        del left["transform"], left["d"]
        left |= {"cx": place[1], "cy": place[2], "r": disc[1]}
        if "stroke" not in left:
            left.pop("stroke-width", None)
    element.attrib = left


def _short(match: re.Match[str]) -> str:
    return f"{round(float(match[0]), 1) + 0.0:g}"


def _joined(elements: list[Element]) -> list[Element]:
    """Return the elements with lines in a row that look the same, such as those of a grid, as one path."""
    joined: list[Element] = []
    for look, group in groupby(elements, key=_look):
        same = list(group)
        if look and same[0].tag == f"{_SVG}circle" and len(same) > 1:
            joined.append(_grouped(same, dict(look)))
            continue
        if look is None or len(same) < 2:
            joined += same
            continue
        path = Element(f"{_SVG}path", {**dict(look), "d": "".join(map(_stroke, same))})
        joined.append(path)
    return joined


def _grouped(circles: Sequence[Element], look: Mapping[str, str]) -> Element:
    """Return circles in a group that has what they share. Each stays as transparent as it is, also where it covers another."""
    group = Element(f"{_SVG}g", {name: value for name, value in look.items() if name != "opacity"})
    if "opacity" in look:
        group.attrib |= {"fill-opacity": look["opacity"], "stroke-opacity": look["opacity"]}
    for circle in circles:
        circle.attrib = {name: value for name, value in circle.attrib.items() if name not in look}
    group[:] = circles
    return group


def _look(element: Element) -> tuple[tuple[str, str], ...] | None:
    if element.tag == f"{_SVG}circle":
        return tuple((name, element.attrib[name]) for name in _SHARED if name in element.attrib)
    if element.tag != f"{_SVG}line" or element.get("data-said") or not _PLACE.fullmatch(element.get("transform", "")):
        return None
    return tuple(sorted((name, value) for name, value in element.attrib.items() if name not in ("transform", "x2", "y2")))


def _stroke(line: Element) -> str:
    place = _PLACE.fullmatch(line.get("transform", ""))
    assert place is not None
    return f"M{place[1]},{place[2]}l{line.get('x2', '0')},{line.get('y2', '0')}"


def _hoist(element: Element) -> None:
    """Move what all children of a group share into the group."""
    for child in element:
        _hoist(child)
    if element.tag != f"{_SVG}g" or len(element) < 2:
        return
    for name in _INHERITED:
        values = {child.get(name) for child in element}
        if len(values) == 1 and None not in values and name not in element.attrib:
            element.set(name, str(values.pop()))
            for child in element:
                del child.attrib[name]
