"""``twinbed chain``: what it prints and writes of traces and of results. Expected numbers are by hand, from short sequences."""

from __future__ import annotations

import json
import re
import xml.etree.ElementTree as ElementTree
from math import log10
from pathlib import Path

import pytest
from tests.unit.analyses.chain.test_chain import results

from twinbed.analyses.chain.method import analysis as chain
from twinbed.analyses.chain.result import ChainRow, Chains
from twinbed.cli.main import run
from twinbed.contracts import exit_codes as codes

GOLDEN = Path(__file__).parents[3] / "golden" / "syscalls" / "client" / "system-calls.count"


@pytest.fixture
def shown(capfdbinary):
    """Runs a command line: exit code, standard output, standard error."""

    def command(*arguments: object) -> tuple[int, str, str]:
        code = run(["chain", *map(str, arguments)])
        out, err = capfdbinary.readouterr()
        return code, out.decode(), err.decode()

    return command


@pytest.fixture
def traces(tmp_path: Path) -> tuple[Path, Path]:
    """Plain sequences. The first: read read read write, read write; the second has close instead of the last read."""
    one, two = tmp_path / "one.txt", tmp_path / "two.txt"
    one.write_text("read\nread\nread\nwrite\nread\nwrite\n")
    two.write_text("read\nread\nread\nwrite\nclose\nwrite\n")
    return one, two


def test_a_chain_in_text_and_json(shown, traces):
    code, out, err = shown(traces[0])
    assert code == 0 and "6 calls, plain" in err
    # read is followed by read twice and by write twice; write by read once, and once by the end.
    assert re.search(r"^read +read +0\.5 +40\.00 %$", out, re.M) and re.search(r"^write +read +1 +20\.00 %$", out, re.M)
    code, out, _ = shown(traces[0], "--format", "json")
    (data,) = json.loads(out)
    edges = {(edge["state"], edge["call"]): (edge["count"], edge["probability"]) for edge in data["edges"]}
    assert edges == {("read", "read"): (2, 0.5), ("read", "write"): (2, 0.5), ("write", "read"): (1, 1.0)}


def test_several_traces_are_one_chain_with_a_break_between(shown, traces):
    _, out, _ = shown(*traces, "--format", "json")
    (data,) = json.loads(out)
    assert (data["calls"], data["sequences"]) == (12, 2)
    assert sum(edge["count"] for edge in data["edges"]) == 10


def test_orders_and_the_first_calls_and_thresholds(shown, traces):
    _, out, _ = shown(traces[0], "--order", 2, "--format", "json")
    assert {state["state"] for state in json.loads(out)[0]["states"]} == {"read read", "read write", "write read"}
    _, out, _ = shown(traces[0], "--skip", 3, "--format", "json")
    assert json.loads(out)[0]["calls"] == 3
    _, out, _ = shown(traces[0], "--skip", 2, "--limit", 3, "--format", "json")
    (data,) = json.loads(out)
    assert {(edge["state"], edge["call"]): edge["count"] for edge in data["edges"]} == {
        ("read", "write"): 1,
        ("write", "read"): 1,
    }
    _, out, _ = shown(traces[0], "--threshold", 0.6, "--format", "json")
    assert [(edge["state"], edge["call"]) for edge in json.loads(out)[0]["edges"]] == [("write", "read")]


def test_two_sides_are_compared_both_ways(shown, traces):
    code, out, _ = shown(traces[0], "--against", traces[1], "--format", "json")
    (data,) = json.loads(out)
    assert code == 0 and (data["shared_edges"], data["only_first"], data["only_second"]) == (2, 1, 2)
    assert data["different_edges"] == pytest.approx(3 / 5)
    ways = {way: each["walk"]["invalid"] for way, each in data["walks"].items()}
    assert ways == {"first through second": 1, "second through first": 2}
    assert data["walks"]["first through second"]["walk"]["log10_probability"] is None
    # Through its own chain: the first 1/2 four times; the second 2/3 twice and 1/3 once.
    own = {way: each["own"]["log10_probability"] for way, each in data["walks"].items()}
    assert own["second through first"] == pytest.approx(-4 * log10(2))
    assert own["first through second"] == pytest.approx(log10(4 / 27))
    _, out, _ = shown(traces[0], "--against", traces[1])
    assert "in one only, of all                   60.00 %" in out and "only second" in out


def test_smoothing_makes_every_walk_possible(shown, traces):
    _, out, _ = shown(traces[0], "--against", traces[1], "--smoothing", 1, "--format", "json")
    walks = json.loads(out)[0]["walks"]
    assert all(each["walk"]["invalid"] == 0 and each["walk"]["log10_probability"] < 0 for each in walks.values())


def test_graphs_have_every_state_and_transition(shown, traces, tmp_path):
    for suffix in ("dot", "graphml", "svg"):
        code, out, _ = shown(traces[0], "--against", traces[1], "-o", tmp_path / f"chain.{suffix}")
        assert (code, out) == (0, "")
    dot = (tmp_path / "chain.dot").read_text()
    assert dot.startswith('digraph "chain" {') and dot.count(" -> ") == 5 and dot.count("style=") == 3
    space = {"g": "http://graphml.graphdrawing.org/xmlns"}
    graph = ElementTree.parse(tmp_path / "chain.graphml").getroot()
    assert [node.get("id") for node in graph.findall(".//g:node", space)] == ["close", "read", "write"]
    assert len(graph.findall(".//g:edge", space)) == 5
    keys = {key.get("id") for key in graph.findall("g:key", space)}
    assert {data.get("key") for data in graph.findall(".//g:data", space)} <= keys
    svg = ElementTree.parse(tmp_path / "chain.svg").getroot()
    drawn = [title.text for title in svg.iter("{http://www.w3.org/2000/svg}title")]
    assert "read → read. first: 50 %, second: 66.667 %" in drawn and "write → read. first: 100 %, second: never" in drawn


def test_a_picture_is_of_one_program(shown):
    code, _, err = shown(GOLDEN, "--format", "dot")
    assert code == codes.USAGE and "--program" in err and "dd" in err
    code, out, _ = shown(GOLDEN, "--format", "dot", "--program", "dd")
    assert code == 0 and '"read" -> "write"' in out
    code, _, err = shown(GOLDEN, "--program", "ab")
    assert code == codes.USAGE and "dd" in err


def test_what_is_no_trace_is_refused_and_what_is_cut_off_is_said(shown, tmp_path):
    code, _, err = shown(tmp_path / "none")
    assert code == codes.USAGE and "none" in err
    wrong = tmp_path / "wrong"
    wrong.write_bytes(b"\x7fELF\x02\x01\x01\x00")
    code, _, err = shown(wrong)
    assert code == codes.USAGE and "wrong" in err
    cut = tmp_path / "cut"
    cut.write_text("".join(GOLDEN.read_text().splitlines(keepends=True)[:-1]))
    code, out, err = shown(cut, "--program", "dd")
    assert code == codes.INPUT_CUT and "cut off" in err and "dd: 225 calls" in out


def test_a_folder_without_results_or_with_other_traces_is_refused(shown, traces, tmp_path):
    code, _, err = shown(tmp_path, traces[0])
    assert code == codes.USAGE and "alone" in err
    code, _, err = shown(tmp_path)
    assert code == codes.USAGE


@pytest.mark.parametrize(
    ("replicates", "polls", "expected"), [(6, 0.2, codes.DIFFERENT), (6, 0.0, codes.DONE), (2, 0.2, codes.INCONCLUSIVE)]
)
def test_results_are_compared_with_the_reference(shown, monkeypatch, tmp_path, replicates, polls, expected):
    tables = results(replicates, {"physical": 0.0, "e1000": polls})
    monkeypatch.setattr("twinbed.cli.extraction.extracted", lambda _, **__: tables)
    code, out, _ = shown(tmp_path)
    assert code == expected
    assert ("too few replicates" in out) == (replicates == 2)
    code, out, _ = shown(tmp_path, "--format", "json", "--program", "ab")
    data = json.loads(out)
    assert [row["program"] for row in data["chains"]] == ["ab"] and {row["testbed"] for row in data["walks"]} == set(
        tables.outline.testbeds
    )
    assert code == chain.exit_code(Chains(tuple(ChainRow(**row) for row in data["chains"])))


def test_numbers_are_named_by_the_machine_that_is_said(shown, tmp_path):
    """192, 6 and 33 by the kernel's tables: mmap2, close, access on i386; lgetxattr, lstat, dup2 on x86-64."""
    file = tmp_path / "numbers.txt"
    file.write_text("192 6 33\n")
    for options, names, says in (
        ((), {"lgetxattr", "lstat", "dup2"}, "3 call numbers named as on x86_64; --architecture names another machine"),
        (("--architecture", "x86_64"), {"lgetxattr", "lstat", "dup2"}, ""),
        (("--architecture", "i386"), {"mmap2", "close", "access"}, ""),
    ):
        code, out, err = shown(file, "--format", "json", *options)
        assert code == 0 and {state["state"] for state in json.loads(out)[0]["states"]} == names
        assert says in err and ("named as" in err) == bool(says)
    file.write_text("read\nwrite\n")
    assert "named as" not in shown(file)[2], "names are of no machine"
    file.write_text("1401 4\n1402 5\n1401 2\n1402 3\n1401 66\n1402 3\n")
    _, out, err = shown(file, "--format", "json")
    assert (json.loads(out)[0]["sequences"], json.loads(out)[0]["calls"]) == (2, 6) and "plain by process" in err
