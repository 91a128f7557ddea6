"""Cautions of settings and values together.

Goodput is held against what Ethernet can carry: 941.5 Mbit/s on 1 Gbit/s with an MTU of 1500, the field's known figure.
"""

from __future__ import annotations

from types import SimpleNamespace

import pyarrow as pa
import pytest

from twinbed.metrics.metric import Value
from twinbed.model.caution import Kind
from twinbed.results.extract.cautions import above_link_rate, hellos_cut


def record(kind: str = "container", **topology: object) -> SimpleNamespace:
    settings = {"testbed": {"kind": kind}, "topology": {"link": {"rate": 10**9}, **topology}}
    return SimpleNamespace(id="r", settings=settings)


@pytest.mark.parametrize(
    ("topology", "value", "cautions"),
    [
        ({}, Value("goodput", 941.4e6, "bit/s"), 0),
        ({}, Value("goodput", 941.6e6, "bit/s"), 1),
        ({"pairs": 2}, Value("goodput", 1882.0e6, "bit/s"), 0),
        ({"pairs": 2}, Value("goodput", 1884.0e6, "bit/s"), 1),
        ({"pairs": 2}, Value("goodput", 942.0e6, "bit/s", "client1"), 1),
        # Printed with four and with three digits: 941.4829 rounds to them.
        ({}, Value("goodput", 941.5e6, "bit/s"), 0),
        ({}, Value("goodput", 943.0e6, "bit/s"), 1),
        ({}, Value("goodput", 1e9, "bit/s"), 1),
        ({}, Value("goodput", float("inf"), "bit/s"), 1),
        ({"link": {"rate": None}}, Value("goodput", 1e12, "bit/s"), 0),
        ({}, Value("goodput", None, "bit/s"), 0),
        ({}, Value("link_goodput", 2e9, "bit/s", "client"), 0),
    ],
)
def test_goodput_above_it_is_a_caution(topology: dict, value: Value, cautions: int) -> None:
    assert len(list(above_link_rate(record(**topology), [value]))) == cautions


def test_the_caution_tells_a_wires_limit_from_the_shapers() -> None:
    [caution] = above_link_rate(record(), [Value("goodput", 951.6e6, "bit/s")])
    assert caution.detail == "951.6 Mbit/s over links that carry at most 941.5 (956.4 as the shaper counts)"


def test_nothing_is_said_of_a_shaper_where_there_is_none() -> None:
    [caution] = above_link_rate(record("imported"), [Value("goodput", 951.6e6, "bit/s")])
    assert caution.detail == "951.6 Mbit/s over links that carry at most 941.5"
    assert "shaper" not in caution.kind.meaning + caution.kind.advice


@pytest.mark.parametrize(
    ("instruments", "ja3", "details"),
    [
        ({"packets": {"kind": "packets"}, "looks": {"kind": "fingerprint"}}, None, ["ja3 of client"]),
        ({"packets": {"kind": "packets"}, "looks": {"kind": "fingerprint"}}, "c12b4ccd5320bbb380ca1a9df90f771d", []),
        # Nobody asked features that reveal hosts.
        ({"packets": {"kind": "packets"}}, None, []),
    ],
)
def test_hellos_that_were_cut_are_a_caution_where_fingerprints_are_wanted(
    instruments: dict, ja3: str | None, details: list[str]
) -> None:
    texts = pa.array([ja3, None], pa.string())
    table = pa.table({"host": ["client", "client"], "feature": ["ja3", "clock_skew_ppm"], "text": texts})
    of = SimpleNamespace(id="r", settings={"instruments": instruments})
    found = list(hellos_cut(of, [("flows", pa.table({})), ("fingerprints", table)]))
    assert [(caution.kind, caution.detail) for caution in found] == [(Kind.HELLOS_CUT, detail) for detail in details]
