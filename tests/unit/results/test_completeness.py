"""Captures held against what the workload's clients counted."""

from __future__ import annotations

import pyarrow as pa
import pytest

from twinbed.model.caution import Kind
from twinbed.results.extract.cautions import completeness


def exchanges(**complete: tuple[int, int]) -> list[tuple[str, pa.Table]]:
    """Link -> how many complete requests, and others."""
    rows = [(link, at < whole) for link, (whole, cut) in complete.items() for at in range(whole + cut)]
    table = pa.table({"link": [link for link, _ in rows], "complete": [whole for _, whole in rows]})
    return [("connections", pa.table({"link": ["client"]})), ("exchanges", table)]


def test_a_whole_capture_has_all_and_one_under_way_is_no_fault() -> None:
    values, cautions = completeness("r", exchanges(client=(101, 0), server=(100, 1)), 100.0, {}, 1)
    assert [(value.host, value.value) for value, _ in values] == [("client", 1.01), ("server", 1.0)]
    assert cautions == []


def test_a_shortfall_is_a_caution_with_its_size() -> None:
    """75 of 100 requests: a quarter lacks."""
    values, [caution] = completeness("r", exchanges(client=(75, 5)), 100.0, {}, 1)
    assert values[0][0].value == 0.75
    assert (caution.kind, caution.detail) == (Kind.INCOMPLETE_CAPTURE, "client: 75 of 100 requests, 25 % lack")


def test_each_pair_is_held_against_its_own_client() -> None:
    tables = exchanges(client1=(10, 0), client2=(5, 0), server1=(10, 0), server2=(10, 0))
    values, [caution] = completeness("r", tables, 20.0, {"client1": 10.0, "client2": 10.0}, 2)
    assert {value.host: value.value for value, _ in values} == {"client1": 1.0, "client2": 0.5, "server1": 1.0, "server2": 1.0}
    assert caution.detail.startswith("client2: 5 of 10 requests")


@pytest.mark.parametrize("requests", [None, 0.0])
def test_without_a_count_or_requests_nothing_is_said(requests: float | None) -> None:
    assert completeness("r", exchanges(client=(10, 0)), requests, {}, 1) == ([], [])
    assert completeness("r", [], 10.0, {}, 1) == ([], [])
