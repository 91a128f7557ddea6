"""``twinbed published``: what it prints in each format, its exit codes, and own results beside the printed ones."""

from __future__ import annotations

import csv
import io
import json
import os
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from synthetic_results import write_study
from twinbed.cli.main import run
from twinbed.contracts import exit_codes as codes
from twinbed.published.printed import library
from twinbed.published.printed_metrics import Own, printed_with_own
from twinbed.published.verdicts import compare


@pytest.fixture
def shown(capfd):
    """Runs a command line: exit code, standard output, standard error."""

    def command(*arguments: object) -> tuple[int, str, str]:
        code = run(["published", *map(str, arguments)])
        out, err = capfd.readouterr()
        return code, out, err

    return command


def table(text: str) -> list[dict[str, str]]:
    return list(csv.DictReader(io.StringIO(text)))


def test_list_names_every_table(shown) -> None:
    code, out, _ = shown("list")
    assert code == codes.DONE and len(out.splitlines()) == 1 + 23
    _, as_json, _ = shown("list", "--format", "json")
    found = {row["table"]: row for row in json.loads(as_json)}
    assert found["LDRD-3.4"]["page"] == 24 and found["2017-1"]["n"] is None and found["ONL-3"]["cells"] == 50


def test_show_is_tidy(shown) -> None:
    code, out, _ = shown("show", "icnc-3", "--format", "csv")
    rows = table(out)
    assert code == codes.DONE and len(rows) == 24
    [row] = [
        row
        for row in rows
        if (row["link"], row["payload"], row["testbed"]) == ("10Gbps", "16MB", "virtio")
        if row["kind"] == "mean"
    ]
    assert (row["table"], row["printed"], row["decimals"], row["significant_digits"], row["n"]) == (
        "ICNC-III",
        "42",
        "0",
        "2",
        "10",
    )
    _, as_json, _ = shown("show", "ONL-5", "--format", "json")
    data = json.loads(as_json)
    assert data["settings"]["quantile"] == "1.96" and data["cells"][0]["printed"] == "-17.66"
    _, text, _ = shown("show", "LDRD-3.1")
    assert "page     21" in text and "✗" in text and "NT" in text


def test_a_table_that_there_is_not(shown) -> None:
    code, _, err = shown("show", "LDRD-3.5")
    assert (
        code == codes.USAGE
        and "no printed table 'LDRD-3.5'" in err
        and "did you mean 'LDRD-3.1', 'LDRD-3.2' or 'LDRD-3.3'?" in err
    )


def test_replay_says_4_only_where_something_differs(shown) -> None:
    code, out, _ = shown("replay", "ONL-4")
    assert code == codes.DONE and "1367.9048" in out and "within rounding" in out
    code, out, _ = shown("replay", "ONL-5", "--format", "json")
    assert code == codes.DIFFERENT and json.loads(out)[1]["status"] == "differs"
    code, out, _ = shown("replay", "--format", "csv")
    assert code == codes.DIFFERENT and {row["status"] for row in table(out)} == {
        "equal",
        "within rounding",
        "differs",
        "derived",
    }
    code, out, _ = shown("replay", "LDRD-3.3")
    assert code == codes.DONE and out.startswith("No number of this table can be computed")


def test_audit_says_4_and_what(shown) -> None:
    code, out, _ = shown("audit")
    assert code == codes.DIFFERENT and "interval half-width: 1 finding in 9 places" in out
    _, as_json, _ = shown("audit", "--format", "json")
    findings = json.loads(as_json)
    assert out.splitlines()[-1] == f"{findings[-1]['fact']} findings in {len(findings)} places"
    keys = {"rule", "source", "table", "cell", "printed", "follows", "arithmetic", "changes", "cause", "fact"}
    assert set(findings[0]) == keys
    _, as_csv, _ = shown("audit", "--format", "csv")
    # Some texts are sums that begin with a minus: CSV has an apostrophe in front of what a spreadsheet would run.
    texts = [{name: str(value) for name, value in finding.items()} for finding in findings]
    assert table(as_csv) == [
        {name: f"'{text}" if text.startswith("-0.176 +") else text for name, text in each.items()} for each in texts
    ]


def test_compare_of_the_printed_numbers(shown) -> None:
    code, out, _ = shown("compare", "--format", "csv")
    rows = table(out)
    assert code == codes.DIFFERENT and len(rows) == 106
    [row] = [row for row in rows if (row["table"], row["cell"]) == ("ICNC-I", "1Gbps 500B virtio")]
    assert (row["verdict"], row["within_rule"], row["intervals_overlap"], row["n"]) == ("equivalent", "true", "false", "10")
    _, text, _ = shown("compare", "--margin", "5%")
    assert "in 5 %" in text.splitlines()[0]
    for margin in ("0", "300%", "much"):
        code, _, err = shown("compare", "--margin", margin)
        assert code == codes.USAGE and "not a share above 0" in err


def own(**given: Any) -> Own:
    plain: dict[str, Any] = {
        "metric": "requests_per_second",
        "testbed": "virtio",
        "reference": "container",
        "payload": 500,
        "where": "",
        "ratio": 0.9,
        "low": 0.8,
        "high": 1.0,
        "verdict": "inconclusive",
    }
    return Own(**{**plain, **given})


def matches(found: Own) -> set[tuple[str, str]]:
    return {(row.table, row.cell) for row, each in printed_with_own(library(), compare(library()), [found]) if each is not None}


def test_own_results_are_matched_by_metric_testbed_and_payload() -> None:
    small = {("2019-1", "1Gbps 500B virtio"), ("ICNC-I", "1Gbps 500B virtio"), ("ICNC-II", "10Gbps 500B virtio")}
    small |= {("ICNC-III", "1Gbps 500B virtio"), ("ICNC-III", "10Gbps 500B virtio")}
    assert matches(own()) == small
    assert matches(own(testbed="virtio-net-pci")) == small
    assert matches(own(testbed="e1000e")) == {(name, cell.replace("virtio", "e1000")) for name, cell in small}
    assert matches(own(payload=2**20)) == matches(own(payload=10**6)) != set()
    assert matches(own(payload=1000)) == matches(own(testbed="fake")) == matches(own(metric="requests")) == set()
    assert {name for name, _ in matches(own(metric="path_delay_variation"))} == {"ICNC-VII"}
    assert {name for name, _ in matches(own(metric="read_calls_per_request"))} == {"2019-2", "ICNC-IV", "ICNC-V"}


def test_own_results_stand_printed_with_own(shown, tmp_path: Path) -> None:
    def respond(testbed: str, levels: Mapping[str, Any], replicate: int) -> Mapping[str, float | None]:
        rate = {"container": 1000.0, "virtio": 950.0}[testbed] + replicate
        return {"requests": 100, "requests_per_second": rate, "packets": 1000, "bytes": 64000}

    write_study(tmp_path, ["container", "virtio"], {"payload": ["500B", "1MiB"]}, 3, respond)
    code, out, _ = shown("compare", tmp_path, "--format", "json")
    rows = {(row["table"], row["cell"]): row for row in json.loads(out)}
    assert code == codes.DIFFERENT and len(rows) == 106
    row = rows["ICNC-I", "1Gbps 500B virtio"]
    assert (
        row["own_testbed"] == "virtio / container" and row["own_cell"] == "payload=500B" and row["own_verdict"] == "equivalent"
    )
    assert row["own_ratio"] == pytest.approx(951 / 1001, rel=1e-5)
    assert rows["ICNC-I", "1Gbps 1MB virtio"]["own_cell"] == "payload=1MiB"
    assert (
        rows["ICNC-I", "1Gbps 16MB virtio"]["own_ratio"] is None and rows["ICNC-I", "1Gbps 500B e1000"]["own_verdict"] is None
    )
    _, text, _ = shown("compare", tmp_path)
    assert "own_ratio" in text.splitlines()[0]


def test_own_results_about_something_else(shown, tmp_path: Path) -> None:
    def respond(testbed: str, levels: Mapping[str, Any], replicate: int) -> Mapping[str, float | None]:
        return {"requests": 100, "requests_per_second": 50.0, "packets": 1000, "bytes": 64000}

    write_study(tmp_path, ["a", "b"], {}, 2, respond)
    code, _, err = shown("compare", tmp_path)
    assert code == codes.DIFFERENT and err.startswith("No printed table has")


def test_listing_imports_no_statistics() -> None:
    """The tables are for the eye too, at once."""
    program = "import sys\nfrom twinbed.cli.main import run\nrun(['published', 'list'])\nsys.exit('scipy' in sys.modules)"
    source = str(Path(__file__).parents[3] / "src")
    done = subprocess.run(
        [sys.executable, "-c", program], env={**os.environ, "PYTHONPATH": source}, capture_output=True, check=False
    )
    assert done.returncode == 0, done.stderr.decode()
