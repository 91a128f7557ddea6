"""`twinbed import` as a whole: real files of iperf3's, hostile folders, and what its output and exit codes say."""

from __future__ import annotations

import gzip
import json
import math
import os
import shutil
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from scipy import stats
from tests.iperf3_corpus import RATIOS, Corpus, Reports, real_reports, write

from twinbed.cli.main import run
from twinbed.imports import scan
from twinbed.imports.layout import walk
from twinbed.imports.text import source

PATTERN = "{testbed}_{_}_{direction}_parallel-{parallel:int}_{replicate:int}.txt"


@pytest.fixture(scope="module")
def reports() -> Reports:
    return real_reports([1, 3])


@pytest.fixture(scope="module")
def corpus(reports: Reports, tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Corpus]:
    """2 directions, 2 numbers of streams, 3 testbeds, 6 replicates; 3 cut, some in logs, 5 there twice."""
    folder = tmp_path_factory.mktemp("iperf") / "in"
    return folder, write(folder, reports, replicates=6, every=(23, 10, 13))


@pytest.fixture(scope="module")
def results(corpus: tuple[Path, Corpus], tmp_path_factory: pytest.TempPathFactory) -> Path:
    out = tmp_path_factory.mktemp("results") / "iperf"
    passport = out.parent / "passport.yaml"
    passport.write_text("host: {measured: '2019-03-01', nic: mlx5, kernel: 4.9.0}\nnat: {kernel: 6.1.0}\noverlay: {}\n")
    # Some are refused.
    assert run(["import", str(corpus[0]), "-o", str(out), "--pattern", PATTERN, "--passport", str(passport)]) == 1
    return out


def output(capsys: pytest.CaptureFixture[str], *arguments: str | Path, code: int = 0) -> str:
    capsys.readouterr()
    assert run([str(each) for each in arguments]) == code
    return capsys.readouterr().out


def data(capsys: pytest.CaptureFixture[str], *arguments: str | Path, code: int = 0) -> Any:
    return json.loads(output(capsys, *arguments, "--format", "json", code=code))


def said(capsys: pytest.CaptureFixture[str], *arguments: str | Path, code: int = 2) -> str:
    """The error."""
    capsys.readouterr()
    assert run([str(each) for each in arguments]) == code
    return capsys.readouterr().err


def test_ratios_and_intervals_are_those_of_the_raw_files(
    corpus: tuple[Path, Corpus], results: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """By numpy and scipy from the rates that were written: Welch's interval of the difference of logarithms at 90 %."""
    truth = corpus[1]
    found = data(capsys, "compare", results, "--metric", "goodput", code=4)["comparisons"]
    assert len(found) == 2 * 2 * (len(RATIOS) - 1)
    cautions = {
        (each["kind"], each["subject"]): each["detail"] for each in data(capsys, "compare", results, code=4)["cautions"]
    }
    assert cautions["residue", "nat"] == "described: kernel is 4.9.0 on host, 6.1.0 on nat"
    for row in found:
        cell = (row["factor:direction"], int(row["factor:parallel"]))
        mine, host = (np.log(truth.rates[name, *cell]) for name in (row["testbed"], "host"))
        interval = stats.ttest_ind(mine, host, equal_var=False).confidence_interval(0.90)
        assert row["n"] == len(mine)
        assert row["ratio"] == pytest.approx(math.exp(mine.mean() - host.mean()), rel=2e-3)
        assert row["ratio_low"] == pytest.approx(math.exp(interval.low), rel=2e-3)
        assert row["ratio_high"] == pytest.approx(math.exp(interval.high), rel=2e-3)


def test_what_became_of_each_file_is_said(
    corpus: tuple[Path, Corpus], results: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    folder, truth = corpus
    found = data(capsys, "import", folder, "--dry-run", "--pattern", PATTERN, code=1)
    what = {each["path"]: each["what"] for each in found["outcomes"]}
    assert {path for path, state in what.items() if state == "refused"} == set(truth.cut)
    assert sum(state == "copy" for state in what.values()) == len(truth.copies)
    assert found["reference"] == "host"
    assert found["factors"] == {"direction": ["receive", "send"], "parallel": [1, 3]}
    assert (found["runs"], found["failed_runs"], found["gaps"]) == (truth.files, len(truth.cut), [])
    assert found["formats"]["iperf3-json"] == truth.files + len(truth.copies) - len(truth.cut)
    again = output(capsys, "import", folder, "-o", results, "--pattern", PATTERN, code=1)
    assert f"0 runs added to {results}, {len(truth.cut)} of them failed, {truth.files} were imported before" in again
    rows = output(capsys, "import", folder, "--dry-run", "--pattern", PATTERN, "--format", "csv", code=1).splitlines()
    assert rows[0].startswith(
        "path,what,format,measurements,testbed,replicate,host,runs,reason,factor:direction,factor:parallel"
    )
    assert len(rows) == 1 + truth.files + len(truth.copies)


def test_every_command_reads_what_was_imported(results: Path, capsys: pytest.CaptureFixture[str]) -> None:
    page = output(capsys, "report", results, "-o", "-")
    for text in (
        "Measured elsewhere and imported",
        "From the files and their manifest",
        "iperf3-json",
        "described: measured",
        "2019-03-01",
    ):
        assert text in page
    assert "twinbed import" in page
    assert "twinbed run " not in page
    assert "\\toprule" in output(capsys, "report", results, "--latex", "-o", "-")
    assert "direction:parallel" in output(capsys, "analyse", "anova", results, "--response", "goodput")
    assert "Observations" in output(capsys, "analyse", "regression", results, "--formula", "goodput ~ testbed")


def test_without_a_pattern_one_is_proposed_that_works(corpus: tuple[Path, Corpus], capsys: pytest.CaptureFixture[str]) -> None:
    text = said(capsys, "import", corpus[0])
    assert "--pattern '{testbed}_srv_{direction}_parallel-{parallel:int}_{replicate:int}.txt'" in text
    assert "host_srv_" in text
    text = said(capsys, "import", corpus[0], "--dry-run", "--pattern", "{testbed}-{replicate:int}.log")
    assert "none of the" in text and "--pattern '{testbed}_srv_" in text


def test_a_manifest_says_what_paths_do_not(
    corpus: tuple[Path, Corpus], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    folder = tmp_path / "in"
    folder.mkdir()
    for number, name in enumerate(("host_srv_send_parallel-1_2.txt", "nat_srv_send_parallel-1_2.txt")):
        shutil.copy(corpus[0] / name, folder / f"{number}.json")
    (folder / "files.csv").write_text("path,testbed,replicate,streams\n0.json,physical,1,1\n1.json,kvm,1,1\n")
    found = data(capsys, "import", folder, "-o", tmp_path / "a", "--manifest", folder / "files.csv")
    assert (found["testbeds"], found["runs_added"], found["reference"]) == (["kvm", "physical"], 2, "physical")
    (folder / "files.csv").write_text("path,testbed\n0.json,physical\n2.json,kvm\n")
    found = data(capsys, "import", folder, "-o", tmp_path / "b", "--manifest", folder / "files.csv", code=1)
    assert [each["reason"] for each in found["not_read"]] == ["is missing"]
    (folder / "m.yaml").write_text(
        "reference: kvm\nfiles:\n- {pattern: '{n:int}.json', testbed: kvm, format: iperf3-json}\n"
        "testbeds: {kvm: {facts: {kernel: 4.9.0}, link: {rate: 1kbit}}}\n"
    )
    data(capsys, "import", folder, "-o", tmp_path / "c", "--manifest", folder / "m.yaml")
    page = output(capsys, "report", tmp_path / "c", "-o", "-")
    assert "The manifest" in page
    assert "4.9.0" in page and "goodput is above the link rate that was given" in page.lower()


def test_hostile_files_are_refused_with_the_reason_and_the_rest_is_read(
    corpus: tuple[Path, Corpus], tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(source, "MOST_BYTES", 64 * 2**20)
    monkeypatch.setattr(source, "BOMB_BYTES", 64 * 2**20)
    folder = tmp_path / "in"
    folder.mkdir()
    good = (corpus[0] / "host_srv_send_parallel-1_2.txt").read_bytes()
    (folder / "host_1.txt").write_bytes(good)
    (folder / "host_2.txt").write_bytes(gzip.compress(good.replace(b"127.0.0.1", b"127.0.0.2")))
    zeros = gzip.compress(bytes(2**20))
    (folder / "host_3.txt").write_bytes(zeros * 128)
    (folder / "host_4.txt").write_bytes(b"{" * 2**20)
    os.mkfifo(folder / "host_5.txt")
    (folder / "host_6.txt").symlink_to("/etc/passwd")
    (folder / "host_7.txt").write_bytes(gzip.compress(good[:2000]) + zeros * 128)
    (folder / "host_\x1b[31m_8.txt").write_bytes(good)
    (folder / os.fsdecode(b"host_\xff_9.txt")).write_bytes(good)
    (folder / "loop").symlink_to(folder)
    text = output(capsys, "import", folder, "-o", tmp_path / "out", "--pattern", "{testbed}_{replicate:int}.txt", code=1)
    assert "\x1b" not in text
    for line in (
        "host_3.txt: has no known format",
        "host_4.txt: has no known format",
        "host_5.txt is not a regular file",
        "host_6.txt is a link that leads out of the folder",
        "host_7.txt: is compressed ",
        "more than any measurement: 64 MiB come out of 0.1",
        r"host_\x1b[31m_8.txt: {testbed} would be 'host_\x1b[31m', which is not plain text",
        r"host_\xff_9.txt: {testbed} would be 'host_\xff', which is not plain text",
        "loop is a link to a folder",
        "2 files read, 0 partly read, 3 refused, 0 copies of others, 5 ignored",
        "5 runs added",
    ):
        assert line in text, text


def test_a_regular_expression_without_end_and_too_many_files_are_refused(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("twinbed.imports.layout.pattern.REGEX_CPU_SECONDS", 0.3)
    (tmp_path / f"{'a' * 100}.txt").touch()
    assert "in more and more ways" in said(capsys, "import", tmp_path, "--dry-run", "--regex", r"(?P<testbed>(\w+\s?)+)!")
    (tmp_path / "b").touch()
    assert "more than 1 files and folders" in said(capsys, "import", tmp_path, "--dry-run", "--most-files", "1")
    assert walk.MOST_FILES == 100_000


def test_names_with_more_words_than_the_pattern_are_read_with_the_testbed_whole(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """As containers' networks are named in public results: the peer and the direction are the last two words."""
    report = next((Path(__file__).parents[2] / "golden/formats/iperf3-json/tcp").glob("input.*")).read_text()
    for index, testbed in enumerate(("docker_nat", "docker_weave", "host_none")):
        for way in ("recv", "send"):
            name = f"{testbed}_host_{way}_parallel-01_01.txt"
            (tmp_path / name).write_text(report.replace('"cookie":\t"', f'"cookie":\t"{index}{way}'))
    pattern = "{testbed}_{peer}_{direction}_parallel-{parallel:int}_{replicate:int}.txt"
    found = data(capsys, "import", tmp_path, "--dry-run", "--pattern", pattern)
    assert (found["testbeds"], found["reference"]) == (["docker_nat", "docker_weave", "host_none"], "host_none")
    assert found["factors"] == {"peer": ["host"], "direction": ["recv", "send"], "parallel": [1]}
    assert found["gaps"] == []
    other = "testbed docker_nat (or docker), peer host (or nat), direction recv (or host_recv)"
    assert found["two_readings"][0] == f"{other}: docker_nat_host_recv_parallel-01_01.txt"
    assert "paths that the pattern matches in two ways" in output(capsys, "import", tmp_path, "--dry-run", "--pattern", pattern)


def test_a_level_that_the_file_contradicts_is_doubted(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """One stream and TCP, as the reports themselves say."""
    report = next((Path(__file__).parents[2] / "golden/formats/iperf3-json/tcp").glob("input.*")).read_text()
    for name in ("host_tcp_parallel-1", "host_tcp_parallel-2", "host_udp_parallel-1", "host_web_parallel-1"):
        (tmp_path / f"{name}_1.txt").write_text(report.replace('"cookie":\t"', f'"cookie":\t"{name}'))
    found = data(
        capsys, "import", tmp_path, "--dry-run", "--pattern", "{testbed}_{proto}_parallel-{parallel:int}_{replicate:int}.txt"
    )
    assert sorted(found["doubts"]) == [
        "host_tcp_parallel-2_1.txt: its path says parallel 2, the file itself 1",
        "host_udp_parallel-1_1.txt: its path says proto udp, the file itself tcp",
    ]


def test_what_is_misspelt_is_named(corpus: tuple[Path, Corpus], tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    asked = ["import", corpus[0], "-o", tmp_path / "x", "--pattern", PATTERN]
    assert "did you mean 'overlay'" in said(capsys, *asked, "--reference", "overlaid")
    assert "exclude each other" in said(capsys, *asked, "--layout", "que")
    assert "--margin" in said(capsys, *asked, "--margin", "200%")
    assert "-o RESULTS is missing" in said(capsys, "import", corpus[0], "--pattern", PATTERN)
    assert not (tmp_path / "x").exists()
    (tmp_path / "empty").mkdir()
    assert "holds no files" in said(capsys, "import", tmp_path / "empty", "--dry-run", "--pattern", PATTERN)


def test_the_harness_layout(tmp_path: Path, capsys: pytest.CaptureFixture[str], corpus: tuple[Path, Corpus]) -> None:
    """Its tree, with a report of iperf3's where ab's would be."""
    for name in ("physical-1g-on-1-http", "kvm-e1000-1-on-1000-1-1-http"):
        for iteration, testbed in ((1, "host"), (2, "nat")):
            below = tmp_path / "in" / name / str(iteration) / ("que31" if name.startswith("kvm") else "") / "client"
            below.mkdir(parents=True)
            text = (corpus[0] / f"{testbed}_srv_send_parallel-1_2.txt").read_text()
            (below / "ab.out").write_text(text.replace("127.0.0.1", name))
    found = data(capsys, "import", tmp_path / "in", "-o", tmp_path / "out", "--layout", "que")
    assert (found["testbeds"], found["runs"], found["gaps"]) == (["e1000", "physical"], 4, [])
    assert found["reference"] == "physical"


def test_many_files_are_read_by_several_processes(
    corpus: tuple[Path, Corpus], capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    asked = ("import", corpus[0], "--dry-run", "--pattern", PATTERN)
    alone = data(capsys, *asked, code=1)
    monkeypatch.setattr(scan, "ALONE_BYTES", 0)
    assert data(capsys, *asked, code=1) == alone


def test_lines_of_a_log_beside_a_document_cost_nothing(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    report = Path(__file__).parents[2] / "golden" / "formats" / "iperf3-json" / "tcp" / "input.json"
    folder = tmp_path / "in"
    folder.mkdir()
    for replicate in (1, 2):
        # The number of the replicate makes them different files.
        text = f"+ iperf3 -J # {replicate}\nwarning: slow\n{report.read_text()}\ndone\n"
        (folder / f"host_{replicate}.log").write_text(text)
    found = data(capsys, "import", folder, "-o", tmp_path / "out", "--pattern", "{testbed}_{replicate:int}.log")
    assert (found["files"]["read"], found["files"]["partly read"]) == (2, 0)
    csv = output(capsys, "import", folder, "--dry-run", "--pattern", "{testbed}_{replicate:int}.log", "--format", "csv")
    assert "is not an iperf3 document: '+ iperf3 -J # 1' (and 1 more)" in csv, "and yet it is said"
    torn = report.read_text()
    (folder / "host_3.log").write_text(torn[len(torn) // 2 :] + torn)
    found = data(capsys, "import", folder, "--dry-run", "--pattern", "{testbed}_{replicate:int}.log", code=1)
    assert found["files"]["partly read"] == 1, "what is left of a document is no line of a log"


def test_what_a_pattern_leaves_out_is_summed_up_by_shape(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    report = (Path(__file__).parents[2] / "golden" / "formats" / "iperf3-json" / "tcp" / "input.json").read_text()
    folder = tmp_path / "in"
    folder.mkdir()
    (folder / "host_1.txt").write_text(report)
    for size in (64, 1400):
        for run_ in range(1, 8):
            (folder / f"docker_bridge_c2c-udp_pktsize-{size}_{run_}.txt").write_text("nothing")
    (folder / "notes.txt").write_text("of mine")
    pattern = "host_{replicate:int}.txt"
    text = output(capsys, "import", folder, "--dry-run", "--testbed", "host", "--pattern", pattern)
    assert (
        "ignored (15):\n"
        f"  14 files like docker_bridge_c2c-udp_pktsize-{{int}}_{{int}}.txt: does not match {pattern}\n"
        f"  notes.txt: does not match {pattern}\n"
    ) in text
    listed = data(capsys, "import", folder, "--dry-run", "--testbed", "host", "--pattern", pattern)
    assert len(listed["outcomes"]) == 16, "all are in the data"


def test_a_testbed_that_shares_no_cell_with_the_reference_is_said_at_once(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    report = (Path(__file__).parents[2] / "golden" / "formats" / "iperf3-json" / "tcp" / "input.json").read_text()
    folder = tmp_path / "in"
    folder.mkdir()
    names = ["host_send_1", "host_recv_2", "nat_send_1", "overlay_send_8", "overlay_recv_16", "graft_send_2"]
    for index, name in enumerate(names):
        (folder / f"{name}.txt").write_text(report.replace("\n", "\n" + " " * index))
    asked = ("import", folder, "-o", tmp_path / "out", "--pattern", "{testbed}_{way}_{size:int}.txt")
    text = output(capsys, *asked)
    assert (
        "testbeds that share no cell with the reference host, so that they cannot be compared with it (2):\n"
        "  graft: they share no combination of levels\n"
        "  overlay: size is 8, 16 here, 1, 2 there\n"
    ) in text
    assert data(capsys, *asked)["apart"] == ["graft", "overlay"]
