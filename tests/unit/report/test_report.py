"""Reports: numbers for readers, escaping, each format's shape. What the page looks like is tested in a browser."""

from __future__ import annotations

import csv
import io
import re
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from synthetic_results import planted_response, write_study
from twinbed.analyses.compare.method import analysis as compare
from twinbed.analyses.compare.plots import distribution
from twinbed.analyses.compare.terminal import print_comparison
from twinbed.cli.report import command
from twinbed.model.caution import Caution, Kind
from twinbed.render import latex_text, plots
from twinbed.render.terminal import Terminal
from twinbed.report.latex import latex
from twinbed.report.markdown import markdown
from twinbed.report.page import page
from twinbed.report.styles import rendered
from twinbed.results.extract import extract
from twinbed.show import quantities
from twinbed.show.quantities import two_digits
from twinbed.workloads.planted import planted

NASTY = "<script>alert(1)</script>&\"'%$#_{}~^\\|`*"


@pytest.mark.parametrize(
    ("value", "text"), [(-3e-14, "0"), (0.0, "0"), (-0.012, "-0.012"), (0.00001234, "+0.000012"), (1234.5, "+1,234")]
)
def test_two_digits_have_no_powers_of_ten(value: float, text: str) -> None:
    assert two_digits(value, "+") == text


@pytest.mark.parametrize(
    ("value", "half", "text"),
    [
        (14420.3, 74.3, "14,420 ± 74"),
        (112.0, 0.012, "112.000 ± 0.012"),
        (6.97, 0.006, "6.9700 ± 0.0060"),
        (0.26, 0.03, "0.260 ± 0.030"),
        (1250, 0, "1,250 ± 0"),
        (5, 20, "5 ± 20"),
        (5.0, None, "5"),
        (None, None, "–"),
        (123456.0, 1e-9, "123,456 ± <1"),
    ],
)
def test_means_have_two_digits_of_their_half_width(value: float | None, half: float | None, text: str) -> None:
    assert quantities.plus_minus(value, half) == text


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (1.0, "1.000"),
        (0.9953, "0.995"),
        (12.345, "12.3"),
        (0.0368, "0.0368"),
        (0.036, "0.0360"),
        (123.0, "123"),
        (0.0, "0.000"),
    ],
)
def test_ratios(value: float, text: str) -> None:
    assert quantities.ratio(value) == text


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (0.959, "4.1 % less than x"),
        (1.2, "20 % more than x"),
        (3.4, "3.4 times as much as x"),
        (1.0, "the same as x to 0.1 %"),
        (0.0004, "1/2,500 of x"),
        (0.0, "none, unlike x"),
    ],
)
def test_changes_in_words(value: float, text: str) -> None:
    assert quantities.change(value, "x") == text


@pytest.mark.parametrize(
    ("unit", "values", "factor", "shown"),
    [
        ("bytes", [1500.0, 2e6], 1e6, "MB"),
        ("bytes/request", [1250.0], 1e3, "kB"),
        ("bit/s", [941.5e6], 1e6, "Mbit/s"),
        ("s", [0.00026], 1e-6, "µs"),
        ("bytes", [0.5], 1, "B"),
        ("1/s", [14420.0], 1, "/s"),
        ("1/request", [5.0], 1, ""),
        ("s", [None, 0.0], 1, "s"),
        ("degrees", [3.0], 1, "degrees"),
    ],
)
def test_scaling(unit: str, values: list[float | None], factor: float, shown: str) -> None:
    assert quantities.unit_scale(unit, values) == quantities.UnitScale(factor, shown)


def test_latex_escapes_everything() -> None:
    assert latex_text.escape("50 % of a_b & {c} ± 1 µs") == r"50 \% of a\_b \& \{c\} $\pm$ 1 $\mu$s"
    assert latex_text.escape("\\ ~ ^ # $") == r"\textbackslash{} \textasciitilde{} \textasciicircum{} \# \$"
    assert latex_text.escape(NASTY + "日本").isascii()
    # The LaTeX Companion, table of accents; pdflatex prints them as they are here.
    assert latex_text.escape("é ü Ñ ç Å ø ß i\u0308") == r"\'{e} \"{u} \~{N} \c{c} \r{A} \o{} \ss{} \"{i}"


class Checker(HTMLParser):
    """Keeps tags that are open, texts, and attributes that could fetch something."""

    VOID = frozenset({"meta", "br", "input", "path", "line", "rect", "img", "link", "circle"})

    def __init__(self) -> None:
        super().__init__()
        self.open: list[str] = []
        self.seen: list[str] = []
        self.ids: list[str] = []
        self.fetched: list[str] = []
        self.targets: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.seen.append(tag)
        found = dict(attrs)
        self.ids += [found["id"] or ""] if "id" in found else []
        for name in ("src", "href", "xlink:href", "action", "data"):
            value = found.get(name)
            if value is not None:
                (self.targets if value.startswith("#") else self.fetched).append(value)
        if tag not in self.VOID:
            self.open.append(tag)

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.seen.append(tag)

    def handle_endtag(self, tag: str) -> None:
        assert self.open and self.open.pop() == tag, f"</{tag}> closes nothing"


@pytest.fixture
def nasty(tmp_path: Path) -> Any:
    """A study whose every name is meant to break out of its place."""
    other = f"two{NASTY}"
    respond = planted_response({"one": 1.0, other: 2.0}, 0.02, seed=3)
    applied = [{"subject": NASTY, "setting": NASTY, "asked": 1, "found": NASTY, "source": NASTY}]
    cautions = [Caution(Kind.SOFTWARE_CPU, NASTY)]
    passport = {NASTY: {NASTY: NASTY}}
    write_study(
        tmp_path, ["one", other], {NASTY: [NASTY, "b"]}, 3, respond, cautions=cautions, applied=applied, passport=passport
    )
    (tmp_path / "study.yaml").write_text(f"study: {NASTY}\n")
    tables = extract(tmp_path, {"planted": planted}, {})
    return tables, compare.run(tables)


def test_the_page_is_whole_and_fetches_nothing(nasty: Any) -> None:
    page = rendered("html", *nasty)
    checker = Checker()
    checker.feed(page)
    assert checker.open == []
    assert checker.fetched == []
    assert len(checker.ids) == len(set(checker.ids))
    assert {target[1:] for target in checker.targets} <= set(checker.ids)
    assert checker.seen.count("script") == 1
    assert "<script>alert" not in page
    assert not re.findall(r"url\(|@import", page)
    for section in ("verdict", "layer-application", "layer-network", "cautions", "testbeds", "runs", "repeat", "method"):
        assert section in checker.ids


def test_every_caution_is_on_the_page_with_its_advice(nasty: Any) -> None:
    tables, result = nasty
    page = rendered("html", tables, result)
    assert result.cautions
    for caution in result.cautions:
        assert caution.kind.advice.split("`")[0][1:30] in page


def test_markdown_tables_are_rectangular(nasty: Any) -> None:
    text = rendered("markdown", *nasty)
    tables = [part.split("\n") for part in re.findall(r"(?:^\|.*\n)+", text, re.MULTILINE)]
    columns = [{len(re.findall(r"(?<!\\)\|", row)) for row in table if row} for table in tables]
    # The matrix, three metrics, their spreads, and the analysis of variance of the application's.
    assert columns == [{4}] + [{8}] * 3 + [{10}] + [{9}]


def test_latex_is_balanced(nasty: Any) -> None:
    text = rendered("latex", *nasty)
    assert text.isascii()
    # The matrix, three metrics, their spreads, and the analysis of variance of the application's.
    assert text.count(r"\begin{table}") == text.count(r"\end{table}") == 1 + 3 + 3 + 1
    bare = re.sub(r"\\[{}]", "", text)
    assert bare.count("{") == bare.count("}")
    bodies = re.findall(r"\\begin\{tabular\}\{([lr]+)\}(.*?)\\end\{tabular\}", text, re.DOTALL)
    assert [len(columns) for columns, _ in bodies] == [3, 3, 3, 3, 9, 9, 9, 8]
    for columns, body in bodies:
        rows = [line for line in body.splitlines() if line.endswith(r"\\")]
        assert rows and all(len(re.findall(r"(?<!\\)&", row)) == len(columns) - 1 for row in rows)


def test_csv_reads_back(nasty: Any) -> None:
    tables, result = nasty
    rows = list(csv.DictReader(io.StringIO(rendered("csv", tables, result))))
    assert len(rows) == len(result.comparisons)
    assert {row[f"factor:{NASTY}"] for row in rows} == {NASTY, "b"}
    assert float(rows[0]["ratio"]) == result.comparisons[0].ratio


@pytest.mark.parametrize("style", ["html", "markdown", "latex", "csv"])
def test_nothing_to_compare_is_still_a_report(tmp_path: Path, style: str) -> None:
    write_study(tmp_path, ["one"], {}, 1, planted_response({"one": 1.0}, 0.02, seed=3))
    tables = extract(tmp_path, {"planted": planted}, {})
    assert rendered(style, tables, compare.run(tables))


def test_the_command_writes_and_names_its_file(tmp_path: Path) -> None:
    write_study(tmp_path, ["one", "two"], {}, 2, planted_response({"one": 1.0, "two": 1.0}, 0.02, seed=3))
    runner = CliRunner()
    found = runner.invoke(command, [str(tmp_path)], standalone_mode=False)
    assert found.exception is None
    assert found.output.strip() == str(tmp_path / "report.html")
    assert (tmp_path / "report.html").read_text().startswith("<!doctype html>")
    assert runner.invoke(command, [str(tmp_path), "--csv", "-o", "-"], standalone_mode=False).output.startswith("layer,metric")
    refused = runner.invoke(command, [str(tmp_path), "-o", str(tmp_path / "no" / "x.html")], standalone_mode=False)
    assert "x.html" in str(refused.exception) and getattr(refused.exception, "exit_code", None) == 2


def test_a_study_of_one_testbed_shows_what_was_measured(tmp_path):
    """Nothing to compare, yet the means of every cell: of 1000 and 1020 the geometric one is 1009.95, and the interval by t of
    their logarithms, (ln 1.02 / 2) 12.706 to both sides, 890.6 to 1145.4."""
    folder = tmp_path / "one"

    def respond(testbed, levels, replicate):
        rate = (1000.0, 1020.0)[replicate]
        return {"requests": 100, "requests_per_second": rate, "packets": 1200, "bytes": 120_000}

    write_study(folder, ["only"], {"payload": ["500B", "1MiB"]}, 2, respond)
    store = extract(folder, {"planted": planted}, {})
    result = compare.run(store, compare.params(by="testbed"))
    console = Terminal(width=100, record=True, file=io.StringIO())
    print_comparison(result, console)
    said = console.export_text()
    assert "Nothing to compare" in said and "--by FACTOR compares levels. Factors here: payload." in said
    assert said.count("1,010 [891, 1,145]") == 2
    text = page(store, result)
    assert text.count("1,010 [891, 1,145]") >= 2
    assert "payload 1MiB" in text
    for shown in (said, text):
        assert "othing to compare: only only has values." in " ".join(shown.split())
    assert markdown(store, result).count(r"| payload 500B | only | 1,010 \[891, 1,145\] ") == 1
    assert latex(store, result).count(r"payload 500B & only & 1,010 [891, 1,145] ") == 1


def test_runs_without_any_value_are_said_to_have_none(tmp_path):
    write_study(
        tmp_path, ["one", "two"], {}, 2, lambda *_: dict.fromkeys(("requests", "requests_per_second", "packets", "bytes"))
    )
    result = compare.run(extract(tmp_path, {"planted": planted}, {}))
    console = Terminal(width=100, record=True, file=io.StringIO())
    print_comparison(result, console)
    assert "Nothing to compare: no run has a value." in console.export_text()


def test_numbers_below_a_plot_of_values_are_told_apart_however_close_they_are(tmp_path):
    def respond(testbed, levels, replicate):
        rate = 1000.01 + 0.01 * replicate + 0.02 * (testbed == "two")
        return {"requests": 100, "requests_per_second": rate, "packets": 1200, "bytes": 120_000}

    write_study(tmp_path, ["one", "two"], {}, 3, respond)
    found = compare.run(extract(tmp_path, {"planted": planted}, {}))
    drawn = plots.svg(distribution([each for each in found.comparisons if each.metric == "requests_per_second"]), "values")
    labels = re.findall(r">([\d,.]+)</text>", drawn)
    assert len(set(labels)) == len(labels) >= 3
    assert all(999.9 < float(label.replace(",", "")) < 1000.2 for label in labels)
