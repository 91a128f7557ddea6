"""``twinbed analyse anova``: what it prints and writes, in every format; what it refuses."""

from __future__ import annotations

import csv
import io
import json
import re
from html.parser import HTMLParser
from pathlib import Path

import pytest
from tests.synthetic_results import planted_response, write_study

from twinbed.cli.main import run
from twinbed.contracts import exit_codes as codes
from twinbed.model.caution import Caution, Kind

GOLDEN = Path(__file__).parents[3] / "golden" / "anova"
LOSS = (GOLDEN / "loss.csv", "--response", "loss", "--factor", "receivers")
TWO = (GOLDEN / "two_factors.csv", "--terms", "rate ~ testbed * payload")


@pytest.fixture
def shown(capfdbinary):
    """Runs a command line: exit code, standard output, standard error."""

    def command(*arguments: object) -> tuple[int, str, str]:
        code = run(["analyse", "anova", *map(str, arguments)])
        out, err = capfdbinary.readouterr()
        return code, out.decode(), err.decode()

    return command


def test_the_loss_study_in_text(shown):
    code, out, _ = shown(*LOSS, "--confidence", "99%")
    assert code == codes.DONE
    assert re.search(r"^y +64049\.0 +50$", out, re.M) and re.search(r"^y - mean +40111\.6 +100\.00 % +49$", out, re.M)
    assert re.search(r"^receivers +39981\.7 +99\.68 % +9 +4442\.41 +1367\.90 +2\.89 +<0\.0001$", out, re.M)
    assert re.search(r"^errors +129\.904 +0\.32 % +40 +3\.24760$", out, re.M)
    assert "Brown-Forsythe  FAILS" in out and "Kruskal-Wallis" in out and "Games-Howell" in out
    assert not re.search(r"^receivers$", out, re.M), "tables for programs alone are not printed"


def test_intervals_of_neighbours_with_equal_variances(shown):
    _, out, _ = shown(*LOSS, "--variances", "equal")
    # 4.3918 -+ 2.304, with t(0.975; 40) = 2.0211 and a mean square of 3.2476 from five values each.
    assert re.search(r"^5 → 6 +4\.392 +\[2\.09, 6\.70\]", out, re.M)


def test_a_truncated_set_of_levels(shown):
    _, out, _ = shown(*LOSS, "--levels", "receivers=6,7,8,9,10", "--format", "json")
    data = json.loads(out)
    assert data["n"] == 25 and data["factors"] == {"receivers": [6, 7, 8, 9, 10]}
    assert any("25 rows where receivers is not 6 or 7 or 8 or 9 or 10" in note for note in data["notes"])


def test_json_has_every_table_and_no_nan(shown):
    code, out, _ = shown(*TWO, "--format", "json", "--type", "III")
    data = json.loads(out, parse_constant=lambda name: pytest.fail(f"{name} in JSON"))
    assert code == codes.DONE and data["type"] == "III" and not data["balanced"]
    assert [row["component"] for row in data["variance"]][:3] == ["testbed", "payload", "testbed:payload"]
    assert len(data["residuals"]) == data["n"] and len(data["means"]) == 3 + 4 + 12
    assert {row["component"]: row["sum_of_squares"] for row in data["variance"]}["testbed:payload"] == pytest.approx(
        known("two_factors", "III", "testbed:payload", "Sum Sq")
    )


def known(data: str, what: str, of: str, name: str) -> float:
    with (GOLDEN / "expected.csv").open() as file:
        rows = csv.DictReader(file)
        return float(
            next(row["value"] for row in rows if (row["data"], row["what"], row["of"], row["name"]) == (data, what, of, name))
        )


PRINTED = [("variance", "f", 7), ("differences", "p", 3 + 6 + 2), ("residuals", "residual", 0)]


@pytest.mark.parametrize(("table", "column", "count"), PRINTED)
def test_csv_is_of_one_table(shown, table, column, count):
    _, out, _ = shown(*TWO, "--format", "csv", "--table", table)
    rows = list(csv.DictReader(io.StringIO(out)))
    assert column in rows[0] and len(rows) == (count or sum(1 for _ in (GOLDEN / "two_factors.csv").open()) - 1)


def test_latex_tables_are_whole(shown, tmp_path):
    code, _, _ = shown(*TWO, "-o", tmp_path / "anova.tex")
    text = (tmp_path / "anova.tex").read_text()
    assert code == codes.DONE and text.isascii() and "?" not in text
    for name in ("table", "tabular"):
        assert text.count(rf"\begin{{{name}}}") == text.count(rf"\end{{{name}}}") > 4
    for body in re.findall(r"\\begin\{tabular\}\{([lr]+)\}(.*?)\\end\{tabular\}", text, re.S):
        columns, content = body
        assert [content.count(rule) for rule in (r"\toprule", r"\midrule", r"\bottomrule")] == [1, 1, 1]
        rows = [line for line in content.splitlines() if line.endswith(r"\\")]
        assert rows and all(len(re.findall(r"(?<!\\)&", row)) == len(columns) - 1 for row in rows)
    labels = re.findall(r"\\label\{(.*?)\}", text)
    unlabelled = re.sub(r"^%.*|\\label\{.*?\}", "", text, flags=re.M)
    assert len(labels) == len(set(labels)) and not re.search(r"(?<!\\)[%#_]", unlabelled)


class Page(HTMLParser):
    """Counts elements, and fails for one that is not closed."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.open: list[str] = []
        self.count: dict[str, int] = {}
        self.feed(text)
        assert not self.open

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.count[tag] = self.count.get(tag, 0) + 1
        if tag not in {"meta", "link", "br", "img", "path", "line", "rect", "circle", "use"}:
            self.open.append(tag)
        fetched = [value or "" for name, value in attrs if name in {"src", "href", "xlink:href"}]
        assert all(value.startswith(("#", "data:")) for value in fetched)

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.count[tag] = self.count.get(tag, 0) + 1

    def handle_endtag(self, tag: str) -> None:
        if self.open and self.open[-1] == tag:
            self.open.pop()


def test_the_page_shows_effects_interactions_intervals_and_residuals(shown, tmp_path):
    code, _, _ = shown(*TWO, "-o", tmp_path / "anova.html")
    text = (tmp_path / "anova.html").read_text()
    page = Page(text)
    # Effects of two factors, their interaction, pairs of testbeds, neighbours and pairs of payloads, residuals, Q-Q.
    assert code == codes.DONE and page.count["figure"] == page.count["svg"] == 8
    captions = ["Residuals by predicted", "Normal Q-Q", "testbed:payload: means of cells", "Effects of payload"]
    for expected in (*captions, "container → e1000"):
        assert expected in text
    assert "NaN" not in text.partition("<script>")[0] and "#010101" not in text


def test_names_in_a_page_are_escaped(shown, tmp_path):
    file = tmp_path / "odd.csv"
    file.write_text("a_%,<b>y\n<script>x,1\n<script>x,2\n&z,5\n&z,6\n")
    code, _, _ = shown(file, "--response", "<b>y", "--factor", "a_%", "-o", tmp_path / "odd.html")
    text = (tmp_path / "odd.html").read_text()
    assert code == codes.DONE and "<script>x" not in text and "<b>y" not in text and "&lt;script&gt;x" in text
    shown(file, "--response", "<b>y", "--factor", "a_%", "-o", tmp_path / "odd.tex")
    assert r"a\_\% & " in (tmp_path / "odd.tex").read_text()


def test_of_results_all_factors_and_the_logarithm_by_default(shown, tmp_path):
    respond = planted_response({"one": 1.0, "two": 0.5}, 0.02, 3)
    folder = write_study(tmp_path / "results", ["one", "two"], {"payload": ["500B", "1MiB"]}, 4, respond)
    code, out, _ = shown(folder, "--response", "requests_per_second")
    assert (
        code == codes.DONE
        and out.startswith("testbed explains 9")
        and "of the variation of the logarithm of requests per second" in out
    )
    assert re.search(r"^testbed +two +8 +\S+ +\[.*\] +0\.7", out, re.M)
    ratio = re.search(r"^one → two +(0\.\d+) ", out, re.M)
    assert ratio and abs(float(ratio[1]) - 0.5) < 0.02
    _, out, _ = shown(folder, "--response", "requests_per_second", "--no-log", "--factor", "testbed")
    assert out.startswith("testbed explains ") and "of the variation of requests per second" in out and "payload" not in out


def test_cautions_travel_with_the_result(shown, tmp_path):
    respond = planted_response({"one": 1.0, "two": 0.5}, 0.02, 3)
    carried = [Caution(Kind.STEAL, "5 % of the time")]
    folder = write_study(tmp_path / "results", ["one", "two"], {}, 3, respond, cautions=carried)
    text = "took CPU time away (one, 3 of 3 runs: 5 % of the time). To do: measure on a quiet"
    _, out, _ = shown(folder, "--response", "requests_per_second")
    assert text.replace(". To do", "") in out
    _, out, _ = shown(folder, "--response", "requests_per_second", "--format", "html")
    assert text in out
    _, out, _ = shown(folder, "--response", "requests_per_second", "--format", "json")
    assert [each["subject"] for each in json.loads(out)["cautions"] if each["kind"] == "steal"] == ["one", "two"]


@pytest.mark.parametrize(
    ("arguments", "expected"),
    [
        ((GOLDEN / "loss.csv", "--response", "loss"), "the analysis of a file needs its factors"),
        ((GOLDEN / "loss.csv", "--factor", "receivers"), "the column of the response is missing"),
        ((*LOSS, "--terms", "receivers"), "--terms and --factor both name factors"),
        ((*LOSS, "--confidence", "30%"), "--confidence: 0.3: should be greater than 0.5"),
        ((*LOSS, "--drop-below", "much"), "--drop-below"),
        ((*LOSS, "--levels", "receivers"), "--levels: 'receivers' is not NAME=LEVEL,LEVEL"),
        ((*LOSS, "--host", "client"), "--host and --direction are for results folders"),
        ((*TWO, "--response", "speed"), "--response names speed, and --terms names rate"),
        ((GOLDEN / "none.csv", "--terms", "y ~ a"), "no such file or folder"),
        ((GOLDEN, "--terms", "y ~ a"), "is not a results folder"),
    ],
)
def test_what_is_refused(shown, arguments, expected):
    code, out, err = shown(*arguments)
    assert code == codes.USAGE and not out and expected in err and "Traceback" not in err


def test_help_teaches(shown):
    code, out, _ = shown("--help")
    assert code == codes.DONE and "twinbed analyse anova results/" in out and "docs/analyse.md" in out
