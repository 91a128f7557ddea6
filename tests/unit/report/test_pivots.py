"""The tables that a study asks for: which number stands where, what is empty, and what is marked."""

from __future__ import annotations

import csv
import io
import json
import math
from pathlib import Path
from typing import Any

import pytest

from synthetic_results import write_study
from twinbed.analyses.compare.method import analysis as compare
from twinbed.model.caution import Caution, Kind
from twinbed.model.comparison import Comparisons
from twinbed.model.tables import Tables
from twinbed.published.printed import library
from twinbed.published.printed_metrics import printed_at
from twinbed.render.tabular import Tabular
from twinbed.report.pivots import Table, as_csv, as_tabular, footnotes, marks
from twinbed.report.styles import rendered, study_tables
from twinbed.results.extract import extract
from twinbed.workloads.planted import planted

RATES = {"physical": 1000.0, "e1000": 500.0, "virtio": 1100.0}
STEPS = (-10.0, 0.0, 10.0)
"""By replicate: their mean is 0, their standard deviation 10."""


def respond(testbed: str, levels: Any, replicate: int) -> dict[str, float | None]:
    rate = RATES[testbed] / (1 if levels["payload"] == "500B" else 10) + STEPS[replicate]
    return {"requests": 100, "requests_per_second": rate, "packets": 1000, "bytes": None}


def results(tmp_path: Path, asked: list[dict[str, Any]], **rest: Any) -> tuple[Tables, Comparisons]:
    factors = {"payload": ["500B", "1MiB"], "topology.link.rate": ["1gbit"]}
    folder = write_study(tmp_path / "r", list(RATES), factors, 3, respond, **rest)
    study = json.loads((folder / "study.json").read_text())
    (folder / "study.json").write_text(json.dumps({**study, "tables": asked}))
    store = extract(folder, {"planted": planted}, {})
    return store, compare.run(store)


def asked(**more: Any) -> dict[str, Any]:
    return {"title": "Rates", "metric": "requests_per_second", "rows": ["payload"], **more}


def shown(table: Table) -> Tabular:
    return as_tabular(table, marks([table]))


def only(tmp_path: Path, **more: Any) -> Table:
    (table,) = study_tables(*results(tmp_path, [asked(**more)]))
    return table


def test_rows_and_columns_are_those_asked_for_in_the_order_of_the_study(tmp_path: Path) -> None:
    found = shown(only(tmp_path, spread="stdev"))
    assert found.heads == ("payload", "physical", "e1000", "virtio")
    assert found.rows == (
        ("500B", "1,000 ± 10ᵃ", "500 ± 10ᵃ", "1,100 ± 10ᵃ"),
        ("1MiB", "100 ± 10ᵃ", "50 ± 10ᵃ", "110 ± 10ᵃ"),
    )
    assert found.caption == "Requests per second: mean ± standard deviation; 3 runs a cell."


def test_an_interval_is_students(tmp_path: Path) -> None:
    # Three values with standard deviation 10: t(0.975, 2) = 4.3027 (any printed table), times 10 / sqrt(3).
    entry = only(tmp_path).rows[0][1][0]
    assert (entry.n, entry.mean) == (3, 1000.0)
    assert entry.low is not None and entry.high is not None
    assert (entry.high - entry.low) / 2 == pytest.approx(4.30265 * 10 / math.sqrt(3), rel=1e-5)


def test_testbeds_as_rows(tmp_path: Path) -> None:
    found = shown(only(tmp_path, rows=["testbed"], columns="payload", spread="none"))
    assert found.heads == ("testbed", "payload 500B", "payload 1MiB")
    assert [row[0] for row in found.rows] == ["physical", "e1000", "virtio"]
    assert found.rows[1][1:] == ("500ᵃ", "50ᵃ")


def test_only_the_levels_asked_for(tmp_path: Path) -> None:
    table = only(tmp_path, where={"payload": ["1MiB"], "testbed": ["physical", "virtio"]})
    assert [labels for labels, _ in table.rows] == [("1MiB",)]
    assert table.columns == ("physical", "virtio")


def test_changes_are_from_the_reference_with_the_interval_of_the_comparison(tmp_path: Path) -> None:
    tables, result = results(tmp_path, [asked(show="change", against="physical")])
    (table,) = study_tables(tables, result)
    assert table.columns == ("e1000", "virtio")
    entry = table.rows[0][1][0]
    compared = next(each for each in result.comparisons if each.testbed == "e1000" and each.metric == "requests_per_second")
    assert compared.ratio is not None and entry.change == pytest.approx(compared.ratio - 1)
    assert entry.change == pytest.approx(-0.5, abs=0.01)
    assert compared.ratio_interval is not None
    assert (entry.change_low, entry.change_high) == (compared.ratio_interval.low - 1, compared.ratio_interval.high - 1)
    assert (
        "difference from physical as a share of it (of geometric means where all values are positive), and its 90 %"
        in shown(table).caption
    )


def test_changes_from_a_level_that_is_no_testbed_have_welchs_interval(tmp_path: Path) -> None:
    """R, for b of 1000, 500, 1100: t.test(log(b / 10 + c(-10, 0, 10)), log(b + c(-10, 0, 10)), conf.level = 0.9), of its
    estimates and its interval exp(...) - 1."""
    table = only(tmp_path, rows=["testbed"], columns="payload", show="change", against="500B")
    assert [entry.change for _, (entry,) in table.rows] == pytest.approx(
        [-0.900331128252, -0.901338360387, -0.900273497139], abs=1e-11
    )
    [(_, (physical,)), *_] = table.rows
    assert (physical.change_low, physical.change_high) == pytest.approx((-0.915729654276, -0.882118865063), abs=1e-11)
    assert shown(table).rows[0] == ("physical", "-90.0 % [-91.6, -88.2]ᵃ")
    assert (
        "difference from 500B as a share of it (of geometric means where all values are positive), and its 90 %"
        in shown(table).caption
    )


def test_what_was_not_measured_is_empty_and_never_0(tmp_path: Path) -> None:
    table = only(tmp_path, metric="bytes", spread="none")
    assert {entry.mean for entry in table.entries} == {None}
    assert all(cell in (None, "500B", "1MiB") for row in shown(table).rows for cell in row)
    assert "no run has it" in shown(table).caption


def test_cautions_are_marked_and_said_once(tmp_path: Path) -> None:
    cautions = (Caution(Kind.SOFTWARE_CPU), Caution(Kind.STEAL, "3 %"))
    (table,) = study_tables(*results(tmp_path, [asked(spread="none")], cautions=cautions))
    assert shown(table).rows[0][1] == "1,000ᵃᵇᶜ"
    notes = footnotes(marks([table]))
    assert [note[0] for note in notes] == ["ᵃ", "ᵇ", "ᶜ"]
    assert notes[0].startswith("ᵃ Guests ran on an emulated CPU (TCG), not on hardware virtualisation: ")
    assert notes[2].startswith("ᶜ Too few replicates")


def test_a_mark_means_the_same_in_all_tables(tmp_path: Path) -> None:
    one, two = study_tables(*results(tmp_path, [asked(metric="bytes"), asked()], cautions=(Caution(Kind.STEAL),)))
    notes = marks([one, two])
    assert notes == {Kind.STEAL: "ᵃ", Kind.FEW_REPLICATES: "ᵇ"}
    assert as_tabular(two, notes).rows[0][1] == "1,000 ± 25ᵃᵇ"


def test_a_cell_whose_runs_failed_is_empty_and_marked(tmp_path: Path) -> None:
    (table,) = study_tables(*results(tmp_path, [asked()], failed="the server did not start"))
    assert {entry.mean for entry in table.entries} == {None}
    assert shown(table).rows[0] == ("500B", "ᵃ", "ᵃ", "ᵃ")
    assert "failed" in footnotes(marks([table]))[0]


def test_units(tmp_path: Path) -> None:
    table = only(tmp_path, spread="none", unit="%")  # any unit: whether it suits the metric is checked with the study
    assert shown(table).rows[0][1] == "100,000ᵃ"


def test_the_printed_numbers_stand_beside(tmp_path: Path) -> None:
    found = shown(only(tmp_path, published="ICNC-I", where={"topology.link.rate": ["1gbit"]}))
    assert found.heads == ("payload", *(f"{name}{more}" for name in RATES for more in ("", ", printed")))
    # ICNC 2019, Table I.
    assert found.rows[0][2::2] == ("14420 ± 74.3", "6476 ± 707", "13590 ± 139")
    assert found.rows[1][2::2] == ("112 ± 0.012", "113 ± 0.12", "113 ± 0.006")
    assert found.caption.endswith("; rate 1gbit; printed: ICNC-I.")


@pytest.mark.parametrize(
    ("table", "levels", "printed"),
    [
        ("2017-1", {"testbed": "container", "offload": "off", "threads": 4}, "918 ± 4"),
        ("2017-2", {"testbed": "e1000", "workload.threads": 16, "offload": "on"}, "890 ± 46"),
        ("2017-1", {"testbed": "container", "offload": "off", "threads": 2}, None),
        ("2017-1", {"testbed": "container", "threads": 4}, None),
        ("ICNC-III", {"testbed": "virtio", "payload": "16MiB", "topology.link.rate": "10gbit"}, "42 ± 1.74"),
        ("ICNC-III", {"testbed": "virtio", "payload": "16MB", "rate": "10gbit"}, "42 ± 1.74"),
        ("ICNC-III", {"testbed": "virtio", "payload": "1MiB", "rate": "10gbit"}, None),
        ("ICNC-IV", {"testbed": "physical", "payload": "500B", "rate": "1gbit"}, "1.34"),
        ("ICNC-VII", {"testbed": "e1000", "payload": "1MiB", "rate": "1gbit"}, "0.24 ± 0.03"),
        ("ICNC-I", {"testbed": "virtio", "payload": None, "rate": "1gbit"}, None),
    ],
)
def test_a_printed_number_is_found_by_the_levels_of_a_study(table: str, levels: dict[str, Any], printed: str | None) -> None:
    assert printed_at(library(), library().table(table), levels) == printed


def test_every_format_has_them(tmp_path: Path) -> None:
    tables, result = results(tmp_path, [asked(title="A & B", spread="stdev"), asked(title="Second")])
    html, markdown, latex = (rendered(style, tables, result) for style in ("html", "markdown", "latex"))
    assert '<a href="#tables">Tables</a>' in html and "<h3>A &amp; B</h3>" in html and "1,000 ± 10ᵃ" in html
    assert "## A & B" in markdown and "| 500B | 1,000 ± 10ᵃ | 500 ± 10ᵃ | 1,100 ± 10ᵃ |" in markdown
    assert r"A \& B" in latex and r"1,000 $\pm$ 10$^{a}$" in latex and latex.isascii()
    assert "\\label{tab-2-requests-per-second}" in latex


def test_as_csv_they_are_in_base_units_a_row_a_number(tmp_path: Path) -> None:
    tables, result = results(tmp_path, [asked(), asked(metric="bytes", title="None")])
    rows = list(csv.DictReader(io.StringIO(as_csv(study_tables(tables, result)))))
    assert len(rows) == 12
    assert rows[1]["levels"] == "payload=500B; testbed=e1000"
    assert (rows[1]["n"], rows[1]["mean"], rows[1]["cautions"]) == ("3", "500.0", "few_replicates")
    assert {row["mean"] for row in rows[6:]} == {""}
    assert rendered("tables-csv", tables, result).count("\n") == 13


def test_a_study_without_tables_has_no_section_of_them(tmp_path: Path) -> None:
    tables, result = results(tmp_path, [])
    assert 'id="tables"' not in rendered("html", tables, result)
