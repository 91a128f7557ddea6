"""Pages of analyses by --html, and the report's list of them."""

from __future__ import annotations

import os
import re
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest
from tests.synthetic_results import planted_response, write_study

from twinbed.analyses import ANALYSES
from twinbed.cli.analyse import COMMANDS as ANALYSE
from twinbed.cli.main import run
from twinbed.contracts import exit_codes as codes

Shown = Callable[..., tuple[int, str, str]]


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("further") / "results"
    respond = planted_response({"physical": 1.0, "virtio": 0.7}, 0.02, 1)
    return write_study(folder, ["physical", "virtio"], {"payload": ["500B", "1MiB"]}, 5, respond)


@pytest.fixture
def results(made: Path, tmp_path: Path) -> Path:
    shutil.copytree(made, tmp_path / "results")
    return tmp_path / "results"


@pytest.fixture
def shown(capfdbinary: pytest.CaptureFixture[bytes]) -> Shown:
    def command(*arguments: object) -> tuple[int, str, str]:
        code = run([*map(str, arguments)])
        out, err = capfdbinary.readouterr()
        return code, out.decode(), err.decode()

    return command


def links(report: Path) -> list[tuple[str, str]]:
    """(link, title) of further pages."""
    text = report.read_text()
    section = text.partition('<section id="further">')[2].partition("</section>")[0]
    return re.findall(r'<a href="([^"]+)">([^<]+)</a>', section)


def test_every_analysis_has_the_option(shown: Shown) -> None:
    for name in ANALYSES:
        words = ["analyse", name] if name in ANALYSE else [name]
        code, out, _ = shown(*words, "--help")
        assert code == codes.DONE and "--html [FILE]" in out, name


def test_pages_go_into_the_results_and_the_report_links_them(results: Path, shown: Shown, tmp_path: Path) -> None:
    plain = shown("analyse", "anova", results)
    code, out, err = shown("analyse", "anova", results, "--html")
    assert (code, out) == plain[:2], "what is printed stays as it is"
    assert err.strip() == f"page: {results / 'pages' / 'anova.html'}"
    assert shown("passport", results, "--html")[0] == codes.DONE
    assert shown("compare", results, "--html")[0] == codes.DIFFERENT
    assert shown("advise", results, "--html")[0] == codes.DONE
    (results / "pages" / "mine & yours.html").write_text("<title>Mine &amp; yours</title>")
    assert shown("report", results)[0] == codes.DONE
    report = results / "report.html"
    assert [link for link, _ in links(report)] == [
        "pages/compare.html",
        "pages/passport.html",
        "pages/anova.html",
        "pages/advise.html",
        "pages/mine%20%26%20yours.html",
    ], "analyses in their order, then others"
    assert links(report)[-1][1] == "Mine &amp; yours"
    assert "older than the newest run" not in report.read_text()
    for run_json in (results / "runs").glob("*/run.json"):
        os.utime(run_json, (4e9, 4e9))
    assert shown("report", results, "-o", tmp_path / "elsewhere.html")[0] == codes.DONE
    elsewhere = tmp_path / "elsewhere.html"
    assert links(elsewhere)[0][0] == "results/pages/compare.html", "from where the report is"
    assert elsewhere.read_text().count("older than the newest run") == 5
    assert "results/pages/" not in shown("report", results, "-o", "-")[1], "what goes into a pipe lies nowhere"


def test_without_pages_the_report_has_no_list(results: Path, shown: Shown) -> None:
    assert shown("report", results)[0] == codes.DONE
    assert "Further pages" not in (results / "report.html").read_text()


def test_a_page_goes_where_it_is_told(results: Path, shown: Shown, tmp_path: Path) -> None:
    file = tmp_path / "page.html"
    assert shown("passport", results, "--html", file)[2].strip() == f"page: {file}"
    assert "<h1>How the passports differ</h1>" in file.read_text() and not (results / "pages").exists()
    code, out, _ = shown("analyse", "anova", results, "--html", file, "--json")
    assert code == codes.DONE and out.startswith('{"twinbed"') and "Analysis of variance" in file.read_text()
    _, out, _ = shown("analyse", "anova", results, "--format", "html")
    assert out == file.read_text(), "by either option the same page"


def test_where_there_is_no_place_or_no_page_it_is_said(results: Path, shown: Shown, tmp_path: Path) -> None:
    code, out, err = shown("passport", results, results, "--html")
    assert code == codes.USAGE and "--html FILE" in err and not out
    assert shown("passport", results, results, "--html", tmp_path / "two.html")[0] == codes.DONE
    trace = tmp_path / "plain.txt"
    trace.write_text("1 2 3\n")
    code, out, err = shown("chain", trace, "--html", tmp_path / "chain.html")
    assert code == codes.USAGE and "traces has no page" in err and not out
    code, _, err = shown("analyse", "anova", results, "--html", tmp_path / "none" / "page.html")
    assert code == codes.USAGE and "cannot be written" in err and "--html FILE" in err
