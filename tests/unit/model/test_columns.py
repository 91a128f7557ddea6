"""Runs by columns against the same runs as objects: from a folder's list, and from a catalogue's table."""

from __future__ import annotations

import io
import itertools
import random

import numpy as np
import pyarrow.parquet as pq
import pytest

from twinbed.model.columns import Coded, PlannedRuns, Records, first_come, planned_testbeds
from twinbed.model.record import Record
from twinbed.model.run import Status
from twinbed.model.tables import Planned
from twinbed.results.catalogue import FEW, Entry, records_of, table_of

TESTBEDS = ("physical", "virtio")


def record(number: int) -> Record:
    levels = {"testbed": TESTBEDS[number % 2], "payload": f"{number % 3}B"}
    failed = number % 5 == 0
    return Record(
        id=f"{997 * number % 1000:03}",
        cell=f"cell-{number % 6}",
        levels=levels,
        replicate=number // 6,
        block=number // 6,
        position=number,
        settings={
            "levels": levels,
            "testbed": {"name": levels["testbed"], "kind": "fake"},
            "topology": {},
            "workload": {"kind": "planted"},
            "instruments": {},
        },
        status=Status.FAILED if failed else Status.COMPLETE,
        started_s=1e9 + number,
        phases={"up": 0.5 * number},
        failed_phase="workload" if failed else None,
        reason="none" if failed else None,
        cautions=(),
        artifacts=[{"path": f"artifacts/client/{number}", "bytes": number}],
        twinbed="0",
        lab="lab",
        start_skew_s=0.25 if number % 4 else None,
        machine="one" if number % 2 else "",
        plugins={"workloads.echo": "twinbed-echo==1.0"} if number % 2 else {},
    )


RECORDS = [record(number) for number in range(25)]


def from_catalogue() -> Records:
    """Two row groups, so that a column has several dictionaries."""
    file = io.BytesIO()
    pq.write_table(table_of([Entry(each, "digest", "key") for each in RECORDS]), file, row_group_size=10)
    return records_of(pq.ParquetFile(file, read_dictionary=FEW).read())


@pytest.fixture(params=["objects", "catalogue"])
def records(request: pytest.FixtureRequest) -> Records:
    return Records.of(RECORDS) if request.param == "objects" else from_catalogue()


def test_a_record_is_what_it_was(records: Records) -> None:
    assert len(records) == 25
    assert records == RECORDS
    assert list(records) == RECORDS
    assert [each.to_json() for each in records] == [each.to_json() for each in RECORDS]
    assert (records[3], records[-1]) == (RECORDS[3], RECORDS[-1])
    assert list(records[4:20:5]) == RECORDS[4:20:5]
    with pytest.raises(IndexError):
        records[25]
    assert Records.of(records) is records


def test_columns_say_what_records_do(records: Records) -> None:
    assert list(records.ids) == [each.id for each in RECORDS]
    assert records.blocks.tolist() == [each.block for each in RECORDS]
    assert records.started_s.tolist() == [each.started_s for each in RECORDS]
    assert records.testbeds.listed() == [each.levels["testbed"] for each in RECORDS]
    assert records.complete.tolist() == [each.status is Status.COMPLETE for each in RECORDS]
    assert set(records.cells.distinct()) == {each.cell for each in RECORDS}
    assert list(records.levels.coded().listed()) == [each.levels for each in RECORDS]
    assert records.machines.coded().renamed(str).values == ["", "one"]


def test_rows_are_taken_of_all_columns(records: Records) -> None:
    rows = np.array([7, 2, 24])
    assert list(records.take(rows)) == [RECORDS[row] for row in rows]
    assert set(records.take(rows).cells.distinct()) == {RECORDS[row].cell for row in rows}
    wanted = {"000", "991", "988"}
    assert list(records.where(wanted.__contains__)) == [each for each in RECORDS if each.id in wanted]
    assert records.where(lambda _: True) is records


def test_the_order_is_that_of_positions_and_then_of_identities() -> None:
    shuffled = random.Random(1).sample([record(number) for number in itertools.chain(range(9), range(9))], 18)
    assert list(Records.of(shuffled).in_order()) == sorted(shuffled, key=lambda each: (each.position, each.id))
    ordered = Records.of(RECORDS)
    assert ordered.in_order() is ordered


def test_levels_are_changed_once_for_each_pair(records: Records) -> None:
    made = []

    def change(levels, settings):  # type: ignore[no-untyped-def]
        made.append(levels)
        return {"payload": levels["payload"]}, {**settings, "levels": {}}

    held = records.held(change)
    assert [each.levels for each in held] == [{"payload": each.levels["payload"]} for each in RECORDS]
    assert all(each.settings["levels"] == {} for each in held)
    assert len(made) == (6 if isinstance(records.levels, Coded) else 25)


@pytest.mark.parametrize("named", [True, False])
def test_the_testbed_of_a_planned_run(*, named: bool) -> None:
    """By its levels, by its record, or by what else there is."""
    levels = [{"testbed": each.levels["testbed"]} if named else {} for each in RECORDS]
    planned = [Planned(each.id, each.cell, of, 0, 0, 0) for each, of in zip(RECORDS, levels, strict=True)]
    found = planned_testbeds(PlannedRuns.of(planned), Records.of(RECORDS[:20]), "other").listed()
    made = [str(each.levels["testbed"]) for each in RECORDS]
    assert list(found) == (made if named else [*made[:20], *["other"] * 5])


def test_codes_in_the_order_in_which_they_come() -> None:
    different, codes = first_come(np.array([7, 3, 7, 9, 3, 7]))
    assert (different.tolist(), codes.tolist()) == ([7, 3, 9], [0, 1, 0, 2, 1, 0])
    column = Coded(codes, "abc")
    assert [rows.tolist() for rows in column.rows()] == [[0, 2, 5], [1, 4], [3]]
    assert Coded(codes, "xyx").renamed(str.upper).listed() == ["X", "Y", "X", "X", "Y", "X"]
    pairs = column.with_other(Coded(np.array([0, 0, 1, 1, 0, 0]), "uv"))
    assert pairs.listed() == [("a", "u"), ("b", "u"), ("a", "v"), ("c", "v"), ("b", "u"), ("a", "u")]
    assert len(pairs.values) == 4
