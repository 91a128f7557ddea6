"""Window scales of the captures' SYNs: where they differ unasked, `compare` says so."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

import pyarrow as pa
import pytest
from benchmarks.simulated.little import InMemory, record

from twinbed.analyses.compare.stacks import differences
from twinbed.model.tables import Outline


def said(scales: Mapping[str, str | None], settings: Mapping[str, Mapping[str, object]]) -> list[str]:
    """Of two testbeds whose two clients' SYNs have these scales."""
    records, rows = [], []
    for testbed, scale in scales.items():
        one = record(testbed, 0, len(records), {"testbed": testbed})
        of_testbed = {**one.settings["testbed"], **settings.get(testbed, {})}
        records.append(replace(one, settings={**one.settings, "testbed": of_testbed}))
        rows += [
            {"run": one.id, "host": host, "feature": name, "text": text}
            for host in ("client1", "client2")
            for name, text in (("window_scale", scale), ("mss", "1460"))
        ]
    tables = InMemory({"fingerprints": pa.Table.from_pylist(rows)}, Outline("s", tuple(scales), "a"), records)
    return [caution.detail for caution in differences(tables, "a", list(scales))]


@pytest.mark.parametrize(
    ("other", "details"), [("7", []), (None, []), ("4", ["window scale in SYNs of clients: 7 on a, 4 on b"])]
)
def test_window_scales_that_differ_are_said(other: str | None, details: list[str]) -> None:
    assert said({"a": "7", "b": other}, {}) == details


def test_window_scales_that_were_asked_for_are_the_question() -> None:
    scales = {"a": "7", "b": "4"}
    assert said(scales, {"a": {"buffers": "alike"}, "b": {"buffers": "native"}}) == []
    assert len(said(scales, {"a": {"buffers": "native"}, "b": {"buffers": "native"}})) == 1
