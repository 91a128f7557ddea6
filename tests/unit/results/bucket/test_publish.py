"""Publishing and reading, in a folder that is used as a bucket: what servers do to it is in test_s3.py."""

from __future__ import annotations

import json
import math
import shutil
import tarfile
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from synthetic_results import planted_response, write_run, write_study
from twinbed.analyses.compare.method import analysis as compare
from twinbed.model.record import Record
from twinbed.results.bucket.address import Address, address_of
from twinbed.results.bucket.objects import BucketError, Objects
from twinbed.results.bucket.publish import Published, Publisher, PublishRefused
from twinbed.results.bucket.snapshot import latest
from twinbed.results.extract import extract
from twinbed.results.store import Store
from twinbed.workloads.planted import planted

RATIOS = {"physical": 1.0, "slow": 0.5}


@pytest.fixture
def address(tmp_path: Path) -> Address:
    found = address_of(f"file://{tmp_path / 'bucket'}")
    assert found
    return found


def study(folder: Path, replicates: int = 5, **rest: Any) -> Path:
    return write_study(folder, list(RATIOS), {}, replicates, planted_response(RATIOS, 0.01, seed=3), **rest)


def opened(where: Path) -> Store:
    return extract(where, {"planted": planted}, {})


def publish(folder: Path, address: Address, *, raw: bool = False) -> Published:
    return Publisher(opened(folder), address, "0", raw=raw).publish()


def sorted_table(store: Store, name: str) -> pa.Table:
    table = store.table(name)
    return table.sort_by([(column, "ascending") for column in table.column_names])


def says_the_same(address: Address, folder: Path) -> None:
    here, there = opened(folder), opened(address)
    assert there.records == here.records
    assert (there.planned, there.digests, there.link_checks) == (here.planned, here.digests, here.link_checks)
    assert there.outline.source == here.outline.source
    for name in here.names():
        assert sorted_table(there, name).equals(sorted_table(here, name)), name
    assert compare.run(there).comparisons == compare.run(here).comparisons


def test_every_object_counts(tmp_path: Path, address: Address) -> None:
    """Whichever object is missing, cut or changed in one bit: reading all there is ends in an error that names it, unless it is
    a raw artifact, which is not read."""
    folder = study(tmp_path / "study", 3)
    publish(folder, address)

    def read() -> None:
        store = opened(address)
        for name in store.names():
            store.table(name)

    objects = sorted((tmp_path / "bucket" / "objects").iterdir())
    assert len(objects) == 9, "study.json, study.yaml, planned runs, catalogue, five tables, of which two are alike"
    for file in objects:
        whole = file.read_bytes()
        for harm in (whole[: len(whole) // 2], whole[:-1] + bytes([whole[-1] ^ 1]), None):
            file.unlink()
            if harm is not None:
                file.write_bytes(harm)
            with pytest.raises(BucketError, match=file.name):
                read()
            file.write_bytes(whole)
    read()


@pytest.mark.parametrize("content", [b"", b'{"format": 1', b"[]", b'{"format": 2}', b'{"format": 1, "files": {}}'])
def test_a_snapshot_that_is_none(tmp_path: Path, address: Address, content: bytes) -> None:
    publish(study(tmp_path / "study", 3), address)
    (tmp_path / "bucket" / "snapshots" / "0000000002.json").write_bytes(content)
    with pytest.raises(BucketError, match=r"0000000002\.json cannot be read"):
        Store.open(address)


def test_nothing_there(address: Address) -> None:
    with pytest.raises(BucketError, match="no results were published there"):
        Store.open(address)


def test_artifacts_are_in_a_tar_file_a_run(tmp_path: Path, address: Address) -> None:
    folder = study(tmp_path / "study", 3)
    publish(folder, address, raw=True)
    snapshot = latest(objects := Objects(address))
    assert snapshot
    content = pa.parquet.read_table(pa.BufferReader(objects.checked(snapshot.batches[0].catalogue)))
    assert content.num_rows == 6
    for run, raw in zip(content["run"].to_pylist(), content["raw"].to_pylist(), strict=True):
        with pa.CompressedInputStream(pa.BufferReader(objects.read(raw, 2**20)), "zstd") as stream:
            (tmp_path / "tar").write_bytes(stream.read())
        with tarfile.open(tmp_path / "tar") as archive:
            archive.extractall(tmp_path / "out" / run, filter="data")
        there = {str(file.relative_to(tmp_path / "out" / run)): file for file in (tmp_path / "out" / run).rglob("*.json")}
        assert set(there) == {"run.json", "passport.json", "applied.json", "artifacts/client/planted.json"}
        for name, file in there.items():
            assert file.read_bytes() == (folder / "runs" / run / name).read_bytes()


def test_a_link_among_artifacts_is_not_followed(tmp_path: Path, address: Address) -> None:
    folder = study(tmp_path / "study", 3)
    store = opened(folder)
    run = store.records[0].id
    (folder / "runs" / run / "artifacts" / "secret").symlink_to("/etc/passwd")
    with pytest.raises(Exception, match="is a symbolic link"):
        Publisher(store, address, "0", raw=True).publish()
    assert latest(Objects(address)) is None


def test_batches_stay_few(tmp_path: Path, address: Address) -> None:
    """As a binary counter carries: after n runs one by one there are as many batches as n has ones in binary."""
    folder = study(tmp_path / "study", 4)
    runs = sorted((folder / "runs").iterdir())
    aside = tmp_path / "aside"
    aside.mkdir()
    for run in runs:
        run.rename(aside / run.name)
    for number, run in enumerate(runs, start=1):
        (aside / run.name).rename(run)
        assert publish(folder, address) == Published(number, number, 1, pytest.approx(0, abs=10**6))
        snapshot = latest(Objects(address))
        assert snapshot
        assert len(snapshot.batches) == number.bit_count()
        assert all(len(of) == 1 for batch in snapshot.batches for of in batch.tables.values())
    says_the_same(address, folder)


def test_a_failed_run_that_was_made_again(tmp_path: Path, address: Address) -> None:
    folder = study(tmp_path / "study")
    answer = {"requests": 10, "requests_per_second": 1.0, "packets": 1, "bytes": 1}
    run = write_run(folder, "slow", {"testbed": "slow"}, 9, answer, failed="it broke", position=3)
    publish(folder, address)
    shutil.rmtree(folder / "runs" / run)
    write_run(folder, "slow", {"testbed": "slow"}, 9, answer, position=3)
    assert publish(folder, address).added == 0
    says_the_same(address, folder)
    assert [record.status for record in opened(address).records if record.id == run] == ["complete"]


def test_a_complete_run_that_is_another(tmp_path: Path, address: Address) -> None:
    folder = study(tmp_path / "study")
    publish(folder, address)
    file = next((folder / "runs").glob("*/run.json"))
    file.write_text(json.dumps({**json.loads(file.read_text()), "started_s": 1.0}))
    with pytest.raises(PublishRefused, match=f"a complete run {file.parent.name} that differs"):
        publish(folder, address)


def test_another_study(tmp_path: Path, address: Address) -> None:
    publish(study(tmp_path / "one"), address)
    with pytest.raises(PublishRefused, match=r"10 runs that .*other lacks, and the planned runs differ"):
        publish(write_study(tmp_path / "other", ["a", "b"], {}, 2, planted_response({"a": 1, "b": 1}, 0.1, seed=1)), address)


def test_a_study_that_goes_on(tmp_path: Path, address: Address) -> None:
    """More replicates are another study.json, of results that have all that was published."""
    folder = study(tmp_path / "study", 3)
    publish(folder, address)
    more = study(tmp_path / "more", 5)
    for run in (more / "runs").iterdir():
        if not (folder / "runs" / run.name).exists():
            shutil.copytree(run, folder / "runs" / run.name)
    shutil.copy(more / "study.json", folder / "study.json")
    assert publish(folder, address).added == 4
    says_the_same(address, folder)


def test_what_a_publisher_leaves_that_is_killed_counts_for_nothing(
    tmp_path: Path, address: Address, monkeypatch: pytest.MonkeyPatch
) -> None:
    first = study(tmp_path / "study", 3)
    publish(first, address)
    more = study(tmp_path / "more", 5)
    shutil.copytree(first / "runs", more / "runs", dirs_exist_ok=True)
    with monkeypatch.context() as patched:
        patched.setattr(Objects, "create", lambda *_: (_ for _ in ()).throw(KeyboardInterrupt))
        with pytest.raises(KeyboardInterrupt):
            publish(more, address)
    says_the_same(address, first)


def test_large_objects_are_not_written_again(tmp_path: Path, address: Address, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("twinbed.results.bucket.publish.OBJECT_BYTES", 1)
    folder = study(tmp_path / "study", 2)
    publish(folder, address)
    before = latest(Objects(address))
    more = study(tmp_path / "more", 4)
    shutil.copytree(folder / "runs", more / "runs", dirs_exist_ok=True)
    publish(more, address)
    after = latest(Objects(address))
    assert before
    assert after
    assert len(after.batches) == 1
    assert set(before.batches[0].tables["metrics"]) < set(after.batches[0].tables["metrics"])
    says_the_same(address, more)


def test_records_of_every_kind(tmp_path: Path, address: Address) -> None:
    """A run.json with all that one may have, as its reader reads it."""
    folder = study(tmp_path / "study", 1)
    file = next((folder / "runs").glob("*/run.json"))
    full = {
        **json.loads(file.read_text()),
        "cautions": [{"kind": "stall", "detail": "55 ms", "subject": "ü"}],
        "clients": [{"host": "c1", "start_s": 0.0, "end_s": 1.5}, {"host": "c2", "start_s": 0.25, "end_s": 1.0}],
        "drawn": {"capture": {"pairs": [{"client": "c1", "server": "s1"}], "of": 4, "seed": 7}},
        "start_skew_s": 0.25,
        "reason": None,
    }
    file.write_text(json.dumps(full))
    publish(folder, address)
    (record,) = [each for each in opened(address).records if each.id == full["id"]]
    wanted = Record.from_json(full)
    assert record == wanted
    assert record.to_json() == wanted.to_json()
    assert math.fsum(record.phases.values()) == math.fsum(full["phases"].values())
    assert record.artifacts[0] == full["artifacts"][0]
    assert len(record.clients) == 2
