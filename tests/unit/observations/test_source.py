"""Responses with what may explain them, from files and results: values, order of levels, what is left out, what is refused."""

from __future__ import annotations

import gzip
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from tests.synthetic_results import write_study

from twinbed.cli.inputs import ResultsFolders
from twinbed.metrics.metric import Scale
from twinbed.model.caution import Kind
from twinbed.model.error import TwinbedError
from twinbed.observations.frame import encoded
from twinbed.observations.source import frame_of_file, read_frame

FOLDERS = ResultsFolders()
TABLE = "payload,testbed,replicate,rate\n1MiB,virtio,1,3.5\n500B,e1000,1,4\n16MiB,virtio,2,\n500B,,2,7\n1KiB,e1000,3,5\n"


@pytest.fixture
def file(tmp_path: Path) -> Path:
    path = tmp_path / "rates.csv"
    path.write_text(TABLE)
    return path


def test_rows_without_a_value_or_a_level_are_left_out_and_counted(file):
    found = frame_of_file(file, "rate")
    assert found.y.tolist() == [3.5, 4, 5] and len(found) == 3
    assert found.left_out == {"rows without rate": 1, "rows without testbed": 1}
    # A level of a column that is not used is not missed.
    assert frame_of_file(file, "rate", ["payload"]).y.tolist() == [3.5, 4, 7, 5]


def test_levels_are_in_the_order_of_their_size(file):
    columns = frame_of_file(file, "rate").columns
    assert columns["payload"].levels == ("500B", "1KiB", "1MiB") and columns["payload"].ordered
    assert columns["payload"].codes.tolist() == [2, 0, 1]
    assert columns["replicate"].levels == (1, 3) and columns["replicate"].numbers().tolist() == [1, 1, 3]
    assert columns["testbed"].levels == ("e1000", "virtio") and not columns["testbed"].ordered
    with pytest.raises(TwinbedError, match="testbed has the level 'e1000', which is not a number"):
        columns["testbed"].numbers()


def test_rates_and_durations_are_in_the_order_of_their_size(tmp_path):
    path = tmp_path / "rates.csv"
    path.write_text("rate,link,delay\n1,1gbit,5ms\n2,100mbit,1s\n3,10gbit,20us\n")
    columns = frame_of_file(path, "rate").columns
    assert columns["link"].levels == ("100mbit", "1gbit", "10gbit")
    assert columns["delay"].levels == ("20us", "5ms", "1s")


def test_one_and_true_are_two_levels():
    assert encoded("x", [1, True, 0, False, 1.0]).codes.tolist() in ([1, 3, 0, 2, 1], [1, 2, 0, 3, 1])


@pytest.mark.parametrize("kind", ["tsv", "semicolons", "gz", "parquet"])
def test_other_kinds_of_files_say_the_same(tmp_path, file, kind):
    path = tmp_path / {"tsv": "a.tsv", "semicolons": "b.csv", "gz": "c.csv.gz", "parquet": "d.parquet"}[kind]
    if kind == "gz":
        path.write_bytes(gzip.compress(TABLE.encode()))
    elif kind == "parquet":
        rows = [line.split(",") for line in TABLE.splitlines()[1:]]
        texts = {name: [row[at] or None for row in rows] for at, name in enumerate(("payload", "testbed"))}
        numbers = {"replicate": [int(row[2]) for row in rows], "rate": [float(row[3]) if row[3] else None for row in rows]}
        pq.write_table(pa.table({**texts, **numbers}), path)
    else:
        path.write_text(TABLE.replace(",", "\t" if kind == "tsv" else ";"))
    one, two = frame_of_file(file, "rate"), frame_of_file(path, "rate")
    assert one.y.tolist() == two.y.tolist() and one.left_out == two.left_out
    assert all(one.columns[name].levels == column.levels for name, column in two.columns.items())


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("a,y\n1,2\n2,fast\n", "y is 'fast' in row 2"),
        ("a,y\n1,2\n2,inf\n", "y is infinite in row 2"),
        ("a,y\n1,true\n", "y is True in row 1"),
        ("a,b\n1,2\n", "no column 'y'"),
        ("a,a,y\n1,2,3\n", "several columns 'a'"),
        ("", "cannot be read"),
        ("a,y\n1,2,3,4\n", "cannot be read"),
    ],
)
def test_what_is_no_table_is_refused_with_the_reason(tmp_path, text, said):
    path = tmp_path / "bad.csv"
    path.write_text(text)
    with pytest.raises(TwinbedError, match=said) as refused:
        frame_of_file(path, "y")
    assert refused.value.advice


def test_levels_can_be_chosen_and_put_in_order(file):
    found = frame_of_file(file, "rate").only("payload", ["1MiB", "500B"])
    assert found.columns["payload"].levels == ("1MiB", "500B") and found.y.tolist() == [3.5, 4]
    assert found.left_out["rows where payload is not 1MiB or 500B"] == 1
    with pytest.raises(TwinbedError, match="payload has no level '9'"):
        found.only("payload", ["9"])


def planted(testbed: str, levels: dict, replicate: int) -> dict:
    rate = {"one": 100.0, "two": 50.0}[testbed] * {"500B": 2, "1MiB": 1}[levels["payload"]] + replicate
    return {"requests": 10, "requests_per_second": rate, "packets": 100, "bytes": 1000}


@pytest.fixture
def results(tmp_path: Path) -> Path:
    return write_study(tmp_path / "results", ["two", "one"], {"payload": ["500B", "1MiB"]}, 3, planted)


def test_a_metric_of_a_results_folder(results):
    found = read_frame(FOLDERS, results, "requests_per_second")
    assert found.factors == ("testbed", "payload") and len(found) == 12
    assert found.unit == "1/s" and found.scale is Scale.RATIO
    # The order of the study file, not of the alphabet.
    assert found.columns["testbed"].levels == ("two", "one") and found.columns["payload"].levels == ("500B", "1MiB")
    assert {"block", "position", "replicate", "run"} < set(found.columns)
    at = (found.columns["testbed"].codes == 1) & (found.columns["payload"].codes == 0)
    assert sorted(found.y[at].tolist()) == [200.0, 201.0, 202.0]


def test_failed_runs_and_missing_values_are_counted(tmp_path):
    def respond(testbed: str, levels: dict, replicate: int) -> dict:
        rate = None if replicate == 0 and testbed == "one" else 5.0 + replicate
        return {**planted(testbed, levels, replicate), "requests_per_second": rate}

    folder = write_study(tmp_path / "r", ["one", "two"], {"payload": ["500B"]}, 2, respond)
    found = read_frame(FOLDERS, folder, "requests_per_second")
    assert len(found) == 3 and found.left_out == {"runs without a value": 1}
    failed = write_study(tmp_path / "f", ["one", "two"], {"payload": ["500B"]}, 2, planted, failed="it broke")
    with pytest.raises(TwinbedError):
        read_frame(FOLDERS, failed, "requests_per_second")


def test_a_metric_that_is_not_there_names_those_that_are(results):
    with pytest.raises(TwinbedError, match="no metric 'speed'") as refused:
        read_frame(FOLDERS, results, "speed")
    assert "requests_per_second" in refused.value.advice
    with pytest.raises(TwinbedError, match="not measured there"):
        read_frame(FOLDERS, results, "requests_per_second", host="nowhere")
    assert np.all(read_frame(FOLDERS, results, None).y > 0)


def test_levels_that_hardly_differ_and_rows_that_do_not_are_cautioned(tmp_path):
    path = tmp_path / "rates.csv"
    path.write_text("testbed,rate\nvirtio,1.2345\nVirtio,2.3456\nvirt io,3.4567\ne1000,4.5678\ne1000,4.5678\n")
    cautions = {each.kind: each.detail for each in frame_of_file(path, "rate").cautions}
    assert cautions == {Kind.ALIKE: "testbed: 'Virtio', 'virt io', 'virtio'", Kind.REPEATED_ROWS: "1 of 5 rows"}
    path.write_text("testbed,failures\nvirtio,0\nvirtio,0\ne1000,1\ne1000,1\n")
    assert frame_of_file(path, "failures").cautions == (), "counts are equal by chance"


def test_decimal_commas_are_explained(tmp_path):
    path = tmp_path / "rates.csv"
    path.write_text("testbed;rate\nvirtio;1,5\ne1000;2,5\n")
    with pytest.raises(TwinbedError, match="rate is '1,5' in row 1") as refused:
        frame_of_file(path, "rate")
    assert refused.value.advice == "write decimals with a point: 1.5, not 1,5"
