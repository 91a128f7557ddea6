"""`twinbed analyse regression`: of a file and of a study, every format, what fails and what to do, and refusals."""

from __future__ import annotations

import csv
import io
import json
import math
import re
import shutil
import subprocess
from collections.abc import Mapping
from pathlib import Path
from statistics import fmean, stdev
from typing import Any
from xml.etree import ElementTree

import numpy as np
import pytest
from click.testing import CliRunner, Result

from synthetic_results import write_study
from twinbed.cli.main import cli
from twinbed.cli.main import run as run_twinbed
from twinbed.model.caution import Caution, Kind

STUDY = Path(__file__).parents[3] / "golden/regression/study.csv"
EXPECTED = STUDY.with_name("expected.csv")
FORMULA = (
    "log(rate) ~ centre(pairs, 1) + I(centre(pairs, 1)^2) + nic + cluster + gre + load"
    " + centre(pairs, 1):nic + centre(pairs, 1):gre"
)


def made(*arguments: str | Path) -> Result:
    done = CliRunner().invoke(
        cli, ["analyse", "regression", *map(str, arguments)], catch_exceptions=False, standalone_mode=False
    )
    assert done.exit_code == 0, done.output
    return done


def as_json(*arguments: str | Path) -> dict[str, Any]:
    def refuse(value: str) -> float:
        raise AssertionError(f"{value} in JSON")

    data: dict[str, Any] = json.loads(made(*arguments, "--format", "json").stdout, parse_constant=refuse)
    return data


def refused(capsys: pytest.CaptureFixture[str], *arguments: str | Path) -> str:
    assert run_twinbed(["analyse", "regression", *map(str, arguments)]) == 2
    return capsys.readouterr().err


def expected(what: str) -> dict[str, float]:
    with EXPECTED.open() as file:
        return {row["name"]: float(row["value"]) for row in csv.DictReader(file) if row["what"] == what}


def write_csv(path: Path, columns: Mapping[str, Any]) -> Path:
    with path.open("w") as file:
        writer = csv.writer(file)
        writer.writerow(columns)
        writer.writerows(zip(*columns.values(), strict=True))
    return path


def test_json_has_what_r_has() -> None:
    data = as_json(STUDY, "--formula", FORMULA, "--base", "nic=e1000", "--effect", "nic", "--at", "pairs=40")
    wanted = expected("lm.estimate")
    estimates = {row["term"]: row["estimate"] for row in data["coefficients"]}
    assert estimates["nic virtio"] == pytest.approx(wanted["nicvirtio"], rel=1e-10)
    assert estimates["centre(pairs, 1) * nic container"] == pytest.approx(wanted["pairs1:niccontainer"], rel=1e-10)
    for row in data["effects"]:
        percent = expected(f"percent.{row['to']}")
        assert [row["change"], row["change_low"], row["change_high"]] == pytest.approx(list(percent.values()), rel=1e-9)
        assert (row["base"], row["at"]) == ("e1000", "pairs=40")
    assert len(data["effects"]) == 2
    assert data["models"][0]["observations"] == 252
    assert len(data["points"]) == 252
    assert data["box_cox"][0]["best"] == pytest.approx(expected("boxcox")["best"], abs=1e-6)


def test_robust_and_mixed_fits_stand_beside() -> None:
    data = as_json(STUDY, "--formula", FORMULA, "--base", "nic=e1000", "--robust", "tukey", "--random", "block")
    assert [row["method"] for row in data["models"]] == ["least squares", "tukey", "mixed"]
    mixed = {row["term"]: row for row in data["coefficients"] if row["method"] == "mixed"}
    assert mixed["load"]["standard_error"] == pytest.approx(expected("lme.error")["load"], rel=1e-6)
    assert mixed["load"]["df"] == expected("lme.df")["load"]
    assert data["models"][2]["intraclass_correlation"] == pytest.approx(expected("lme")["icc"], rel=1e-5)


def test_clustered_errors() -> None:
    data = as_json(STUDY, "--formula", FORMULA, "--base", "nic=e1000", "--cluster", "block")
    row = next(row for row in data["coefficients"] if row["term"] == "load")
    assert (row["errors"], row["df"]) == ("clustered by block", 6)
    assert row["standard_error"] == pytest.approx(expected("clustered")["load"], rel=1e-9)
    text = made(STUDY, "--formula", FORMULA, "--cluster", "block").stdout
    assert "Clustered by block errors: requested; 7 clusters, which make intervals too short" in text


def unequal(path: Path, rows: int = 300) -> Path:
    chance = np.random.default_rng(4)
    x = chance.uniform(1, 10, rows)
    return write_csv(path, {"y": (50 + x + chance.normal(0, 1, rows) * 0.3 * x).round(6), "x": x.round(6)})


def test_unequal_variances_are_answered_by_hc3_and_it_is_said(tmp_path: Path) -> None:
    file = unequal(tmp_path / "y.csv")
    text = made(file, "--formula", "y ~ x").stdout
    assert "FAILS  equal variances: variances differ with the explaining variables (Breusch-Pagan (Koenker)" in text
    assert "-> the HC3 errors and intervals hold anyway" in text
    assert "HC3 errors: the residuals' variances are shown to differ." in text
    rows = {errors: as_json(file, "--formula", "y ~ x", "--errors", errors) for errors in ("auto", "classical", "hc3")}
    errors = {name: result["coefficients"][1]["standard_error"] for name, result in rows.items()}
    assert errors["auto"] == errors["hc3"] != errors["classical"]


def test_equal_variances_keep_the_classical_errors() -> None:
    text = made(STUDY, "--formula", FORMULA).stdout
    assert "Classical errors: the residuals' variances are not shown to differ." in text


def test_text_says_effects_as_percentages() -> None:
    text = made(STUDY, "--formula", FORMULA, "--base", "nic=e1000", "--effect", "nic=virtio", "--at", "pairs=40").stdout
    wanted = ", ".join(f"{100 * value:+.1f}" for value in list(expected("percent.virtio").values())[1:])
    assert f"that is {100 * expected('percent.virtio')['estimate']:+.1f} % [{wanted}] %" in text
    assert "nic virtio compared with e1000 at pairs 40" in text
    gvif, scaled = expected("gvif")["nic"], expected("gvif.scaled")["nic"]
    assert f"nic {scaled:.3f} ({gvif:.3f}, 2 df)" in text
    assert "Base levels: nic e1000, cluster C1, gre off." in text


def test_a_number_from_one_value_to_another() -> None:
    row = as_json(STUDY, "--formula", "log(rate) ~ pairs", "--effect", "pairs=40:1")["effects"][0]
    slope = as_json(STUDY, "--formula", "log(rate) ~ pairs")["coefficients"][1]
    assert row["difference"] == pytest.approx(39 * slope["estimate"])
    assert row["change"] == pytest.approx(math.expm1(39 * slope["estimate"]))


def test_other_logarithms_are_percentages_too() -> None:
    changes = [
        as_json(STUDY, "--formula", f"{log}(rate) ~ gre", "--effect", "gre")["effects"][0]["change"] for log in ("log", "log2")
    ]
    assert changes[1] == pytest.approx(changes[0], rel=1e-12)


def test_box_cox_takes_the_simple_power_that_the_data_allow() -> None:
    data = as_json(STUDY, "--formula", FORMULA.replace("log(", "boxcox("))
    assert data["models"][0]["response"] == "log(rate)"
    plain = as_json(STUDY, "--formula", FORMULA)
    assert [row["estimate"] for row in data["coefficients"]] == pytest.approx(
        [row["estimate"] for row in plain["coefficients"]], rel=1e-9
    )
    given = as_json(STUDY, "--formula", FORMULA.replace("log(rate)", "boxcox(rate, 0.5)"))
    assert given["models"][0]["response"] == "rate^(0.5)"
    check = next(row for row in given["checks"] if row["test"] == "Box-Cox")
    assert (check["holds"], check["advice"].startswith("explain log(y)")) == (False, True)


def test_models_side_by_side() -> None:
    text = made(STUDY, "--formula", "log(rate) ~ nic", "--formula", "log(rate) ~ nic * gre", "--stars").stdout
    head, *lines = text[text.index("Dependent") :].splitlines()
    assert head.split() == ["Dependent", "variable", "log(rate)", "log(rate)"]
    constant = next(at for at, line in enumerate(lines) if line.startswith("Constant"))
    assert lines[constant - 1].startswith("nic virtio * gre on")
    assert "***" in lines[constant]
    assert any(line.startswith("Observations") and line.split() == ["Observations", "252", "252"] for line in lines)
    assert "* p < 0.1; ** p < 0.05; *** p < 0.01." in text
    assert "***" not in made(STUDY, "--formula", "log(rate) ~ nic").stdout


def test_csv() -> None:
    rows = list(csv.DictReader(io.StringIO(made(STUDY, "--formula", "rate ~ nic", "--format", "csv").stdout)))
    assert [row["term"] for row in rows] == ["Constant", "nic e1000", "nic virtio"]
    assert float(rows[0]["low"]) < float(rows[0]["estimate"]) < float(rows[0]["high"])


def test_latex(tmp_path: Path) -> None:
    odd = write_csv(
        tmp_path / "odd_&.csv",
        {"a_b%": [1.0, 2.5, 3, 4.2, 5, 6.5, 7], "nic": ["x_1", "50%", "x_1", "#", "50%", "#", "x_1"]},
    )
    made(odd, "--formula", "`a_b%` ~ nic", "--stars", "-o", tmp_path / "one.tex")
    made(STUDY, "--formula", FORMULA, "--formula", "rate ~ nic", "-o", tmp_path / "two.tex")
    for name, columns in (("one", 2), ("two", 3)):
        text = (tmp_path / f"{name}.tex").read_text()
        assert text.isascii()
        assert all(text.count(rule) == count for rule, count in (("\\toprule", 1), ("\\midrule", 2), ("\\bottomrule", 1)))
        rows = [line for line in text.splitlines() if line.endswith("\\\\")]
        assert {len(re.split(r"(?<!\\)&", row)) for row in rows} == {columns}
        assert f"\\begin{{tabular}}{{{'l' * columns}}}" in text
    assert "nic 50\\%" in (tmp_path / "one.tex").read_text()
    # Where there is LaTeX, its own word on it.
    if compiler := shutil.which("pdflatex"):
        whole = "\\documentclass{article}\\usepackage{booktabs}\\begin{document}\\input{one.tex}\\input{two.tex}\\end{document}"
        (tmp_path / "all.tex").write_text(whole)
        argv = [compiler, "-interaction=nonstopmode", "-halt-on-error", "all.tex"]
        done = subprocess.run(argv, cwd=tmp_path, capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stdout[-2000:]


def test_the_page_holds_the_table_and_the_figures(tmp_path: Path) -> None:
    made(STUDY, "--formula", FORMULA, "--effect", "nic", "--at", "pairs=40", "-o", tmp_path / "page.html")
    page = (tmp_path / "page.html").read_text()
    assert page.count("<figure>") == 4
    for text in ("centre(pairs, 1) * nic virtio", "Scale-location", "GVIF^(1/(2 df))", "Assumptions of the model"):
        assert text in page
    for part in page.split("<figure>")[1:]:
        ElementTree.fromstring(part[part.index("<svg") : part.index("</svg>") + 6])


def respond(testbed: str, levels: Mapping[str, Any], replicate: int) -> Mapping[str, float | None]:
    """Virtio answers 20 % more at 500B, 10 % less at 1KiB."""
    ratio = {("virtio", "500B"): 1.2, ("virtio", "1KiB"): 0.9}.get((testbed, levels["payload"]), 1.0)
    noise = math.exp(0.01 * math.sin(7 * replicate + 3 * len(testbed) + len(levels["payload"])))
    rate = 1000 * ratio * noise
    return {"requests": round(rate), "requests_per_second": rate, "packets": 10, "bytes": 10}


def test_a_study_with_its_reference(tmp_path: Path) -> None:
    write_study(tmp_path, ["virtio", "physical"], {"payload": ["500B", "1KiB"]}, 12, respond, reference="physical")
    formula = "log(requests_per_second) ~ testbed * payload"
    for payload, change in (("500B", 0.2), ("1KiB", -0.1)):
        data = as_json(tmp_path, "--formula", formula, "--effect", "testbed", "--at", f"payload={payload}")
        (row,) = data["effects"]
        assert (row["to"], row["base"], data["unit"]) == ("virtio", "physical", "1/s")
        assert row["change"] == pytest.approx(change, abs=0.03)


def test_sizes_are_numbers_within_a_function(tmp_path: Path) -> None:
    write_study(tmp_path, ["virtio", "physical"], {"payload": ["512B", "1KiB", "2KiB"]}, 4, respond, reference="physical")
    formula = "log(requests_per_second) ~ testbed * log2(payload)"
    data = as_json(tmp_path, "--formula", formula, "--effect", "payload=2KiB:512B", "--at", "testbed=virtio")
    slopes = {row["term"]: row["estimate"] for row in data["coefficients"]}
    assert list(slopes) == ["Constant", "testbed virtio", "log2(payload)", "testbed virtio * log2(payload)"]
    both = slopes["log2(payload)"] + slopes["testbed virtio * log2(payload)"]
    assert data["effects"][0]["difference"] == pytest.approx(2 * both)
    plain = as_json(tmp_path, "--formula", "log(requests_per_second) ~ testbed + log2(payload)", "--effect", "testbed")
    assert plain["effects"][0]["difference"] == pytest.approx(plain["coefficients"][1]["estimate"])


def test_cautions_of_the_runs_stand_beside(tmp_path: Path) -> None:
    caution = Caution(Kind.CAPTURE_DROPS, "7 packets")
    write_study(tmp_path, ["physical", "virtio"], {"payload": ["500B", "1KiB"]}, 3, respond, cautions=[caution])
    data = as_json(tmp_path, "--formula", "requests_per_second ~ testbed")
    about = {"kind": "capture_drops", "detail": "6 of 6 runs: 7 packets"}
    assert [each for each in data["cautions"] if each["kind"] == "capture_drops"] == [
        {**about, "subject": testbed} for testbed in ("physical", "virtio")
    ]
    assert (
        "capture lost packets (virtio, 6 of 6 runs: 7 packets): "
        in made(tmp_path, "--formula", "requests_per_second ~ testbed").stdout
    )
    made(tmp_path, "--formula", "requests_per_second ~ testbed", "-o", tmp_path / "page.html")
    assert "The capture lost packets (virtio" in (tmp_path / "page.html").read_text()


def test_rows_of_a_block_that_resemble_each_other(tmp_path: Path) -> None:
    def drifting(testbed: str, levels: Mapping[str, Any], replicate: int) -> Mapping[str, float | None]:
        noise = math.sin(9 * replicate + 4 * len(testbed) + len(levels["payload"]))
        return {"requests": 1, "requests_per_second": 1000 + 50 * (replicate % 4) + noise, "packets": 10, "bytes": 10}

    write_study(tmp_path, ["physical", "virtio"], {"payload": ["500B", "1KiB"]}, 8, drifting)
    text = made(tmp_path, "--formula", "requests_per_second ~ testbed").stdout
    assert "-> rows of one block resemble each other: --random block or --cluster block" in text


def test_a_study_that_compares_within_blocks_is_explained_within_blocks(tmp_path: Path) -> None:
    """In balanced blocks the effect is the mean of the differences within blocks, and Student's t of those has its error: by
    exact arithmetic."""

    def drifting(testbed: str, levels: Mapping[str, Any], replicate: int) -> Mapping[str, float | None]:
        noise = {"physical": 0.0, "virtio": 10.0}[testbed] + 3 * math.sin(9 * replicate + 4 * len(testbed))
        return {"requests": 1, "requests_per_second": 1000 + 200 * (replicate % 4) + noise, "packets": 10, "bytes": 10}

    write_study(tmp_path, ["physical", "virtio"], {}, 8, drifting, reference="physical")
    outline = json.loads((tmp_path / "study.json").read_text())
    formula = ("--formula", "requests_per_second ~ testbed", "--effect", "testbed")
    (tmp_path / "study.json").write_text(json.dumps(outline | {"comparison": "independent"}))
    alone = as_json(tmp_path, *formula)
    (tmp_path / "study.json").write_text(json.dumps(outline | {"comparison": "paired"}))
    within = as_json(tmp_path, *formula)
    differences = [10 + 3 * (math.sin(9 * n + 24) - math.sin(9 * n + 32)) for n in range(8)]
    error = stdev(differences) / math.sqrt(8)
    (effect,) = within["effects"][:1]
    assert effect["difference"] == pytest.approx(fmean(differences)) and effect["standard_error"] == pytest.approx(error)
    assert effect["df"] == 7 and within["coefficients"][0]["method"] == "mixed"
    assert {row["method"] for row in alone["coefficients"]} == {"least squares"}
    assert alone["effects"][0]["standard_error"] > 10 * error
    asked = as_json(tmp_path, *formula, "--errors", "classical")
    assert {row["method"] for row in asked["coefficients"]} == {"least squares"}
    assert "the study compares within blocks" in made(tmp_path, *formula).stdout


def test_missing_values_are_counted(tmp_path: Path) -> None:
    columns = {"y": [1, 2.1, "", 4, 5.3, 6], "x": [1, 2, 3, "", 5, 6], "g": ["a", "b", "a", "b", "a", "b"]}
    data = as_json(write_csv(tmp_path / "y.csv", columns), "--formula", "y ~ x")
    assert data["left_out"] == {"rows without y": 1, "rows without x": 1}
    assert data["models"][0]["observations"] == 4
    assert "Left out: 1 rows without x." in made(tmp_path / "y.csv", "--formula", "y ~ x").stdout


def test_an_exact_fit_has_no_number_without_its_reason(tmp_path: Path) -> None:
    data = as_json(write_csv(tmp_path / "y.csv", {"y": [1, 2, 3, 4], "x": [1, 2, 3, 4]}), "--formula", "y ~ x")
    assert data["notes"] == [{"model": 1, "note": "The model fits every row exactly, so there are no errors to test with."}]
    assert {row["p"] for row in data["coefficients"]} == {None}


def test_a_row_alone_in_its_combination_is_said(tmp_path: Path) -> None:
    columns = {"y": [1, 2.5, 3.2, 4.5, 5], "x": [1, 2, 3, 4, 5], "g": ["a", "a", "a", "a", "b"]}
    text = made(write_csv(tmp_path / "y.csv", columns), "--formula", "y ~ x + g").stdout
    assert "rows that alone determine a coefficient: 1" in text
    assert "-> give every combination of levels at least two rows" in text
    assert as_json(tmp_path / "y.csv", "--formula", "y ~ x + g")["points"][4]["cooks_distance"] is None


@pytest.mark.parametrize(
    ("arguments", "expected"),
    [
        (["--formula", "rate ~ nic +"], "formula, character 13: expected a column or function"),
        (["--formula", "rate ~ nick"], "has no column 'nick'"),
        (["--formula", "log(load - 1) ~ nic"], "needs values above 0: 161 of 252"),
        (["--formula", "nic ~ rate"], "nic is 'e1000' in row 1"),
        (["--formula", "rate ~ nic", "--base", "nic=xen"], "the base level 'xen' of nic does not occur"),
        (["--formula", "rate ~ nic", "--base", "gre=on"], "--base: no formula has gre"),
        (["--formula", "rate ~ nic", "--base", "nic"], "--base: 'nic' is not NAME=VALUE"),
        (["--formula", "rate ~ nic", "--effect", "load=1"], "--effect: no model has load on its right side"),
        (["--formula", "rate ~ load", "--effect", "load"], "--effect: load is a number"),
        (["--formula", "rate ~ load", "--effect", "load=1"], "load has no base level"),
        (["--formula", "rate ~ load", "--effect", "load=1:1"], "not a change in this model"),
        (["--formula", "rate ~ nic * load", "--effect", "nic"], "the effect of nic depends on load"),
        (["--formula", "rate ~ nic * load", "--effect", "nic", "--at", "load=x"], "load is a number, but 'x' is not"),
        (
            ["--formula", "rate ~ nic * load", "--effect", "nic", "--at", "load=1,streams = 2"],
            "--at: 'load=1,streams = 2' has several NAME=VALUE; give an option for each: load=1 and 'streams = 2'",
        ),
        (["--formula", "rate ~ nic * load", "--effect", "nic=xen", "--at", "load=1"], "nic has no level 'xen'"),
        (["--formula", "rate ~ nic + load", "--effect", "nic", "--at", "load=1"], "no requested effect depends on it"),
        (["--formula", "rate ~ nic", "--random", "rack"], "has no column 'rack'"),
        (["--formula", "rate ~ nic", "--cluster", "nic"], "cannot estimate the error of nic e1000"),
        (["--formula", "rate ~ nic", "--formula", "load ~ nic"], "models side by side must explain one response"),
        (["--formula", "1 ~ nic"], "the formula's response is not a column"),
        (["--formula", "rate ~ pairs + I(2 * pairs)"], "columns depend on each other: (2 * pairs) = 2 (pairs)"),
        (["--formula", "rate ~ nic", "--host", "client"], "are for results folders"),
    ],
)
def test_refusals(capsys: pytest.CaptureFixture[str], arguments: list[str], expected: str) -> None:
    assert expected in refused(capsys, STUDY, *arguments)
