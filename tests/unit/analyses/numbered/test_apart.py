"""Lines over N whose marks have the same N and value: they lie beside each other, and differ by more than their colour."""

from __future__ import annotations

from collections.abc import Iterator

from twinbed.analyses.contention.draw import bends
from twinbed.analyses.contention.result import Curve
from twinbed.render.over_n import Line, Panel, over_n
from twinbed.render.plots import Spec

TESTED = (1, 2, 4, 8)
NAMES = ("first", "second", "third")


def points(spec: object) -> Iterator[Spec]:
    """Layers of marks, in order."""
    if isinstance(spec, dict):
        if isinstance(spec.get("mark"), dict) and spec["mark"]["type"] == "point" and "shape" in spec["encoding"]:
            yield spec
        spec = [*spec.values()]
    if isinstance(spec, list):
        for each in spec:
            yield from points(each)


def assert_apart(layer: Spec) -> None:
    at: dict[str, list[float]] = {}
    for row in layer["data"]["values"]:
        at.setdefault(row["series"], []).append(row["n"])
    first, second, third = at.values()
    assert second == [*TESTED][-len(second) :], "the middle one is at its place"
    for left, middle, right in zip(first, second, third, strict=True):
        assert left < middle < right, "beside each other"
    assert all(right < left for right, left in zip(third, first[1:], strict=False)), "and not beside another number's"
    shapes = layer["encoding"]["shape"]["scale"]["range"]
    assert len(set(shapes)) == len(layer["encoding"]["color"]["scale"]["range"]) == 3
    low, high = layer["encoding"]["x"]["scale"]["domain"]
    assert low < min(map(min, at.values())) and max(map(max, at.values())) < high, "nothing is cut off"


def test_testbeds_that_are_alike_are_both_seen() -> None:
    lines = [Line(name, [(n, [100.0]) for n in TESTED]) for name in NAMES]
    (layer,) = points(over_n([Panel("", lines)], "pairs", "rate"))
    assert_apart(layer)


def test_metrics_that_bend_alike_are_all_seen() -> None:
    curves = [
        Curve(metric=name, n=TESTED, smoothed=(0.0, 0.1, 0.5, 1.0), curvature=(None, 0.1, 0.2, None), mirrored=False, bent=0.5)
        for name in NAMES
    ]
    above, below = points(bends(curves, (), "pairs"))
    assert_apart(above)
    assert {row["n"] for row in below["data"]["values"] if row["series"] == "second"} == {2, 4}
