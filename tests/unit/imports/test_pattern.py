"""What patterns read out of paths, what they refuse, and that no path makes them slow."""

from __future__ import annotations

import re
import time
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from twinbed.imports.layout.infer_pattern import propose
from twinbed.imports.layout.pattern import compile_pattern, compile_regex, cpu_limit
from twinbed.imports.layout.run_key import FileKey, FirstOf, ImportRefused, NotAssigned

IPERF = "{testbed}_{peer}_{direction}_parallel-{parallel:int}_{replicate:int}.txt"


def test_fields_are_testbed_replicate_host_format_and_factors() -> None:
    found = compile_pattern(IPERF).assign("host_srv_send_parallel-10_07.txt")
    assert found == FileKey("host", {"peer": "srv", "direction": "send", "parallel": 10}, "7")
    found = compile_pattern("{testbed}/{load:float}/{host}.{format}").assign("physical/2.5e1/client.line")
    assert found == FileKey("physical", {"load": 25.0}, None, "client", "line")
    found = compile_pattern("{testbed}-{_}-{{x}}-{_}").assign("kvm-a-{x}-b.c")
    assert found == FileKey("kvm", {})


@pytest.mark.parametrize(
    ("pattern", "path", "levels"),
    [
        ("{testbed}_{name}.txt", "a_b_c.txt", {"name": "c"}),
        ("{testbed}_{name}.txt", "a_b.txt.txt", {"name": "b.txt"}),
        ("{testbed}_x_{name}_x.txt", "a_b_x_c_x.txt", {"name": "c"}),
        ("{testbed}/{name}/r.txt", "deep/er/a/b/r.txt", {"name": "b"}),
        ("{testbed}.txt", "far/away/a.txt", {}),
    ],
)
def test_a_word_begins_where_what_precedes_it_last_comes(pattern: str, path: str, levels: dict[str, Any]) -> None:
    found = compile_pattern(pattern).assign(path)
    assert found.levels == levels
    assert found.testbed in ("a", "a_b")


def test_a_path_with_more_separators_than_the_pattern_is_read_from_its_end_and_the_other_reading_is_told() -> None:
    found = compile_pattern(IPERF).assign("docker_nat_host_send_parallel-01_20.txt")
    assert (found.testbed, found.levels) == ("docker_nat", {"peer": "host", "direction": "send", "parallel": 1})
    assert found.replicate == "20"
    assert found.otherwise == (("testbed", "docker_nat", "docker"), ("peer", "host", "nat"), ("direction", "send", "host_send"))
    assert compile_pattern(IPERF).assign("host_srv_send_parallel-10_07.txt").otherwise == ()


@pytest.mark.parametrize(
    ("pattern", "path", "found"),
    [
        ("{testbed}_{replicate:int}.txt", "docker_nat_3.txt", FileKey("docker_nat", {}, "3")),
        ("{testbed}-{n:int}.txt", "a-b--5.txt", FileKey("a-b", {"n": -5})),
        ("{testbed}_{load:float}_x.txt", "a_b_2.5e-1_x.txt", FileKey("a_b", {"load": 0.25})),
        # Read from its end, the number would have to be a word: then it is read from its beginning.
        ("{testbed}_{n:int}_{name}.txt", "a_4_small_file.txt", FileKey("a", {"n": 4, "name": "small_file"})),
    ],
)
def test_numbers_say_which_reading_is_meant(pattern: str, path: str, found: FileKey) -> None:
    assert compile_pattern(pattern).assign(path) == found


@pytest.mark.parametrize(
    "path", ["host_srv_send_parallel-x_1.txt", "host_srv_send_parallel-1_1.json", "_srv_send_parallel-1_1.txt"]
)
def test_what_does_not_match_says_so(path: str) -> None:
    with pytest.raises(NotAssigned, match="does not match"):
        compile_pattern(IPERF).assign(path)


def test_what_would_not_be_text_is_not_taken() -> None:
    with pytest.raises(NotAssigned, match=r"would be 'a\\x1b\[31m\\nb', which is not plain text"):
        compile_pattern("{testbed}.txt").assign("a\x1b[31m\nb.txt")
    with pytest.raises(NotAssigned, match=r"'\\xff'"):
        compile_pattern("{testbed}.txt").assign("\udcff.txt")


@pytest.mark.parametrize(
    ("pattern", "said"),
    [
        ("{peer}_{replicate:int}.txt", "gives no testbed"),
        ("{testbedd}.txt", "did you mean 'testbedd'"),
        ("results.txt", "has no {field}"),
        ("{testbed}{replicate:int}.txt", "nothing separates {testbed} from {replicate}"),
        ("{testbed}_{n:integer}.txt", "did you mean 'int'"),
        ("{testbed}_{testbed}.txt", "twice"),
        ("{testbed}_{a b}.txt", "is not a valid name"),
        ("{testbed}_}.txt", "lone brace at 11"),
        ("{testbed", "lone brace at 1"),
    ],
)
def test_a_wrong_pattern_says_what_is_wrong(pattern: str, said: str) -> None:
    with pytest.raises(ImportRefused, match=re.escape(said)):
        compile_pattern(pattern)


def test_the_first_pattern_that_matches_counts_and_others_are_named() -> None:
    both = FirstOf([compile_pattern("{testbed}_{n:int}.txt"), compile_pattern("{testbed}_{name}.txt")])
    assert both.assign("a_1.txt").levels == {"n": 1}
    assert both.assign("a_b.txt").levels == {"name": "b"}
    with pytest.raises(NotAssigned, match=re.escape("{n:int}.txt; does not match")):
        both.assign("a.txt")


def test_a_testbed_may_be_given_for_all_files() -> None:
    fixed = FileKey("physical", {})
    assert compile_pattern("{n:int}.txt", fixed).assign("3.txt") == FileKey("physical", {"n": 3})
    with pytest.raises(ImportRefused, match="--testbed gives one too"):
        compile_pattern("{testbed}.txt", fixed)


def test_groups_of_regular_expressions_are_numbers_where_they_look_like_it() -> None:
    regex = compile_regex(r"(?P<testbed>\w+)/(?P<a>[^-]+)-(?P<b>[^-]+)-(?P<c>[^-]+)(-(?P<d>x))?")
    assert regex.assign("kvm/10-0.5-02").levels == {"a": 10, "b": 0.5, "c": 2, "d": None}
    assert regex.assign("kvm/02.50-0x2-v2").levels == {"a": 2.5, "b": "0x2", "c": "v2", "d": None}
    with pytest.raises(ImportRefused, match="is not a regular expression: missing"):
        compile_regex("(?P<testbed>")
    with pytest.raises(ImportRefused, match="gives no testbed"):
        compile_regex("(?P<a>x)")


def test_a_regular_expression_that_backtracks_without_end_is_ended() -> None:
    regex = compile_regex(r"(?P<testbed>(\w+\s?)+)!")
    with pytest.raises(ImportRefused, match="in more and more ways"), cpu_limit(0.2):
        regex.assign("a" * 200)


def test_patterns_take_time_that_grows_with_the_path_alone() -> None:
    """Ten words with many places to end take a lazily backtracking matcher 10^14 steps."""
    pattern = compile_pattern("_".join(["{testbed}", *(f"{{f{number}}}" for number in range(9))]) + "_x.txt")
    began = time.process_time()
    with pytest.raises(NotAssigned):
        pattern.assign("a_" * 2000)
    assert time.process_time() - began < 5


@given(st.text(max_size=60))
def test_any_text_as_a_path_matches_or_does_not(path: str) -> None:
    try:
        found = compile_pattern(IPERF).assign(path)
    except NotAssigned:
        return
    assert found.testbed.isprintable()


@given(st.text(alphabet="{}:_ax/.\\", max_size=20))
def test_any_text_as_a_pattern_compiles_or_is_refused(text: str) -> None:
    try:
        compile_pattern("{testbed}/" + text)
    except ImportRefused:
        return


def test_a_pattern_is_proposed_from_what_varies() -> None:
    paths = [
        f"day1/{testbed}_srv_{direction}_parallel-{streams}_{run}.txt"
        for testbed in ("host", "nat", "overlay")
        for direction in ("send", "receive")
        for streams in (1, 10)
        for run in (1, 2)
    ]
    proposal = propose([*paths, "README"])
    assert proposal is not None
    assert proposal.pattern == "day1/{testbed}_srv_{direction}_parallel-{parallel:int}_{replicate:int}.txt"
    assert proposal.matches == len(paths)
    compiled = compile_pattern(proposal.pattern)
    assert {compiled.assign(path).testbed for path in paths} == {"host", "nat", "overlay"}
    assert propose(["a.txt"]) is None
    runs = propose([f"{kind}/run{number}/client1.json" for kind in ("e1000", "virtio") for number in (1, 2, 3)])
    assert runs is not None
    assert runs.pattern == "{testbed}/run{replicate:int}/client1.json"


@pytest.mark.parametrize("bridges", [("bridge", "nat"), ("bridge", "none")])
def test_the_pattern_that_is_proposed_fits_all_that_fit(bridges: tuple[str, ...]) -> None:
    """A testbed of two words beside one of one: the commonest shape alone has 1,800 of 3,000 files, and 2,760 fit."""
    ways = [("recv", 1), ("recv", 10), ("send", 1), ("send", 10), ("recv", 20), ("send", 20)]
    docker = [
        f"docker_{bridge}_{peer}_{way}_parallel-{streams}_{run}.txt"
        for bridge in bridges
        for peer in ("c2c", "c2h", "h2c")
        for way, streams in ways
        for run in range(1, 51)
    ]
    host = [
        f"host_{peer}_{way}_parallel-{streams}_{run}.txt"
        for peer in ("h2h", "srv")
        for way, streams in ways
        for run in range(80)
    ]
    other = [f"docker_bridge_c2c-udp_pktsize-{size}_{run}.txt" for size in (64, 512, 1400, 9000) for run in range(60)]
    assert (len(docker), len(host), len(other)) == (1800, 960, 240)
    proposal = propose([*docker, *other, *host])
    assert proposal is not None
    assert proposal.pattern == "{testbed}_{factor}_{direction}_parallel-{parallel:int}_{replicate:int}.txt"
    assert proposal.matches == 2760
    compiled = compile_pattern(proposal.pattern)
    assert {compiled.assign(path).testbed for path in docker + host} == {f"docker_{bridge}" for bridge in bridges} | {"host"}
    with pytest.raises(NotAssigned):
        compiled.assign(other[0])


def test_a_pattern_that_says_less_is_not_proposed_because_it_fits_more() -> None:
    paths = [f"{name}_{way}_{run}.txt" for name in ("kvm", "host") for way in ("send", "recv") for run in range(10)]
    proposal = propose([*paths, *(f"host_{run}.txt" for run in range(9)), *(f"note{index}.txt" for index in range(9))])
    assert proposal is not None
    assert (proposal.pattern, proposal.matches) == ("{testbed}_{direction}_{replicate:int}.txt", 40)


@pytest.mark.parametrize(
    ("paths", "pattern"),
    [
        (["a-1k-c10-kvm-03.txt", "a-16k-c1-physical-04.txt"], "a-{factor}-c{c:int}-{testbed}-{replicate:int}.txt"),
        (["a/trial1/client1.x", "b/trial2/client2.x"], "{testbed}/trial{replicate:int}/client{client:int}.x"),
        (["host_send_1.txt", "host_recv_2.txt"], "host_{direction}_{replicate:int}.txt"),
        (["x{1}_7.txt", "x{1}_8.txt"], "x{{1}}_{replicate:int}.txt"),
        (["exp1.json", "exp2.json"], "exp{replicate:int}.json"),
        (
            [
                f"{net}_host_{way}_{run}.txt"
                for net in ("docker_nat", "docker_graft", "host_none")
                for way in ("recv", "send")
                for run in (1, 2)
            ],
            "{testbed}_host_{direction}_{replicate:int}.txt",
        ),
        (
            [f"{net}_{size}_{run}.txt" for net in ("docker", "host") for size in ("s", "m", "l") for run in (1, 2)],
            "{testbed}_{factor}_{replicate:int}.txt",
        ),
        (["kvm/1/pre-stat", "kvm/1/post-stat", "host/1/pre-stat"], "{testbed}/1/{snapshot}-stat"),
    ],
)
def test_what_is_proposed_of_names_of_many_kinds(paths: list[str], pattern: str) -> None:
    proposal = propose(paths)
    assert proposal is not None
    assert proposal.pattern == pattern
    compiled = compile_pattern(pattern, FileKey("" if "{testbed}" in pattern else "mine", {}))
    for path in paths:
        compiled.assign(path)
