"""The pages about study files and the ready studies, against the real plugins: every example is read, every key described."""

from __future__ import annotations

import itertools
import re
import shlex
from pathlib import Path

import pytest

from twinbed import design, registry
from twinbed.cli import main
from twinbed.model.topology import Link, Topology
from twinbed.published.printed import library
from twinbed.published.printed_metrics import printed_at
from twinbed.study.document import StudyError
from twinbed.study.loading import load
from twinbed.study.study import KEYS

REPOSITORY = Path(__file__).parents[3]
MANUAL = "".join((REPOSITORY / "docs" / page).read_text() for page in ("study-design.md", "study-file.md"))
BLOCKS = re.findall(r"^```(\w*)\n(.*?)^```$", MANUAL, re.MULTILINE | re.DOTALL)
EXAMPLES = [text for language, text in BLOCKS if language == "yaml"]
NEEDED = {"study": "study: x", "testbeds": "testbeds: {a: {driver: container}}", "workload": "workload: {kind: http}"}


def completed(text: str) -> str:
    """A fragment with the keys that every study needs."""
    given = set(re.findall(r"^(\w+):", text, re.MULTILINE))
    return text + "".join(line + "\n" for key, line in NEEDED.items() if key not in given)


@pytest.mark.parametrize("text", EXAMPLES[:-1])
def test_every_example_is_right(text: str) -> None:
    assert design.runs(load(completed(text), "example.yaml", registry.catalogue()))


def test_the_wrong_example_is_told_what_the_manual_says() -> None:
    (said,) = (text for language, text in BLOCKS if language == "text")
    with pytest.raises(StudyError) as caught:
        load(EXAMPLES[-1], "wrong.yaml", registry.catalogue())
    assert caught.value.message.splitlines() == said.splitlines()


def test_the_counts_of_cells_are_as_the_manual_says() -> None:
    twelve = next(text for text in EXAMPLES if "payload: [500B, 1MiB, 16MiB]" in text)
    assert len(load(completed(twelve), "x.yaml", registry.catalogue()).cells) == 12
    forty = next(text for text in EXAMPLES if "hypercube" in text)
    assert len(load(completed(forty), "x.yaml", registry.catalogue()).cells) == 40
    three = next(text for text in EXAMPLES if "nic: [null" in text)
    assert len(load(completed(three), "x.yaml", registry.catalogue()).cells) == 3


def test_every_key_has_its_section() -> None:
    assert sorted(set(re.findall(r"^##+ (\w+)$", MANUAL, re.MULTILINE)) & KEYS.keys()) == sorted(KEYS)
    for name in (*Topology.model_fields, *Link.model_fields):
        assert f"{name}:" in MANUAL


@pytest.mark.parametrize("line", [line for _, text in BLOCKS for line in text.splitlines() if line.startswith("twinbed plan ")])
def test_every_command_of_the_manual_runs(
    line: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(REPOSITORY)
    assert main.run(shlex.split(line)[1:]) == 0
    assert capsys.readouterr().out.startswith("quickstart: ")


@pytest.mark.parametrize("path", sorted((REPOSITORY / "studies").glob("*.yaml")), ids=lambda path: path.name)
def test_ready_studies_are_right(path: Path) -> None:
    study = load(path.read_text(), str(path), registry.catalogue())
    assert study.name == path.stem
    assert design.runs(study)
    quick = load(path.read_text(), str(path), registry.catalogue(), profile="quick")
    seconds, whole = (design.expense(design.runs(each)).seconds for each in (quick, study))
    assert seconds < whole and seconds <= 12 * 60, "each has a profile for a first look, as README.md says"


@pytest.mark.parametrize("name", ["transactions-2017", "icnc-2019", "nic-survey"])
def test_a_quick_profile_ends_in_minutes_without_physical_hosts(name: str) -> None:
    text = (REPOSITORY / f"studies/{name}.yaml").read_text()
    study = load(text, f"{name}.yaml", registry.catalogue(), profile="quick")
    assert study.name == f"{name}-quick"
    assert design.expense(design.runs(study)).seconds <= 5 * 60
    assert {choice.kind for choices in study.testbeds.values() for choice in choices} == {"container", "qemu"}
    assert {cell.topology.switch for cell in study.cells} == {"bridge"}
    assert study.tables


@pytest.mark.parametrize("name", ["oversubscription", "anomaly", "tcp-fairness", "udp-capacity", "isolated-contention"])
def test_a_quick_profile_of_many_at_once_needs_only_containers(name: str) -> None:
    study = load((REPOSITORY / f"studies/{name}.yaml").read_text(), f"{name}.yaml", registry.catalogue(), profile="quick")
    assert design.expense(design.runs(study)).seconds <= 3 * 60
    assert {choice.kind for cell in study.cells for choice in [cell.testbed]} == {"container"}
    assert max(cell.topology.pairs for cell in study.cells) > 1 and study.tables


@pytest.mark.parametrize("profile", [None, "quick"])
def test_clients_are_spread_from_one_machine_to_one_each(profile: str | None) -> None:
    path = REPOSITORY / "studies/isolated-contention.yaml"
    study = load(path.read_text(), path.name, registry.catalogue(), profile=profile)
    machines = {cell.topology.client_machines for cell in study.cells}
    assert {1, *(cell.topology.pairs for cell in study.cells)} <= machines


def test_the_quick_comparison_of_loads_has_each_alone_and_none() -> None:
    study = load((REPOSITORY / "studies/background.yaml").read_text(), "background.yaml", registry.catalogue(), profile="quick")
    assert design.expense(design.runs(study)).seconds <= 2 * 60
    loads = []
    for cell in study.cells:
        stress, traffic = (cell.backgrounds[kind].params for kind in ("stress", "traffic"))
        loads.append((stress.cpu, traffic.http, traffic.tcp, traffic.udp))
        assert (cell.testbed.kind, cell.topology.pairs, cell.topology.bystanders) == ("container", 4, 2)
    assert sorted(loads) == [(0, 0, 0, 0), (0, 0, 0, 50_000_000), (0, 0, 1, 0), (0, 2, 0, 0), (2, 0, 0, 0)]


def test_the_printed_fairness_stands_beside_every_cell() -> None:
    study = load((REPOSITORY / "studies/tcp-fairness.yaml").read_text(), "tcp-fairness.yaml", registry.catalogue())
    (table,) = (table for table in study.tables if table.published)
    levels = {"testbed": "virtio", "pairs": 10, "duration": "120s", "congestion": "cubic"}
    assert printed_at(library(), library().table("ONL-2"), levels, table.metric) == "0.999 ± 0.0003"
    assert printed_at(library(), library().table("ONL-2"), levels, "goodput") is None
    printed = itertools.product(*(study.factors[name] for name in table.rows))
    cells = [dict(zip(table.rows, cell, strict=True)) for cell in printed]
    assert len(cells) == 8
    assert all(printed_at(library(), library().table("ONL-2"), cell, table.metric) for cell in cells)


@pytest.mark.parametrize(("name", "printed"), [("transactions-2017", 24 + 24), ("icnc-2019", 9 + 9 + 12 + 9 + 9 + 2 * 9 + 9)])
def test_every_printed_number_of_a_repeated_experiment_has_its_place(name: str, printed: int) -> None:
    """As many as the seeds' tables have means; Table VI is there for each direction."""
    study = load((REPOSITORY / f"studies/{name}.yaml").read_text(), f"{name}.yaml", registry.catalogue())
    found = 0
    for table in study.tables:
        if table.published is not None:
            names = [*table.rows, table.columns]
            fixed = {factor: levels[0] for factor, levels in table.where.items() if len(levels) == 1}
            for levels in itertools.product(*(study.factors[factor] for factor in names)):
                cell = {**fixed, **dict(zip(names, levels, strict=True))}
                found += printed_at(library(), library().table(table.published), cell) is not None
    assert found == printed


def test_the_quickstart_is_what_it_promises() -> None:
    study = load((REPOSITORY / "studies/quickstart.yaml").read_text(), "quickstart.yaml", registry.catalogue())
    assert study.factors == {"testbed": ("container", "e1000", "virtio"), "payload": ("500B", "1MiB")}
    assert (study.reference, study.replicates, study.order) == ("container", 5, "randomized-blocks")
    assert len(design.runs(study)) == 30
    for cell in study.cells:
        assert cell.topology.link.rate == 10**9
        assert list(cell.instruments) == ["packets", "counters"]


@pytest.mark.parametrize("name", main.COMMANDS)
def test_every_command_has_help_that_teaches(name: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main.run([name, "--help"]) == 0
    assert f"Usage: twinbed {name}" in capsys.readouterr().out


def test_pairs_that_ask_a_web_server_go_up_to_80_too() -> None:
    text = (REPOSITORY / "studies/oversubscription.yaml").read_text()
    for profile in ("http", "http-quick"):
        study = load(text, "oversubscription.yaml", registry.catalogue(), profile=profile)
        assert {cell.workload.kind for cell in study.cells} == {"http"}
        assert {1, 16, 80} <= {cell.topology.pairs for cell in study.cells}


def test_sizes_in_megabytes_are_offered_as_powers_of_ten_too() -> None:
    """The paper of 2019 prints 1 MB and 16 MB, and does not say which they are."""
    path = REPOSITORY / "studies/icnc-2019.yaml"
    sizes = {}
    for profile in (None, "decimal"):
        study = load(path.read_text(), path.name, registry.catalogue(), profile=profile)
        sizes[profile] = sorted({cell.workload.params.payload for cell in study.cells})
        assert len(design.runs(study)) == 300
    assert sizes == {None: [500, 2**20, 2**24], "decimal": [500, 10**6, 16 * 10**6]}
