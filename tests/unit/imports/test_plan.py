"""Runs from files: replicates, copies, several measurements, files that belong together, conflicts, gaps."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from line_format import FORMATS
from twinbed.imports.layout.pattern import compile_pattern
from twinbed.imports.plan import plan
from twinbed.imports.runs import Candidate, Made, Plan, State, cell_counts, gaps, uneven
from twinbed.imports.scan import ScanRequest, scan_files

PATTERN = "{testbed}_{n:int}_{replicate}.txt"


def planned(folder: Path, texts: Mapping[str, str], pattern: str = PATTERN, **options: Any) -> Plan:
    for name, text in texts.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(text)
    compiled = compile_pattern(pattern)
    scanned = scan_files(folder, [ScanRequest(name) for name in texts], FORMATS, {})
    return plan([Candidate(compiled.assign(each.path), each) for each in scanned], FORMATS, **options)


def read(run: Made) -> list[tuple[str, int]]:
    return [(one.scanned.path, piece) for one, piece in run.files]


def test_a_file_is_a_run(tmp_path: Path) -> None:
    found = planned(tmp_path, {"b_10_1.txt": "rate 1", "a_2_1.txt": "rate 2", "a_10_2.txt": "rate 3", "a_10_1.txt": "rate 4"})
    assert [(run.testbed, run.levels["n"], run.replicate) for run in found.runs] == [
        ("a", 2, 0),
        ("a", 10, 0),
        ("a", 10, 1),
        ("b", 10, 0),
    ]
    assert found.testbeds() == ("a", "b")
    assert found.factors() == {"n": (2, 10)}
    assert len({run.id for run in found.runs}) == 4
    assert len({run.cell for run in found.runs}) == 3
    assert found.runs[0].files[0][0].scanned.sha256 == hashlib.sha256(b"rate 2").hexdigest()
    assert gaps(found.runs, found.testbeds(), found.factors()) == [{"testbed": "b", "n": 2}]
    usual, short = uneven(cell_counts(found.runs))
    assert (usual, short) == (1, [])


def test_replicates_keep_their_numbers_from_0_or_1_and_dates_are_counted(tmp_path: Path) -> None:
    found = planned(tmp_path, {"a_1_3.txt": "rate 1", "a_1_1.txt": "rate 2"})
    assert [run.replicate for run in found.runs] == [0, 2]
    found = planned(tmp_path, {"a_1_0.txt": "rate 1", "a_1_2.txt": "rate 2"})
    assert [run.replicate for run in found.runs] == [0, 2]
    found = planned(tmp_path, {"a_1_20190301.txt": "rate 1", "a_1_20180301.txt": "rate 2"})
    assert [(read(run)[0][0], run.replicate) for run in found.runs] == [("a_1_20180301.txt", 0), ("a_1_20190301.txt", 1)]


def test_several_measurements_in_a_file_are_replicates(tmp_path: Path) -> None:
    found = planned(tmp_path, {"a_1_1.txt": "rate 1\nrate 2", "a_1_2.txt": "rate 3"})
    assert [(read(run), run.replicate) for run in found.runs] == [
        ([("a_1_1.txt", 0)], 0),
        ([("a_1_1.txt", 1)], 1),
        ([("a_1_2.txt", 0)], 2),
    ]
    assert found.numbered == ["a_1_1.txt: 2 measurements, one replicate each"]


def test_files_of_other_kinds_and_hosts_belong_together(tmp_path: Path) -> None:
    texts = {"a_1_1/x.txt": "rate 1", "a_1_1/client.txt": "load 2", "a_1_1/server.txt": "load 3"}
    found = planned(tmp_path, texts, "{testbed}_{n:int}_{replicate}/{host}.txt")
    (run,) = found.runs
    assert sorted((one.scanned.format, one.file_key.host) for one, _ in run.files) == [
        ("line", "x"),
        ("load", "client"),
        ("load", "server"),
    ]


def test_what_belongs_to_which_measurement_is_not_guessed(tmp_path: Path) -> None:
    texts = {"a_1_1/x.txt": "rate 1\nrate 2", "a_1_1/client.txt": "load 2"}
    found = planned(tmp_path, texts, "{testbed}_{n:int}_{replicate}/{host}.txt")
    assert not found.runs
    assert "nothing shows which measurements belong together" in found.conflicts[0]


def test_copies_are_dropped_and_said(tmp_path: Path) -> None:
    """A measurement is never twice the same to the byte; a state beside it may well be."""
    texts = {"a_1_1.txt": "rate 1", "old/a_1_1.txt": "rate 1", "a_1_2.txt": "rate 1", "a_2_1.txt": "rate 1"}
    found = planned(tmp_path, texts)
    assert [read(run) for run in found.runs] == [[("a_1_1.txt", 0)], [("a_2_1.txt", 0)]]
    copies = [(each.path, each.reason) for each in found.outcomes if each.state is State.COPY]
    assert copies == [("old/a_1_1.txt", "the same bytes as a_1_1.txt"), ("a_1_2.txt", "the same bytes as a_1_1.txt")]
    doubt = "a_2_1.txt has the same bytes as a_1_1.txt, which belongs to another cell"
    assert (found.cautions, [run.cautions for run in found.runs]) == ([doubt], [[doubt], [doubt]])
    found = planned(tmp_path, {"b_1_1.txt": "load 1", "b_1_2.txt": "load 1", "b2/b_1_2.txt": "load 1"})
    assert len(found.runs) == 2


def test_two_measurements_of_one_run_are_a_conflict_unless_they_are_numbered(tmp_path: Path) -> None:
    texts = {"a_1_1.txt": "rate 1", "new/a_1_1.txt": "rate 2", "a_1_2.txt": "rate 3"}
    found = planned(tmp_path, texts)
    assert found.conflicts == ["a, n 1, replicate 1: 2 files of one kind and host: a_1_1.txt, new/a_1_1.txt"]
    found = planned(tmp_path, texts, number=True)
    assert [(read(run)[0][0], run.replicate) for run in found.runs] == [
        ("a_1_1.txt", 0),
        ("new/a_1_1.txt", 1),
        ("a_1_2.txt", 2),
    ]
    assert "numbered in the order of their paths" in found.numbered[0]


def test_two_kinds_of_files_are_numbered_each_and_hosts_are_not_guessed(tmp_path: Path) -> None:
    texts = {"a_1_x.txt": "rate 1", "a_1_y.txt": "rate 2", "a_1_z.txt": "load 3", "a_1_w.txt": "load 4"}
    found = planned(tmp_path, texts, "{testbed}_{n:int}_{_}.txt", number=True)
    assert not found.conflicts
    assert [(read(run)[0][0], run.replicate) for run in found.runs] == [
        ("a_1_w.txt", 0),
        ("a_1_x.txt", 1),
        ("a_1_y.txt", 2),
        ("a_1_z.txt", 3),
    ]
    texts = {f"a_1_{place}/{host}.txt": f"load {place}" for place in (1, 2) for host in ("client", "server")}
    found = planned(tmp_path, texts, "{testbed}_{n:int}_{_}/{host}.txt", number=True)
    assert not found.runs and "nothing shows which files of 2 hosts belong together" in found.conflicts[0]


def test_more_files_leave_numbered_runs_what_they_are(tmp_path: Path) -> None:
    texts = {"a_1_x2.txt": "rate 2", "a_1_x4.txt": "rate 4"}
    first = planned(tmp_path, texts, "{testbed}_{n:int}_{_}.txt", number=True)
    have = {run.id: run.replicate for run in first.runs}
    both = planned(
        tmp_path, {**texts, "a_1_x1.txt": "rate 1", "a_1_x3.txt": "rate 3"}, "{testbed}_{n:int}_{_}.txt", number=True, have=have
    )
    assert {read(run)[0][0]: run.replicate for run in both.runs} == {
        "a_1_x2.txt": 0,
        "a_1_x4.txt": 1,
        "a_1_x1.txt": 2,
        "a_1_x3.txt": 3,
    }
    assert have.items() <= {run.id: run.replicate for run in both.runs}.items()


def test_what_cannot_be_read_is_a_failed_run_where_its_testbed_has_others(tmp_path: Path) -> None:
    texts = {"a_1_1.txt": "rate 1", "a_1_2.txt": "rate broken", "a_1_3.txt": "", "a_1_4.txt": "rate x", "z_1_1.txt": "noise"}
    found = planned(tmp_path, texts)
    assert [(run.replicate, run.reason) for run in found.runs] == [
        (0, None),
        (1, "line 1: is broken"),
        (2, "is empty"),
        (3, None),
    ]
    states = {each.path: (each.state, each.reason) for each in found.outcomes}
    assert states["a_1_2.txt"] == (State.REFUSED, "line 1: is broken")
    assert states["a_1_4.txt"] == (State.PARTLY, "line 1: is no rate; none of its values could be read")
    assert states["z_1_1.txt"] == (State.REFUSED, "has no known format")
    usual, short = uneven(cell_counts(found.runs))
    assert (usual, short) == (2, [])


def test_the_start_is_what_a_file_says_or_its_time(tmp_path: Path) -> None:
    found = planned(tmp_path, {"a_1_1.txt": "rate 1 at=12.5", "a_1_2.txt": "rate 2"})
    assert found.runs[0].started_s == 12.5
    assert found.runs[1].started_s == (tmp_path / "a_1_2.txt").stat().st_mtime_ns / 1e9
