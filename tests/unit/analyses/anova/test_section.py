"""What explains headline metrics, in the report: shares that follow from how the runs were planted, and why there are none."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping
from html import escape
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from synthetic_results import write_run, write_study
from twinbed.analyses.anova.method import AnovaParams
from twinbed.analyses.anova.method import analysis as anova
from twinbed.analyses.anova.method import headline_analyses as explained
from twinbed.analyses.anova.result import Anova, Unexplained
from twinbed.analyses.anova.words import explained as section
from twinbed.analyses.compare.method import analysis as compare
from twinbed.metrics.metric import Scale
from twinbed.model.tables import Tables
from twinbed.observations.frame import Frame, encoded
from twinbed.render.sections import body
from twinbed.report.styles import rendered
from twinbed.results.extract import extract
from twinbed.workloads.planted import planted

FACTORS = {"payload": ["500B", "1MiB"]}


def answer(rate: float) -> dict[str, float | None]:
    return {"requests": 100, "requests_per_second": rate, "packets": 1000, "bytes": 64000}


def orthogonal(testbed: str, levels: Mapping[str, Any], replicate: int) -> dict[str, float | None]:
    """Logarithms are off their mean by ±8 (testbed), ±√32 (payload) and ±2 (replicate) hundredths: squares as 64 to 32 to 4."""
    signs = (testbed == "two", levels.get("payload") == "1MiB", replicate % 2)
    sizes = (0.08, math.sqrt(0.0032), 0.02)
    return answer(1000 * math.exp(sum(size if sign else -size for sign, size in zip(signs, sizes, strict=True))))


def study(folder: Path, testbeds: list[str], factors: Mapping[str, list[str]], replicates: int, respond: Any) -> Tables:
    return extract(write_study(folder, testbeds, factors, replicates, respond), {"planted": planted}, {})


def reason(tables: Tables) -> str:
    [result] = explained(tables)
    assert isinstance(result, Unexplained) and result.response == "requests_per_second"
    page = rendered("html", tables, compare.run(tables))
    section = page[page.index('<section id="explained" ') :].split("</section>")[0]
    assert section.count("<h3>") == 1 and "<table>" not in section and "<figure>" not in section
    assert f"% Cannot analyse its variance: {result.reason}"[2:30] in rendered("latex", tables, compare.run(tables))
    return result.reason


def test_shares_are_those_that_were_planted(tmp_path: Path) -> None:
    tables = study(tmp_path, ["one", "two"], FACTORS, 2, orthogonal)
    [outcome] = explained(tables)
    assert isinstance(outcome, Anova)
    assert {line.term: round(line.share, 9) for line in outcome.lines} == {
        ("testbed",): 0.64,
        ("payload",): 0.32,
        ("testbed", "payload"): 0.0,
    }
    assert outcome.errors.share == pytest.approx(0.04) and outcome.errors.freedom == 4
    # The interaction is 0 but for rounding.
    sentence = "payload 32.00 %, testbed:payload <0.01 % and errors 4.00 %"
    result = compare.run(tables)
    page = rendered("html", tables, result)
    section = page[page.index('<section id="explained" ') :].split("</section>")[0]
    assert escape(sentence) in section and 'href="#explained"' in page
    assert page.index('id="layer-application"') < page.index('id="explained"') < page.index('id="runs"')
    # Two effects, an interaction, two differences, residuals, Q-Q.
    assert "<figure>" not in section and "--no-log" in section
    whole = rendered("html", tables, result, whole=True)
    assert whole[whole.index('<section id="explained" ') : whole.index('id="runs"')].count("<figure>") >= 7
    assert sentence.replace("<", r"\<") in rendered("markdown", tables, result)
    latex = rendered("latex", tables, result)
    assert sentence.replace("%", r"\%").replace("<", r"\textless{}") in latex
    assert re.search(r"^    testbed & 0\.0512000 & 64\.00 \\% & 1 & ", latex, re.MULTILINE)


def test_spreads_in_latex_are_those_of_the_page(tmp_path: Path) -> None:
    """Two of 10 % and 1 % of the mean: sd of logarithms 0.1 and 0.01."""

    def respond(testbed: str, levels: Mapping[str, Any], replicate: int) -> dict[str, float | None]:
        size = 0.1 if testbed == "two" else 0.01
        return answer(1000 * math.exp(size * (-1, 0, 1)[replicate]))

    tables = study(tmp_path, ["one", "two"], {}, 3, respond)
    latex = rendered("latex", tables, compare.run(tables))
    spreads = latex[latex.index("tab-spread-requests-per-second") :]
    assert re.search(r"all runs & two & 10 times as much & [^&]* & 10 \\% & 1\.0 \\% & ", spreads)


def test_one_run_a_cell_is_said(tmp_path: Path) -> None:
    assert reason(study(tmp_path, ["one", "two"], {}, 1, orthogonal)) == "one value a cell, so errors cannot be estimated"


def test_no_variation_is_said(tmp_path: Path) -> None:
    tables = study(tmp_path, ["one", "two"], FACTORS, 2, lambda *_: answer(7.0))
    assert reason(tables) == "requests_per_second is 7 in every row, so there is no variation"


def test_a_testbed_without_runs_is_said(tmp_path: Path) -> None:
    folder = write_study(tmp_path, ["one"], {}, 3, orthogonal)
    write_run(folder, "two", {"testbed": "two"}, 0, answer(1.0), failed="it did not start")
    assert reason(extract(folder, {"planted": planted}, {})) == "no factor has two levels"


def test_cells_that_cannot_be_told_apart_are_said(tmp_path: Path) -> None:
    folder = write_study(tmp_path, ["one"], {"payload": ["500B"]}, 2, orthogonal)
    for replicate in range(2):
        levels = {"testbed": "two", "payload": "1MiB"}
        write_run(folder, "two", levels, replicate, orthogonal("two", levels, replicate))
    assert "they are collinear" in reason(extract(folder, {"planted": planted}, {}))


def test_without_a_factor_there_is_no_section(tmp_path: Path) -> None:
    tables = study(tmp_path, ["one"], {}, 3, orthogonal)
    assert explained(tables) == ()
    for style in ("html", "markdown"):
        assert "Which factors matter" not in rendered(style, tables, compare.run(tables))


def test_a_page_of_many_runs_stays_light() -> None:
    """Five thousand runs of three factors: no more than 300 kB, with the residuals thinned and that said."""
    chance = np.random.default_rng(1)
    levels = {"testbed": 3, "payload": 4, "offload": 2}
    codes = {name: chance.integers(0, count, 5000) for name, count in levels.items()}
    columns = {name: encoded(name, [f"{name}-{at}" for at in of]) for name, of in codes.items()}
    y = np.exp(sum(0.1 * of for of in codes.values()) + chance.normal(0, 0.1, 5000))
    frame = Frame("results", "rate", "1/s", Scale.RATIO, y, columns, tuple(columns))
    text = str(body(section([anova.run(frame, AnovaParams())])))
    assert len(text.encode()) < 300_000
    assert text.count("300 of 5,000 are drawn.</figcaption>") == 2 and text.count('data-said="quantile ') >= 300
