"""The analysis ``chain`` on results with planted chains, and what ``_core`` refuses."""

from __future__ import annotations

import random
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pyarrow as pa
import pytest

from twinbed import _core
from twinbed._core import Transitions
from twinbed.analyses.chain.graph import graph
from twinbed.analyses.chain.method import ChainParams
from twinbed.analyses.chain.method import analysis as chain
from twinbed.analyses.chain.result import Chains
from twinbed.contracts.place import MACHINE
from twinbed.model.caution import Kind
from twinbed.model.run import Status
from twinbed.model.tables import Outline
from twinbed.registry import analysis


def sequence(chance: random.Random, polls: float) -> list[str]:
    calls = ["socket"]
    while len(calls) < 400:
        calls += ["connect", "write", "read"]
        while chance.random() < 0.3:
            calls.append("read")
        if chance.random() < polls:
            calls.append("poll")
        calls.append("close")
    return calls[:400]


def results(replicates: int, polls: dict[str, float]) -> Any:
    """Results of testbeds whose client polls that often; the server is alike on all."""
    chance = random.Random(12)
    records, rows = [], []
    for testbed, often in polls.items():
        for replicate in range(replicates):
            run = f"{testbed}-{replicate}"
            record = SimpleNamespace(
                id=run,
                levels={"testbed": testbed, "payload": "500B"},
                replicate=replicate,
                settings={"testbed": {"name": testbed}},
                status=Status.COMPLETE,
            )
            records.append(record)
            # What strangers do on the machine is no property of a testbed.
            for host, program, rate in (("client", "ab", often), ("server", "nginx", 0.1), (MACHINE, "cron", chance.random())):
                for row in Transitions.of_sequence(sequence(chance, rate)).grams().to_pylist():
                    rows.append({"run": run, "host": host, "program": program, **row})
    table = pa.Table.from_pylist(rows)
    outline = Outline(name="planted", testbeds=tuple(polls), reference="physical", seed=1)
    return SimpleNamespace(
        outline=outline, records=records, table=lambda name: table if name == "transitions" else pa.table({})
    )


def test_finds_the_testbed_and_program_that_differ() -> None:
    result = chain.run(results(6, {"physical": 0.0, "container": 0.0, "e1000": 0.2}))
    rows = {(row.host, row.program, row.testbed): row for row in result.chains}
    assert len(rows) == 4
    assert {key for key, row in rows.items() if row.different} == {("client", "ab", "e1000")}
    planted = rows["client", "ab", "e1000"]
    assert planted.only_first == 2 and planted.only_second == 0 and planted.only_first_share > 0.05
    # Holm over the four, of which this is the smallest.
    assert planted.p_value == pytest.approx(2 / 924) and planted.p_adjusted == pytest.approx(8 / 924)
    assert planted.cell == {"payload": "500B"} and planted.reference == "physical"
    walks = {(row.program, row.testbed): row for row in result.walks}
    assert walks["ab", "e1000"].invalid > 0 and walks["ab", "e1000"].relative_probability == ""
    assert walks["ab", "container"].invalid == 0 and walks["ab", "container"].low < 0 < walks["ab", "container"].high
    assert walks["ab", "physical"].relative_probability == "E+0"
    assert not result.cautions


def test_few_replicates_get_a_caution_and_no_verdict() -> None:
    result = chain.run(results(3, {"physical": 0.0, "e1000": 0.5}), ChainParams(order=2, alpha=0.5))
    assert [caution.kind for caution in result.cautions] == [Kind.FEW_REPLICATES]
    assert not any(row.different for row in result.chains)
    assert {row.least_p for row in result.chains} == {0.1}
    assert all(row.invalid == 0 for row in result.walks)


def test_nothing_to_compare() -> None:
    empty = SimpleNamespace(outline=Outline("none", (), None), records=[], table=lambda name: pa.table({}))
    assert chain.run(empty) == Chains()  # type: ignore[arg-type]
    assert analysis("chain") is chain


def test_transitions_come_back_from_their_table() -> None:
    counts = Transitions.of_sequence(["read", "write", "read", "close"])
    again = Transitions([tuple(row.values()) for row in counts.grams().to_pylist()])
    assert again == counts and repr(again) == "<Transitions: 4 calls in 1 sequences>"
    assert again.names == ["close", "read", "write"] and (again.calls, again.sequences) == (4, 1)
    assert Transitions.pool([counts, again]).sequences == 2
    assert counts.states(2).to_pydict() == {
        "state": ["read close", "read write", "write read"],
        "count": [0, 1, 1],
        "share": [0.0, 0.5, 0.5],
        "starts": [0, 1, 0],
    }


def test_refusals(tmp_path: Path) -> None:
    counts = Transitions.of_sequence(["read", "write"])
    with pytest.raises(ValueError, match="order is 4, expected 1 to 3"):
        counts.edges(4)
    with pytest.raises(ValueError, match="threshold is"):
        counts.compare(counts, 1, 1.5)
    with pytest.raises(ValueError, match="a call is missing"):
        Transitions([(None, "read", None, "write", 1)])
    with pytest.raises(ValueError, match="expected one of x86_64, aarch64"):
        _core.system_call_names("vax")
    (tmp_path / "no trace").write_text("no trace\n")
    with pytest.raises(_core.ArtifactError, match='found "text"'):
        _core.system_calls(tmp_path / "no trace")
    with pytest.raises(FileNotFoundError):
        _core.system_calls(tmp_path / "nothing")
    assert _core.system_call_names()[0] == "read" and _core.system_call_names("aarch64")[63] == "read"


def test_threshold_drops_and_renormalises() -> None:
    counts = Transitions.of_sequence(["a", *["b", "a"] * 98, "c", "a", "b"])
    edges = {(row["state"], row["call"]): row["probability"] for row in counts.edges(1, 0.05).to_pylist()}
    assert edges == {("a", "b"): 1.0, ("b", "a"): 1.0, ("c", "a"): 1.0}


def test_graph_marks_what_one_chain_alone_has() -> None:
    one, two = Transitions.of_sequence(["a", "b", "a", "b"]), Transitions.of_sequence(["a", "b", "a", "c"])
    result = graph(one, two, seconds=({"a": 1.0, "b": 3.0}, None))
    edges = {(edge.state, edge.next_state): (edge.probabilities, edge.only) for edge in result.edges}
    assert edges == {
        ("a", "b"): ((1.0, 0.5), None),
        ("a", "c"): ((None, 0.5), 1),
        ("b", "a"): ((1.0, 1.0), None),
    }
    nodes = {node.state: (node.shares, node.times) for node in result.nodes}
    assert nodes["a"] == (pytest.approx((2 / 3, 2 / 3)), (0.25, None))
    assert nodes["c"] == ((None, 0.0), (None, None))
    alone = graph(one, order=2, seconds=({"a": 1.0, "b": 3.0}, None))
    assert {edge.next_state for edge in alone.edges} == {"a b", "b a"} and {edge.only for edge in alone.edges} == {0}
    # Both states that calls of b lead to are "a b", which was reached twice.
    assert {node.state: node.times[0] for node in alone.nodes} == {"a b": 0.75, "b a": 0.25}
