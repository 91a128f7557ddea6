"""Results folders that imports make: what is in them, that importing again adds what is new alone, and what is refused."""

from __future__ import annotations

import hashlib
import json
import os
from pathlib import Path
from typing import Any

import pytest

from line_format import FORMATS
from twinbed.imports.build import Written, before, build
from twinbed.imports.layout.manifest import Described, LinkFacts
from twinbed.imports.layout.pattern import compile_pattern
from twinbed.imports.layout.run_key import ImportRefused
from twinbed.imports.study import ImportSettings, artifact
from twinbed.imports.survey import Request, survey
from twinbed.imports.workload import Imported
from twinbed.model.error import TwinbedError
from twinbed.results.extract import extract
from twinbed.results.store import Store

PATTERN = "{testbed}_{n:int}_{replicate:int}.txt"


def imported(
    folder: Path, results: Path, pattern: str = PATTERN, settings: ImportSettings | None = None, **options: Any
) -> Written:
    _, there = before(results)
    have = {each.id: each.replicate for each in there}
    compiled = compile_pattern(pattern)
    found = survey(
        Request(folder, lambda _: compiled, without=[results], have=have, number=options.pop("number", False)), FORMATS
    )
    return build(folder, results, found.plan.runs, settings or ImportSettings("mine", command="twinbed import"), {}, **options)


def metrics(results: Path) -> list[tuple[str, float | None]]:
    workload = Imported(lambda: FORMATS)
    table = extract(results, {workload.name: workload}, {}).table("metrics")
    return sorted(zip(table["host"].to_pylist(), table["value"].to_pylist(), strict=True), key=str)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    found = tmp_path / "in"
    found.mkdir()
    for testbed, rate in (("virtio", 90), ("physical", 100)):
        for replicate in (1, 2, 3):
            (found / f"{testbed}_10_{replicate}.txt").write_text(
                f"rate {rate + replicate} at={1000 * replicate + rate} kernel=6.{replicate}\n"
            )
    return found


def test_files_are_copied_hashed_and_read(folder: Path, tmp_path: Path) -> None:
    results = tmp_path / "out"
    described = {"physical": Described(facts={"nic": {"driver": "mlx5"}}, link=LinkFacts(rate=10**9, mtu=9000))}
    assert imported(
        folder, results, settings=ImportSettings("mine", described=described, command="twinbed import x")
    ) == Written(6, 0, 0, ())
    store = Store.open(results)
    assert (store.outline.name, store.outline.testbeds, store.outline.reference) == ("mine", ("physical", "virtio"), "physical")
    assert store.outline.data["reference_reason"] == "named physical"
    assert store.outline.data["factors"] == {"testbed": ["physical", "virtio"], "n": [10]}
    assert store.outline.source == "twinbed import x"
    assert not store.missing()
    # In the order in which they say that they were measured; a block has one of each cell.
    order = [(record.settings["testbed"]["name"], record.replicate, record.block) for record in store.records]
    assert order == [(testbed, number, number) for number in range(3) for testbed in ("virtio", "physical")]
    for record in store.records:
        (file,) = record.artifacts
        content = (results / "runs" / record.id / file["path"]).read_bytes()
        assert hashlib.sha256(content).hexdigest() == file["sha256"]
        assert content == (folder / file["source"]).read_bytes()
    assert metrics(results) == [("", float(rate)) for rate in (101, 102, 103, 91, 92, 93)]
    physical = next(record for record in store.records if record.settings["testbed"]["name"] == "physical")
    assert physical.settings["topology"]["link"]["rate"] == 10**9
    passport = json.loads((results / "runs" / physical.id / "passport.json").read_text())
    assert passport == {"imported": {"kernel": "6.1"}, "described": {"nic": {"driver": "mlx5"}}}


def test_several_processes_write_what_one_does(folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    imported(folder, tmp_path / "alone")
    monkeypatch.setattr("twinbed.imports.build.ALONE_RUNS", 2)
    monkeypatch.setattr("twinbed.imports.build.CHUNK", 1)
    imported(folder, tmp_path / "together")
    alone, together = (
        {path.relative_to(results): path.read_bytes() for path in results.rglob("*") if path.is_file()}
        for results in (tmp_path / "alone", tmp_path / "together")
    )
    assert alone == together


def test_the_same_again_does_nothing_and_new_files_are_added(folder: Path, tmp_path: Path) -> None:
    results = tmp_path / "out"
    imported(folder, results)
    was = {path: path.stat().st_mtime_ns for path in results.rglob("*") if path.name != ".lock"}
    assert imported(folder, results) == Written(0, 6, 0, ())
    assert was == {path: path.stat().st_mtime_ns for path in results.rglob("*") if path.name != ".lock"}
    (folder / "virtio_2_1.txt").write_text("rate 7\n")
    assert imported(folder, results) == Written(1, 6, 0, ())
    store = Store.open(results)
    assert (len(store.records), len(store.planned)) == (7, 7)
    assert [record.position for record in store.records] == list(range(7))
    assert store.outline.data["factors"]["n"] == [2, 10]
    (folder / "virtio_10_1.txt").write_text("rate 8\n")
    written = imported(folder, results)
    assert (written.added, written.present) == (0, 7)
    assert "was imported from other files" in written.conflicts[0]
    assert ("", 8.0) not in metrics(results)


def test_what_contradicts_itself_is_kept_and_said(tmp_path: Path) -> None:
    folder = tmp_path / "in"
    folder.mkdir()
    for name, text in (("a_1_1.txt", "rate 1 kernel=5"), ("a_1_1.log", "load 1 kernel=6"), ("a_2_1.txt", "rate 1 kernel=5")):
        (folder / name).write_text(text)
    imported(folder, tmp_path / "out", "{testbed}_{n:int}_{replicate:int}.{_}")
    one, other = sorted(Store.open(tmp_path / "out").records, key=lambda record: str(record.levels["n"]))
    passport = json.loads((tmp_path / "out" / "runs" / one.id / "passport.json").read_text())
    assert passport == {"imported": {"kernel": "6", "kernel (line)": "5"}}
    assert [caution.kind.name for caution in (*one.cautions, *other.cautions)] == ["CONTRADICTED"] * 2


def test_links_share_the_bytes_and_copies_do_not(folder: Path, tmp_path: Path) -> None:
    imported(folder, tmp_path / "linked", link=True)
    imported(folder, tmp_path / "copied")
    counts = {
        name: {path.stat().st_nlink for path in (tmp_path / name).glob("runs/*/artifacts/*/*")} for name in ("linked", "copied")
    }
    assert counts == {"linked": {2}, "copied": {1}}


def test_failed_runs_are_kept_with_their_reason(folder: Path, tmp_path: Path) -> None:
    (folder / "virtio_10_4.txt").write_text("rate broken\n")
    imported(folder, tmp_path / "out")
    (failed,) = [record for record in Store.open(tmp_path / "out").records if record.reason]
    assert (failed.failed_phase, failed.reason, failed.replicate) == ("import", "line 1: is broken", 3)
    assert len(metrics(tmp_path / "out")) == 6


def test_files_of_a_run_lie_by_their_hosts(tmp_path: Path) -> None:
    folder = tmp_path / "in"
    for host, text in (("client", "load 1"), ("server", "load 2")):
        (folder / host).mkdir(parents=True)
        (folder / host / "kvm_1_1.txt").write_text(text)
    imported(folder, tmp_path / "out", "{host}/" + PATTERN)
    assert metrics(tmp_path / "out") == [("client", 1.0), ("server", 2.0)]
    assert artifact("../../etc", "x/\x1b[1m\n.passwd", ()) == "artifacts/_.._etc/_[1m_.passwd".replace("[", "_")
    assert artifact("", "a/b.txt", ["artifacts/imported/b.txt"]) == "artifacts/imported/2-b.txt"
    assert artifact("", "\udcff", ()) == "artifacts/imported/_"


def test_what_is_no_import_is_not_written_to(folder: Path, tmp_path: Path) -> None:
    (tmp_path / "study").mkdir()
    (tmp_path / "study" / "study.json").write_text('{"study": "x"}')
    with pytest.raises(ImportRefused, match="has a study that twinbed ran itself"):
        imported(folder, tmp_path / "study")
    with pytest.raises(ImportRefused, match="is not empty and has no results"):
        before(folder)


def test_runs_without_the_same_factors_are_refused(folder: Path, tmp_path: Path) -> None:
    imported(folder, tmp_path / "out")
    with pytest.raises(ImportRefused, match="some lack n"):
        imported(folder, tmp_path / "out", "{testbed}_{_}_{replicate:int}.txt")


def test_a_file_that_changes_meanwhile_is_refused_and_nothing_is_left(folder: Path, tmp_path: Path) -> None:
    compiled = compile_pattern(PATTERN)
    found = survey(Request(folder, lambda _: compiled), FORMATS)
    (folder / "virtio_10_2.txt").write_text("rate 1000000\n")
    with pytest.raises(ImportRefused, match=r"virtio_10_2\.txt changed while it was imported"):
        build(folder, tmp_path / "out", found.plan.runs, ImportSettings("mine"), {})
    assert not (tmp_path / "out").exists()
    (folder / "virtio_10_2.txt").unlink()
    os.mkfifo(folder / "virtio_10_2.txt")
    with pytest.raises(TwinbedError, match="is not a regular file"):
        build(folder, tmp_path / "out", found.plan.runs, ImportSettings("mine"), {})
