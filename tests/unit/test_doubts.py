"""Goodput held against what Ethernet can carry: 941.5 Mbit/s on 1 Gbit/s with an MTU of 1500, the field's known figure."""

from __future__ import annotations

from fractions import Fraction
from types import SimpleNamespace

import pytest

from twinbed.extract.doubts import above_link_rate, greatest_goodput
from twinbed.model.metric import Value


def record(**topology: object) -> SimpleNamespace:
    return SimpleNamespace(id="r", settings={"topology": {"link": {"rate": 10**9}, **topology}})


def test_the_most_that_ethernet_carries() -> None:
    assert greatest_goodput(1e9, 1500) == pytest.approx(float(Fraction(1448, 1538) * 10**9))
    assert greatest_goodput(1e10, 9000) == pytest.approx(float(Fraction(8948, 9038) * 10**10))


@pytest.mark.parametrize(
    ("topology", "value", "cautions"),
    [
        ({}, Value("goodput", 941.4e6, "bit/s"), 0),
        ({}, Value("goodput", 941.6e6, "bit/s"), 1),
        ({"pairs": 2}, Value("goodput", 1882.0e6, "bit/s"), 0),
        ({"pairs": 2}, Value("goodput", 1884.0e6, "bit/s"), 1),
        ({"pairs": 2}, Value("goodput", 942.0e6, "bit/s", "client1"), 1),
        ({"link": {"rate": None}}, Value("goodput", 1e12, "bit/s"), 0),
        ({}, Value("goodput", None, "bit/s"), 0),
        ({}, Value("link_goodput", 2e9, "bit/s", "client"), 0),
    ],
)
def test_goodput_above_it_is_a_caution(topology: dict, value: Value, cautions: int) -> None:
    assert len(list(above_link_rate(record(**topology), [value]))) == cautions
