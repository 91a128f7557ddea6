"""Profiles: a study with named changes, each checked whenever the file is read."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import pytest

from twinbed.cli import main
from twinbed.study.catalogue import Catalogue
from twinbed.study.document import StudyError
from twinbed.study.loading import load
from twinbed.study.study import seed_of

STUDY = """
study: survey
testbeds:
  hw: {driver: remote, hosts: {client: c1, server: s1}}
  plain: {driver: container}
  vm: {driver: qemu, memory: 1GiB}
reference: hw
topology: {link: {rate: 1gbit}}
workload: {kind: http, duration: 90s}
factors:
  testbed: [hw, plain, vm]
  payload: [500B, 1MiB, 16MiB]
instruments: [packets]
replicates: 10
profiles:
  quick:
    reference: plain
    factors.testbed: [plain, vm]
    factors.payload: [500B, 1MiB]
    testbeds.vm.memory: 192MiB
    topology.link.rate: null
    instruments.packets.snaplen: 64
    workload.duration: 1s
    replicates: 2
  slow: {workload: {kind: http, duration: 5m}}
"""


def test_a_profile_changes_what_it_names_and_nothing_else(catalogue: Catalogue) -> None:
    study = load(STUDY, "s.yaml", catalogue, profile="quick")
    assert (study.name, study.profile, study.replicates, study.reference) == ("survey-quick", "quick", 2, "plain")
    assert study.factors == {"testbed": ("plain", "vm"), "payload": ("500B", "1MiB")}
    assert set(study.testbeds) == {"plain", "vm"}, "hosts that the machine does not have may stay in the file"
    last = study.cells[-1]
    assert (last.testbed.params.memory, last.topology.link.rate, last.workload.params.duration) == (192 * 2**20, None, 1.0)
    assert last.instruments["packets"].params.snaplen == 64
    assert study.to_json()["profile"] == "quick"


def test_without_one_a_study_is_as_it_stands(catalogue: Catalogue) -> None:
    study = load(STUDY, "s.yaml", catalogue)
    assert (study.name, study.profile, study.replicates, study.reference) == ("survey", None, 10, "hw")
    assert len(study.cells) == 9


def test_the_order_does_not_hang_on_the_profile(catalogue: Catalogue) -> None:
    assert load(STUDY, "s.yaml", catalogue, profile="quick").seed == seed_of("survey")


def test_a_mapping_takes_the_place_of_what_stood_there(catalogue: Catalogue) -> None:
    given = STUDY.replace("duration: 90s}", "duration: 90s, threads: 10}")
    assert load(given, "s.yaml", catalogue).cells[0].workload.params.threads == 10
    assert load(given, "s.yaml", catalogue, profile="slow").cells[0].workload.params.threads == 1


def test_an_override_wins_over_a_profile(catalogue: Catalogue) -> None:
    study = load(STUDY, "s.yaml", catalogue, ["replicates=3"], profile="quick")
    assert (study.replicates, study.cells[0].workload.params.duration) == (3, 1.0)


def test_a_profile_that_there_is_not(catalogue: Catalogue) -> None:
    with pytest.raises(StudyError) as caught:
        load(STUDY, "s.yaml", catalogue, profile="quik")
    assert caught.value.message == (
        "--profile: 'quik' is not a profile of this study; allowed: quick, slow; did you mean 'quick'?"
    )
    with pytest.raises(StudyError, match="it has none, so leave --profile out"):
        load(STUDY.partition("profiles:")[0], "s.yaml", catalogue, profile="quick")


def test_what_is_wrong_is_told_alike_whichever_profile_is_asked_for(catalogue: Catalogue) -> None:
    wrong = STUDY.replace("    reference: plain\n", "").replace("5m", "5 minutes")
    said = []
    for profile in (None, "quick", "slow"):
        with pytest.raises(StudyError) as caught:
            load(wrong, "s.yaml", catalogue, profile=profile)
        said.append([str(problem) for problem in caught.value.problems])
    assert said[0] == said[1] == said[2]
    assert [line.partition(";")[0] for line in said[0]] == [
        "s.yaml:7:12: reference: 'hw' is not a level of the factor testbed, with the profile 'quick'",
        "s.yaml:24:43: workload.duration: '5 minutes' has an unknown unit 'minutes'",
    ]


def test_what_an_override_does_is_not_the_other_profiles_business(catalogue: Catalogue) -> None:
    excluding = STUDY.replace("replicates: 10", "exclude: [{payload: 500B, testbed: vm}]\nreplicates: 10")
    assert len(load(excluding, "s.yaml", catalogue, ["factors.payload=[500B]"]).cells) == 2


def test_profiles_are_not_changed_from_the_command_line(catalogue: Catalogue) -> None:
    with pytest.raises(StudyError, match=r"profiles\.quick\.replicates: is not a key of a study"):
        load(STUDY, "s.yaml", catalogue, ["profiles.quick.replicates=3"])


TABLES = """
tables:
  - {title: small, metric: requests_per_second, rows: [testbed], columns: payload, where: {payload: [500B, 1MiB]}}
  - {title: large, metric: requests_per_second, rows: [testbed], columns: payload, where: {payload: 16MiB}}
"""


def test_a_table_of_what_a_profile_leaves_out_is_left_out(catalogue: Catalogue) -> None:
    text = STUDY.replace("\nprofiles:", TABLES + "profiles:")
    assert [table.title for table in load(text, "s.yaml", catalogue).tables] == ["small", "large"]
    (table,) = load(text, "s.yaml", catalogue, profile="quick").tables
    assert (table.title, table.where) == ("small", {"payload": ["500B", "1MiB"]})
    with pytest.raises(StudyError, match="'17MiB' is not a level of payload"):
        load(text.replace("payload: 16MiB}}", "payload: 17MiB}}"), "s.yaml", catalogue, profile="quick")


def test_tables_name_metrics_units_and_printed_tables_that_there_are(catalogue: Catalogue) -> None:
    def metrics(workload: str, instruments: Sequence[str]) -> dict[str, str]:
        return {"requests_per_second": "1/s", "jitter": "s"} if list(instruments) == ["packets"] else {}

    known = replace(catalogue, metrics=metrics, printed=("ICNC-I", "ICNC-II"))
    table = "{title: t, metric: METRIC, rows: [payload], unit: ms, published: ICNC-I}"
    text = STUDY.replace("\nprofiles:", f"\ntables: [{table}]\nprofiles:")
    assert load(text.replace("METRIC", "jitter"), "s.yaml", known).tables[0].unit == "ms"
    for metric, said in (
        ("request_per_second", "did you mean 'requests_per_second'"),
        ("requests_per_second", "requests_per_second is in 1/s and cannot be shown in ms"),
    ):
        with pytest.raises(StudyError, match=said):
            load(text.replace("METRIC", metric), "s.yaml", known)
    with pytest.raises(StudyError, match="'ICNC-1' is not a printed table; allowed: ICNC-I, ICNC-II"):
        load(text.replace("METRIC", "jitter").replace("ICNC-I}", "ICNC-1}"), "s.yaml", known)


SMALL = """
study: small
testbeds: {a: {driver: fake}, b: {driver: fake, ratio: 1.2}}
workload: {kind: planted}
replicates: 3
tables: [{title: Rates, metric: requests_per_second, rows: [testbed], columns: workload.rate}]
factors: {workload.rate: [1000, 2000]}
profiles: {quick: {replicates: 1, factors.workload.rate: [1000]}}
"""


def test_results_are_in_a_folder_of_the_profile(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("small.yaml").write_text(SMALL)
    assert main.run(["plan", "small.yaml", "--profile", "quick"]) == 0
    assert capsys.readouterr().out.startswith("small-quick: 2 cells x 1 replicate = 2 runs")
    assert main.run(["run", "small.yaml", "--profile", "quick"]) == 0
    results = tmp_path / "results" / "small-quick"
    assert json.loads((results / "study.json").read_text())["profile"] == "quick"
    page = (results / "report.html").read_text()
    assert "twinbed run small.yaml --profile quick" in page
    assert '<section id="tables"><h2>Tables</h2><h3>Rates</h3>' in page
    assert main.run(["check", "small.yaml", "--profile", "quik"]) == 2


def test_the_seed_is_of_the_sha_256_of_the_name() -> None:
    assert seed_of("survey") == int(hashlib.sha256(b"survey").hexdigest()[:8], 16)


def test_a_name_that_is_not_utf_8_has_a_seed() -> None:
    assert seed_of("\udcff") != seed_of("\udcfe")
