"""What is kept of runs by each word, and that nothing is lost whenever thinning ends."""

from __future__ import annotations

import contextlib
import json
import os
import shutil
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from twinbed import registry
from twinbed.model.keep import REST, Keep, Word
from twinbed.model.record import Record
from twinbed.results.extract import extract, rows_of
from twinbed.results.extract.kept import kept_rows
from twinbed.results.extract.parts import tables_of
from twinbed.results.extract.rows import Readers
from twinbed.results.keep.kept import Kept, packed
from twinbed.results.keep.thin import NotThinned, Thinner
from twinbed.results.store import Store
from twinbed.tree import Tree

CAPTURE, COUNTED, ANSWER = (
    "artifacts/machine/client.pcap",
    "artifacts/machine/client.tcpdump.err",
    "artifacts/client/planted.json",
)
READERS = Readers(registry.PLUGINS.read, registry.PLUGINS.accompanying)


def tables(results: Path) -> dict[str, bytes]:
    """Table -> its file's bytes, of one part; that of the runs holds keys, which hang on what was kept."""
    store = extract(results, READERS.workloads, READERS.accompanying)
    assert len(list((results / "tables/runs").glob("part-*"))) == 1
    parts = {name: next((results / "tables" / name).glob("part-*")) for name in store.names()}
    return {name: part.read_bytes() for name, part in parts.items() if name != "runs"}


def thinner(results: Path, default: Word, **of: Word) -> Thinner:
    return Thinner(results, Keep(default, of), READERS, "0.1.0")


def thin(results: Path, default: Word, **of: Word) -> None:
    for record in Store.open(results).records:
        thinner(results, default, **of).thin(record)


def files(results: Path) -> set[str]:
    """What the runs have, the same of each."""
    of_each = [
        {path.relative_to(run).as_posix() for path in run.rglob("*") if path.is_file()} for run in (results / "runs").iterdir()
    ]
    assert all(each == of_each[0] for each in of_each)
    return of_each[0]


RECORDS = {"run.json", "passport.json", "applied.json"}
KEPT = {"kept.json", "rows.zip"}


@pytest.mark.parametrize(
    ("default", "of", "left"),
    [
        (Word.EVERYTHING, {}, RECORDS | {CAPTURE, COUNTED, ANSWER}),
        (Word.HEADERS, {}, RECORDS | KEPT | {f"{CAPTURE}.zst", COUNTED, ANSWER}),
        (Word.TABLES, {}, RECORDS | KEPT),
        (Word.EVERYTHING, {"packets": Word.TABLES}, RECORDS | KEPT | {ANSWER}),
        (Word.TABLES, {"packets": Word.HEADERS}, RECORDS | KEPT | {f"{CAPTURE}.zst", COUNTED}),
        (Word.EVERYTHING, {"planted": Word.HEADERS}, RECORDS | {CAPTURE, COUNTED, ANSWER}),
    ],
)
def test_each_word(results: Path, default: Word, of: dict[str, Word], left: set[str]) -> None:
    before = tables(results)
    assert {"metrics", "connections", "flows", "facts", "cautions"} <= before.keys()
    thin(results, default, **of)
    assert files(results) == left
    assert tables(results) == before, "from rows where they were read again"
    shutil.rmtree(results / "tables")
    assert tables(results) == before
    thin(results, default, **of)
    assert files(results) == left, "the same again does nothing"


def test_a_run_record_stays_and_what_went_is_listed(results: Path) -> None:
    (one, *_) = Store.open(results).records
    run = results / "runs" / one.id
    record, size = (run / "run.json").read_bytes(), (run / CAPTURE).stat().st_size
    thin(results, Word.TABLES, packets=Word.HEADERS)
    assert (run / "run.json").read_bytes() == record
    kept = Kept.read(Tree(run))
    assert (kept.run, kept.keep, kept.twinbed) == (one.id, "packets=headers, default=tables", "0.1.0")
    assert [(each.path, each.bytes, each.kept_as) for each in kept.files] == [
        (ANSWER, (len(b"") + one.artifacts[0]["bytes"]), None),
        (CAPTURE, size, f"{CAPTURE}.zst"),
    ]
    assert kept.files[1].kept_bytes == (run / f"{CAPTURE}.zst").stat().st_size


def test_less_and_less(results: Path) -> None:
    before = tables(results)
    thin(results, Word.HEADERS)
    rows = {file: file.read_bytes() for file in results.glob("runs/*/rows.zip")}
    thin(results, Word.TABLES)
    assert files(results) == RECORDS | KEPT
    assert all(file.read_bytes() == content for file, content in rows.items()), "rows are made once"
    assert tables(results) == before
    thin(results, Word.EVERYTHING)
    assert files(results) == RECORDS | KEPT


def test_failed_runs_keep_what_they_left(results: Path) -> None:
    (one, *_) = Store.open(results).records
    file = results / "runs" / one.id / "run.json"
    failed = {**json.loads(file.read_text()), "status": "failed", "failed_phase": "workload", "reason": "it broke"}
    file.write_text(json.dumps(failed))
    thin(results, Word.TABLES)
    left = {path.name for path in file.parent.rglob("*") if path.is_file()}
    assert {"client.pcap", "planted.json"} <= left and "kept.json" not in left


@pytest.mark.parametrize(
    ("artifact", "content"), [(ANSWER, b"{"), (CAPTURE, b"no capture"), (CAPTURE, None), (COUNTED, b"it said nothing")]
)
def test_what_cannot_be_read_stays_whole(results: Path, artifact: str, content: bytes | None) -> None:
    (one, *_) = Store.open(results).records
    file = results / "runs" / one.id / artifact
    if content is None:
        file.unlink()
    else:
        file.write_bytes(content)
    before = {path: path.read_bytes() for path in file.parents[2].rglob("*") if path.is_file()}
    with pytest.raises(NotThinned, match=r"client|planted"):
        thinner(results, Word.TABLES).thin(one)
    assert {path: path.read_bytes() for path in file.parents[2].rglob("*") if path.is_file()} == before


def test_an_instrument_that_is_not_known_keeps_its_run_whole(results: Path) -> None:
    (one, *_) = Store.open(results).records
    with pytest.raises(NotThinned, match="this twinbed has no instrument packets"):
        Thinner(results, Keep(Word.TABLES), Readers(READERS.workloads, {}), "0.1.0").thin(one)
    assert (results / "runs" / one.id / CAPTURE).is_file()


class Killed(BaseException):
    """As by SIGKILL: nothing handles it."""


@contextmanager
def killed_after(steps: int, monkeypatch: pytest.MonkeyPatch) -> Iterator[list[str]]:
    """Every sync, rename and removal is a step; the one after ``steps`` of them is not made."""
    made: list[str] = []

    def stepped(what: str, original: Callable[..., Any]) -> Callable[..., Any]:
        def step(*arguments: Any, **options: Any) -> Any:
            if len(made) == steps:
                raise Killed
            made.append(what)
            return original(*arguments, **options)

        return step

    with monkeypatch.context() as patch:
        patch.setattr(os, "fsync", stepped("sync", os.fsync))
        patch.setattr(os, "rename", stepped("rename", os.rename))
        patch.setattr(os, "unlink", stepped("remove", os.unlink))
        yield made


def rows_of_run(results: Path, record: Record) -> dict[str, bytes]:
    """Table -> the run's rows, as extraction takes them: made now, or those that were kept."""
    run = results / "runs" / record.id
    rows = kept_rows(run, record, "") if (run / "kept.json").exists() else rows_of(run, record, READERS)
    return {name: packed({name: table.combine_chunks()}) for name, table in tables_of([rows]).items() if table.num_rows}


@pytest.mark.parametrize(
    ("first", "default", "of"),
    [(None, Word.HEADERS, {}), (None, Word.TABLES, {"packets": Word.HEADERS}), (Word.HEADERS, Word.TABLES, {})],
)
def test_nothing_is_lost_whenever_it_is_ended(
    results: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, first: Word | None, default: Word, of: dict[str, Word]
) -> None:
    (one, *others) = Store.open(results).records
    for other in others:
        shutil.rmtree(results / "runs" / other.id)
    before = rows_of_run(results, one)
    assert {"metrics", "connections", "flows", "facts", "cautions"} <= before.keys()
    if first:
        thinner(results, first).thin(one)
    done = {}
    steps_of: list[int] = [100]
    while steps_of:
        steps = steps_of.pop()
        tried = tmp_path / f"killed-{steps}"
        shutil.copytree(results, tried)
        run = tried / "runs" / one.id
        with contextlib.suppress(Killed), killed_after(steps, monkeypatch) as made:
            thinner(tried, default, **of).thin(one)
        assert rows_of_run(tried, one) == before, steps
        thinner(tried, default, **of).thin(one)
        assert not thinner(tried, default, **of).begun(one)
        left = {path.relative_to(run): path.read_bytes() for path in run.rglob("*") if path.is_file()}
        done = done or left
        assert left == done, steps
        shutil.rmtree(tried)
        if steps == 100:
            every, steps_of = made, list(range(len(made)))
    assert len(every) >= 6 and {"sync", "rename", "remove"} <= {*every}


@pytest.mark.parametrize("steps", range(10))
def test_what_was_begun_and_is_not_wanted_any_more_leaves_nothing(
    results: Path, monkeypatch: pytest.MonkeyPatch, steps: int
) -> None:
    (one, *_) = Store.open(results).records
    run = results / "runs" / one.id
    before = {path for path in run.rglob("*") if path.is_file()}
    with pytest.raises(Killed), killed_after(steps, monkeypatch):
        thinner(results, Word.HEADERS).thin(one)
    if (run / "kept.json").exists():
        return
    thinner(results, Word.EVERYTHING).thin(one)
    assert {path for path in run.rglob("*") if path.is_file()} == before


def test_whose_artifacts_are_told(results: Path) -> None:
    (one, *_) = Store.open(results).records
    stray = results / "runs" / one.id / "artifacts" / "machine" / "link-check.client.tcpdump"
    stray.write_text("x")
    file = stray.parents[2] / "run.json"
    record = json.loads(file.read_text())
    record["artifacts"].append({"path": "artifacts/machine/link-check.client.tcpdump", "bytes": 1})
    file.write_text(json.dumps(record))
    (one,) = (each for each in Store.open(results).records if each.id == one.id)
    going = {each.path: each.owner for each in thinner(results, Word.TABLES).going(one)}
    assert going == {
        ANSWER: "planted",
        CAPTURE: "packets",
        COUNTED: "packets",
        "artifacts/machine/link-check.client.tcpdump": REST,
    }
