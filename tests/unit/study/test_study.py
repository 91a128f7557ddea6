"""The study file: what it resolves to, and what is said of a wrong one."""

from __future__ import annotations

from pathlib import Path

import pytest

from twinbed import registry
from twinbed.cli.studyfile import read_study
from twinbed.model.error import TwinbedError
from twinbed.study.catalogue import Catalogue
from twinbed.study.document import Problem, StudyError, parse
from twinbed.study.loading import load
from twinbed.study.study import Order, Study

GOLDEN = Path(__file__).parents[2] / "golden" / "studies"

MINIMAL = """
study: minimal
testbeds: {a: {driver: container}}
workload: {kind: http}
"""

FULL = """
study: full
testbeds:
  plain: {driver: container}
  vm: {driver: qemu, memory: 1GiB}
topology: {pairs: 2, link: {shaper: tbf}}
workload: {kind: http, duration: 2m}
factors:
  testbed: [plain, vm]
  topology.link.rate: [1gbit, 100mbit]
  offload: [on, off]
exclude:
  - {testbed: vm, offload: off}
instruments: {packets: {snaplen: 96}, counters: }
replicates: 3
order: random
seed: 7
margin: 5%
confidence: 0.9
reference: vm
"""


@pytest.mark.parametrize("path", sorted(GOLDEN.glob("*.yaml")), ids=lambda path: path.stem)
def test_a_wrong_study_is_told_everything_at_once(path: Path, catalogue: Catalogue) -> None:
    with pytest.raises(StudyError) as caught:
        load(path.read_text(), path.name, catalogue)
    assert [str(problem) for problem in caught.value.problems] == path.with_suffix(".errors").read_text().splitlines()
    assert caught.value.exit_code == 2


@pytest.mark.parametrize(
    ("settings", "says"),
    [
        ("driver: container, memory: 1MB", "greater than or equal to 16777216 (16MiB)"),
        ("driver: qemu, memory: 1MB", "greater than or equal to 134217728 (128MiB)"),
        ("driver: container, send_buffer: 2GiB", "less than or equal to 1073741824 (1GiB)"),
        ("driver: qemu, vcpus: 1000", "less than or equal to 64"),
    ],
)
def test_a_bound_of_a_size_is_said_as_it_would_be_written(settings: str, says: str) -> None:
    with pytest.raises(StudyError) as caught:
        load(f"study: a\ntestbeds: {{a: {{{settings}}}}}\nworkload: {{kind: http}}\n", "a.yaml", registry.catalogue())
    assert str(caught.value.problems[0]).endswith(f"allowed: {says}")


def test_what_is_not_given_has_a_default(catalogue: Catalogue) -> None:
    study = load(MINIMAL, "m.yaml", catalogue)
    assert (study.name, study.replicates, study.order) == ("minimal", 5, Order.RANDOMIZED_BLOCKS)
    assert (study.margin, study.confidence) == (0.1, 0.95)
    assert study.factors == {"testbed": ("a",)}
    assert (study.reference, study.reference_reason) == ("a", "the first testbed listed")
    assert len(study.cells) == 1
    assert study.cells[0].instruments == {}
    assert study.source == MINIMAL


def test_the_seed_is_derived_from_the_name_only(catalogue: Catalogue) -> None:
    # printf abc | sha256sum: ba7816bf 8f01cfea ... (FIPS 180-4, appendix B.1)
    study = load(MINIMAL.replace("minimal", "abc"), "m.yaml", catalogue, ["replicates=2"])
    assert study.seed == 0xBA7816BF


def test_everything_given_arrives(catalogue: Catalogue) -> None:
    study = load(FULL, "f.yaml", catalogue)
    assert (study.reference, study.reference_reason) == ("vm", "given")
    assert (study.replicates, study.order, study.seed) == (3, Order.RANDOM, 7)
    assert (study.margin, study.confidence) == (0.05, 0.9)
    assert [tuple(cell.levels.values()) for cell in study.cells] == [
        ("plain", "1gbit", "on"),
        ("plain", "1gbit", "off"),
        ("plain", "100mbit", "on"),
        ("plain", "100mbit", "off"),
        ("vm", "1gbit", "on"),
        ("vm", "100mbit", "on"),
    ]
    last = study.cells[-1]
    assert list(last.levels) == ["testbed", "topology.link.rate", "offload"]
    assert (last.testbed.kind, last.testbed.params.memory, last.testbed.params.offload) == ("qemu", 2**30, "on")
    assert (last.topology.pairs, last.topology.link.rate, last.topology.link.shaper) == (2, 100_000_000, "tbf")
    assert (last.workload.kind, last.workload.params.duration) == ("http", 120.0)
    assert {name: choice.kind for name, choice in last.instruments.items()} == {"packets": "packets", "counters": "counters"}
    assert last.instruments["packets"].params.snaplen == 96
    assert study.exclude == ({"testbed": "vm", "offload": "off"},)
    assert [len(choices) for choices in study.testbeds.values()] == [2, 1]


def test_json_holds_base_units_and_the_text_as_given(catalogue: Catalogue) -> None:
    data = load(FULL, "f.yaml", catalogue).to_json()
    assert data["source"] == FULL
    assert data["factors"]["topology.link.rate"] == ["1gbit", "100mbit"]
    assert data["cells"][0]["topology"]["link"]["rate"] == 1_000_000_000
    assert data["cells"][0]["workload"] == {
        "kind": "http",
        "tool": "ab",
        "threads": 1,
        "payload": 500,
        "duration": 120.0,
        "max_requests": 500_000,
        "keep_alive": False,
    }


def test_physical_hosts_are_the_reference_unless_said(catalogue: Catalogue) -> None:
    text = """
study: x
testbeds: {a: {driver: container}, hw: {driver: remote, hosts: {client: c, server: s}}}
workload: {kind: http}
"""
    study = load(text, "x.yaml", catalogue)
    assert (study.reference, study.reference_reason) == ("hw", "the first testbed of physical hosts")


def test_instruments_as_a_factor(catalogue: Catalogue) -> None:
    text = MINIMAL + "factors: {instruments: [none, packets, [packets, counters], []]}\n"
    with pytest.raises(StudyError, match="'none' is given twice"):
        load(text, "x.yaml", catalogue)
    study = load(text.replace(", []", ""), "x.yaml", catalogue)
    assert [cell.levels["instruments"] for cell in study.cells] == ["none", "packets", "packets+counters"]
    assert [list(cell.instruments) for cell in study.cells] == [[], ["packets"], ["packets", "counters"]]


def test_settings_of_an_instrument_factor_come_from_its_section(catalogue: Catalogue) -> None:
    text = MINIMAL + "instruments: {packets: {snaplen: 200}}\nfactors: {instruments: [none, packets]}\n"
    study = load(text, "x.yaml", catalogue)
    assert study.cells[1].instruments["packets"].params.snaplen == 200
    with pytest.raises(StudyError, match=r"instruments\.packets: is in no level"):
        load(text.replace("[none, packets]", "[none, counters]"), "x.yaml", catalogue)


def test_null_stands_for_a_setting_that_a_testbed_lacks(catalogue: Catalogue) -> None:
    text = """
study: x
testbeds: {c: {driver: container}, vm: {driver: qemu}}
workload: {kind: http}
factors: {testbed: [c, vm], nic: [null, e1000, rtl8139]}
exclude:
  - {testbed: c, nic: e1000}
  - {testbed: c, nic: rtl8139}
  - {testbed: vm, nic: null}
"""
    study = load(text, "x.yaml", catalogue)
    assert [tuple(cell.levels.values()) for cell in study.cells] == [("c", None), ("vm", "e1000"), ("vm", "rtl8139")]
    with pytest.raises(StudyError) as caught:
        load(text.replace("  - {testbed: vm, nic: null}\n", ""), "x.yaml", catalogue)
    assert [(p.line, p.column, p.key) for p in caught.value.problems] == [(5, 35, "factors.nic")]


def test_a_setting_is_given_by_a_factor_alone(catalogue: Catalogue) -> None:
    text = MINIMAL.replace("kind: http", "kind: stream") + "factors: {workload.rate: [1mbit, 2mbit]}\n"
    study = load(text, "x.yaml", catalogue)
    assert [cell.workload.params.rate for cell in study.cells] == [1_000_000, 2_000_000]


def test_on_and_off_are_text_and_keys_are_as_written(catalogue: Catalogue) -> None:
    text = "%YAML 1.1\n---" + MINIMAL + "factors: {offload: [on, off]}\n"
    study = load(text, "x.yaml", catalogue)
    assert study.factors["offload"] == ("on", "off")


def test_levels_as_written_tell_one_from_true(catalogue: Catalogue) -> None:
    text = MINIMAL + "factors: {keep_alive: [true, false]}\nexclude: [{keep_alive: 1}]\n"
    with pytest.raises(StudyError, match="1 is not a level of keep_alive; allowed: true, false"):
        load(text, "x.yaml", catalogue)


def test_too_many_cells_are_refused_before_they_are_made(catalogue: Catalogue) -> None:
    many = list(range(1, 1001))
    text = MINIMAL + f"factors: {{threads: {many}, max_requests: {many}}}\n"
    with pytest.raises(StudyError, match="make 1000000 cells; allowed: at most 100000"):
        load(text, "x.yaml", catalogue)


@pytest.mark.parametrize(
    ("overrides", "expected"),
    [
        (["replicates=2"], {"replicates": 2}),
        (["margin=20%"], {"margin": 0.2}),
        (["replicates=2", "replicates=4"], {"replicates": 4}),
        (["seed = 9"], {"seed": 9}),
    ],
)
def test_overrides_of_top_level_keys(overrides: list[str], expected: dict[str, object], catalogue: Catalogue) -> None:
    study = load(FULL, "f.yaml", catalogue, overrides)
    assert {name: getattr(study, name) for name in expected} == expected
    assert study.overrides == tuple(overrides)
    assert study.source == FULL


def test_overrides_reach_into_sections(catalogue: Catalogue) -> None:
    overrides = [
        "workload.duration=1s",
        "factors.topology.link.rate=[10mbit]",
        "testbeds.vm.vcpus=4",
        "topology.link.mtu=9000",
        "instruments.packets.snaplen=64",
    ]
    study = load(FULL.replace("{packets: {snaplen: 96}, counters: }", "[packets]"), "f.yaml", catalogue, overrides)
    assert study.factors["topology.link.rate"] == ("10mbit",)
    cell = study.cells[-1]
    assert cell.workload.params.duration == 1.0
    assert cell.testbed.params.vcpus == 4
    assert (cell.topology.link.mtu, cell.topology.link.shaper) == (9000, "tbf")
    assert cell.instruments["packets"].params.snaplen == 64


def test_bad_overrides_are_problems_too(catalogue: Catalogue) -> None:
    overrides = [
        "replicates",
        "workload.threads=0",
        "payload=1MiB",
        "workload.paylod=1MiB",
        "factors.vcpus=[1",
        "seed=",
        "study.name=x",
        "replicats=3",
    ]
    with pytest.raises(StudyError) as caught:
        load(FULL, "f.yaml", catalogue, overrides)
    assert [str(problem).partition("; allowed")[0] for problem in caught.value.problems] == [
        "-s:1:1: 'replicates' is not an override",
        "-s:2:18: workload.threads: 0 is not allowed",
        "-s:3:1: payload: is not a key of a study",
        "-s:4:1: workload.paylod: is not a setting of http",
        "-s:5:17: not YAML: expected ',' or ']', but got '<stream end>', while parsing a flow sequence",
        "-s:6:1: seed: has no value",
        "-s:7:1: study.name: is below a value that is not a mapping",
        "-s:8:1: replicats: is not a key of a study",
    ]
    assert caught.value.problems[-1].nearest == ("replicates",)


def test_a_problem_prints_where_what_and_what_would_be_right() -> None:
    problem = Problem("f.yaml", 3, 9, "workload.tool", "'abb' is not known", "ab or wrk", ("ab",))
    assert str(problem) == "f.yaml:3:9: workload.tool: 'abb' is not known; allowed: ab or wrk; did you mean 'ab'?"


@pytest.mark.parametrize(
    ("text", "line", "column"),
    [
        ("study: x\n\ttestbeds: 1\n", 2, 1),
        ("study: 'x\n", 2, 1),
        ("study: x\nseed: \x01\n", 2, 7),
        ("study: *nobody\n", 1, 8),
        ("study: x\n---\nstudy: y\n", 2, 1),
        ("a: b: c\n", 1, 5),
    ],
)
def test_text_that_is_not_yaml_has_a_place(text: str, line: int, column: int, catalogue: Catalogue) -> None:
    with pytest.raises(StudyError) as caught:
        load(text, "x.yaml", catalogue)
    assert [(p.line, p.column) for p in caught.value.problems] == [(line, column)]


def test_deep_nesting_is_a_problem_not_a_crash(catalogue: Catalogue) -> None:
    with pytest.raises(StudyError, match="nested too deeply"):
        load("[" * 5000, "x.yaml", catalogue)


def test_aliases_do_not_multiply_the_work(catalogue: Catalogue) -> None:
    lines = ["a0: &a0 [x]", *(f"a{n}: &a{n} [{', '.join([f'*a{n - 1}'] * 9)}]" for n in range(1, 30))]
    with pytest.raises(StudyError) as caught:
        load("\n".join(lines), "x.yaml", catalogue)
    (problem,) = caught.value.problems
    # a0 is 2 values, a1 1 + 9 of that, and so on: with the mapping itself 1 + the sum of a(n) for n from 0 to 29.
    sizes = [2]
    for _ in range(29):
        sizes.append(1 + 9 * sizes[-1])
    assert str(problem).startswith(f"x.yaml:1:1: its aliases expand to {1 + sum(sizes):,} values; allowed: at most 10,000")


def test_a_text_with_too_many_values_is_refused_where_it_has_them(catalogue: Catalogue) -> None:
    with pytest.raises(StudyError, match=r"^x.yaml:5000:\d+: not YAML: more than 10,000 keys and values"):
        load("".join(f"k{number}: 1\n" for number in range(300_000)), "x.yaml", catalogue)


@pytest.mark.parametrize("size", [2**18 + 1, 52 * 2**20, None], ids=["one byte more", "52 MiB", "without an end"])
def test_a_file_that_is_no_study_is_not_read_to_its_end(size: int | None, tmp_path: Path) -> None:
    path = Path("/dev/zero")
    if size:
        path = tmp_path / "large.yaml"
        with path.open("wb") as file:
            file.truncate(size)
    with pytest.raises(TwinbedError, match=f"^{path} is larger than 256KiB, too large for a study file$"):
        read_study(path)


def test_studies_are_frozen(catalogue: Catalogue) -> None:
    study: Study = load(MINIMAL, "m.yaml", catalogue)
    with pytest.raises(AttributeError):
        study.seed = 1  # type: ignore[misc]


def test_merge_keys(catalogue: Catalogue) -> None:
    """The rule of https://yaml.org/type/merge.html: what is written wins, then the mapping that is named first."""
    text = """
study: merged
testbeds:
  a: &a {driver: qemu, memory: 1GiB, offload: off}
  b: {offload: on, <<: *a}
  c: &c {<<: *a, memory: 2GiB}
  d: {<<: [*c, *a]}
workload: {kind: http}
"""
    plain = """
study: merged
testbeds:
  a: {driver: qemu, memory: 1GiB, offload: off}
  b: {driver: qemu, memory: 1GiB, offload: on}
  c: {driver: qemu, memory: 2GiB, offload: off}
  d: {driver: qemu, memory: 2GiB, offload: off}
workload: {kind: http}
"""
    assert load(text, "study.yaml", catalogue).testbeds == load(plain, "study.yaml", catalogue).testbeds


@pytest.mark.parametrize("value", ["5", "[*a, text]", "null"])
def test_a_merge_of_no_mapping_is_refused_by_name(catalogue: Catalogue, value: str) -> None:
    text = f"""
study: merged
testbeds:
  a: &a {{driver: container}}
  b: {{driver: container, <<: {value}}}
workload: {{kind: http}}
"""
    with pytest.raises(StudyError, match=r"testbeds\.b\.<<: merges something that is not a mapping"):
        load(text, "study.yaml", catalogue)


@pytest.mark.parametrize("hidden", ["\\x1b[2J", "\\u202e", "\\x9b", "\\u200b", "\\r", "\\u2028", "\\0"])
def test_a_name_that_is_not_seen_is_refused_with_its_place(hidden: str) -> None:
    problems: list[Problem] = []
    parse(f'study: a\nfactors:\n  "size{hidden}": ["1{hidden}"]\n', "s.yaml", problems)
    assert [(each.line, each.column) for each in problems] == [(3, 3), (3, 12 + len(hidden))]
    assert all("invisible character" in each.message for each in problems)
