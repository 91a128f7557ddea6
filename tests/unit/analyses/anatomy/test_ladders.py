"""The request that a testbed's ladder shows, from tables to the page."""

from __future__ import annotations

import re
from dataclasses import replace
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from benchmarks.simulated.little import InMemory, record
from tests.unit.analyses.anatomy.made_requests import EXCHANGE, FIRST_NS, at_links, packet, step_rows, twelve

from twinbed.analyses.anatomy.ladder_text import diagram, shown
from twinbed.analyses.anatomy.method import analysis as anatomy
from twinbed.analyses.anatomy.words import section
from twinbed.model.result import Pairing
from twinbed.model.tables import Outline, StudyDocument
from twinbed.render.pages import page
from twinbed.render.sections import body

STATIONS = {"syn": 0, "syn_ack": 1, "request": 3, "response": 5, "response_end": 7, "client_fin": 10}
"""Station -> place of its packet in ``twelve``."""
ODD, REQUESTS = 3, 9
"""The sequence number of one that is odd, and how many there are in a run."""


def one_request(noise: np.random.Generator, times: float, *, odd: bool) -> tuple[list[dict[str, Any]], dict[str, float]]:
    packets = twelve()
    gaps = np.diff([each["time_ns"] for each in packets], prepend=0) * times * noise.lognormal(0, 0.1, len(packets))
    at = np.cumsum(gaps).round()
    for each, ns in zip(packets, at, strict=True):
        each["time_ns"] = int(ns)
    stations = {name: packets[place]["time_ns"] / 1000 for name, place in STATIONS.items()}
    stations["request_end"] = stations["request"]
    if odd:
        packets.insert(8, packet("x", (packets[7]["time_ns"] + 500) / 1000, 500, 248, 84))
    return packets, stations


def study(testbeds: dict[str, float], *, runs: int = 2, links: tuple[str, ...] = ("client", "server")) -> InMemory:
    """Testbed -> by how much it is slower. One request of each run is odd."""
    noise = np.random.default_rng(2)
    steps, packets, records = list[dict[str, Any]](), list[dict[str, Any]](), []
    for replicate in range(runs):
        for testbed, times in testbeds.items():
            one = replace(record(testbed, replicate, len(records), {"testbed": testbed}), id=f"{testbed}-{replicate}")
            records.append(one)
            for sequence in range(REQUESTS):
                made, stations = one_request(noise, times, odd=sequence == ODD)
                named = {**EXCHANGE, "request_sequence": sequence, "run": one.id}
                for link, rows, row in zip(("client", "server"), at_links(made), step_rows(stations), strict=True):
                    if link in links:
                        steps.append({**named, "link": link, "complete": True, "silence_ended_by": "p", **row})
                        packets += [{**named, "link": link, "number": number, **each} for number, each in enumerate(rows)]
    tables = {"steps": _with_nulls(pa.Table.from_pylist(steps)), "step_packets": pa.Table.from_pylist(packets)}
    outline = Outline("s", tuple(testbeds), next(iter(testbeds)), data=StudyDocument(comparison=Pairing.INDEPENDENT))
    return InMemory(tables, outline, records)


def _with_nulls(table: pa.Table) -> pa.Table:
    for name in ("next_ns", "server_fin_ns", "reset_ns"):
        table = table.set_column(table.schema.get_field_index(name), name, pa.nulls(table.num_rows, pa.int64()))
    return table


def test_a_ladder_is_of_one_real_request_of_its_testbed_and_never_of_the_odd_one() -> None:
    source = study({"real": 1.0, "virtual": 8.0})
    result = anatomy.run(source)
    assert [each.testbed for each in result.ladders] == ["real", "virtual"]
    packets = source.table("step_packets").to_pylist()
    for each in result.ladders:
        assert (each.of, each.runs) == (2 * REQUESTS, 2)
        assert each.run.startswith(each.testbed)
        assert [one.kind for one in each.request.packets] == list("SsAPapApAfFa")
        of_run = [row for row in packets if row["run"] == each.run and row["link"] == "client"]
        candidates = [[row["time_ns"] for row in of_run if row["request_sequence"] == sequence] for sequence in range(REQUESTS)]
        times = [FIRST_NS + one.client_ns for one in each.request.packets if one.client_ns is not None]
        assert times in candidates, "its times are those of one request, not an average"
    assert anatomy.run(source).ladders == result.ladders, "the same results give the same request"


def test_the_page_has_a_ladder_a_testbed_and_details_a_step() -> None:
    result = anatomy.run(study({"real": 1.0, "virtual": 8.0, "third": 2.0}))
    text = str(page(section(result), result, "results"))
    assert text.count('aria-roledescription="packet"') == 36
    targets, ids = (set(re.findall(rf'{place}(anatomy-1-\w+)"', text)) for place in ('href="#', '<details id="'))
    assert targets == ids and len(ids) == 9
    assert "stretched" in text
    assert text.count('class="strip"') == 9


def test_of_one_link_there_are_ladders_too() -> None:
    result = anatomy.run(study({"real": 1.0, "virtual": 8.0}, links=("client",)))
    assert [len(each.request.packets) for each in result.ladders] == [12, 12]
    assert "everything" in str(page(section(result), result, "results"))
    assert "everything behind it" in diagram(result.ladders, result.titles)


def test_without_packets_there_is_no_ladder_and_the_rest_is_there() -> None:
    source = study({"real": 1.0, "virtual": 8.0})
    result = anatomy.run(replace(source, tables={"steps": source.table("steps")}))
    assert result.ladders == ()
    assert "ladder" not in str(body(section(result)))
    assert list(shown(result, all_of_them=True)) == []


def test_in_the_terminal_short_ladders_of_the_largest_difference_are_shown_unasked() -> None:
    result = anatomy.run(study({"real": 1.0, "virtual": 8.0, "third": 2.0}))
    unasked = "\n".join(shown(result, all_of_them=False))
    assert re.findall(r"^(\w+): .*medoid", unasked, re.M) == ["real", "virtual"]
    asked = "\n".join(shown(result, all_of_them=True))
    assert re.findall(r"^(\w+): .*medoid", asked, re.M) == ["real", "virtual", "third"]


@pytest.mark.parametrize("runs", [1, 2])
def test_steps_of_a_ladder_add_up_to_its_request(runs: int) -> None:
    for each in anatomy.run(study({"real": 1.0, "virtual": 3.0}, runs=runs)).ladders:
        begin, end = min(span.begin_ns for span in each.request.spans), max(span.end_ns for span in each.request.spans)
        assert each.request.total_ns == end - begin
