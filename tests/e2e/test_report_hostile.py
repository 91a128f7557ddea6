"""Names are data: whatever testbeds, cells, hosts and imported files are called, the page shows it and runs none of it."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from html.parser import HTMLParser
from pathlib import Path

import pytest

from browser import Page, browser
from synthetic_results import planted_response, write_study
from twinbed.analyses.compare.method import analysis as compare
from twinbed.model.caution import Caution, Kind
from twinbed.report.styles import rendered
from twinbed.results.extract import extract
from twinbed.workloads.planted import planted

SCRIPT = "<script>document.title='ran'</script>"
QUOTES = "\"'><img src=x onerror=\"document.title='ran'\">"
EXPRESSION = "datum.said + (function(){document.title='ran'})() ${1+1} {{2*2}}"
SIGNAL = '{"signal": "document.title"}'
CLOSING = "</text></svg></style><svg onload=document.title='ran'>"
NAMES = (SCRIPT, QUOTES, EXPRESSION, SIGNAL, CLOSING)
FILE = f"measured/{QUOTES}.csv"


@pytest.fixture(scope="module")
def report(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("results")
    write_study(
        folder,
        [SCRIPT, QUOTES, EXPRESSION],
        {"payload": [SIGNAL, CLOSING]},
        5,
        planted_response({SCRIPT: 1.0, QUOTES: 1.03, EXPRESSION: 0.4}, 0.02, seed=4),
        cautions=[Caution(Kind.SOFTWARE_CPU, CLOSING, QUOTES)],
        passport={SCRIPT: {QUOTES: EXPRESSION}},
        applied=[{"subject": SCRIPT, "setting": QUOTES, "asked": SIGNAL, "found": CLOSING, "source": SCRIPT}],
    )
    study = json.loads((folder / "study.json").read_text())
    imported = {"formats": {SCRIPT: 1}, "files": {CLOSING: 1}, "not_read": [{"path": FILE, "what": SCRIPT, "reason": CLOSING}]}
    (folder / "study.json").write_text(json.dumps({**study, "import": imported}))
    tables = extract(folder, {"planted": planted}, {})
    (folder / "report.html").write_text(rendered("html", tables, compare.run(tables)), encoding="utf-8")
    return folder / "report.html"


@pytest.fixture(scope="module")
def page(tmp_path_factory: pytest.TempPathFactory, report: Path) -> Iterator[Page]:
    with browser(tmp_path_factory.mktemp("profile")) as opened:
        opened.open(report)
        yield opened


class Elements(HTMLParser):
    """Every element's name and attributes, and the text of scripts."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.elements: list[tuple[str, dict[str, str | None]]] = []
        self.scripts: list[str] = []
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.elements.append((tag, dict(attrs)))

    def handle_data(self, data: str) -> None:
        if self.cdata_elem == "script":
            self.scripts.append(data)


def test_no_name_becomes_an_element(report: Path) -> None:
    found = Elements(report.read_text())
    tags = [tag for tag, _ in found.elements]
    assert tags.count("script") == 1 and "img" not in tags
    assert all("ran" not in script for script in found.scripts)
    assert not [name for _, attributes in found.elements for name in attributes if name.startswith("on")]


def test_nothing_runs_and_nothing_is_fetched(page: Page, report: Path) -> None:
    assert page.ask("document.title") == f"synthetic: how faithful to {SCRIPT}"
    assert page.errors == []
    assert set(page.requests) == {report.as_uri()}


@pytest.mark.parametrize("name", NAMES)
def test_every_name_is_shown_as_it_is(page: Page, name: str) -> None:
    assert name in page.ask("document.querySelector('main').textContent")


def test_names_are_shown_in_plots(page: Page) -> None:
    texts = page.ask("[...document.querySelectorAll('figure svg')].map(each => each.textContent).join(' ')")
    assert "<script>" in texts and "datum.said" in texts
    labels = page.ask("[...document.querySelectorAll('figure svg [data-said]')].map(e => e.dataset.said).join()")
    assert all(name in labels for name in (SCRIPT, QUOTES, EXPRESSION))


def test_the_name_of_an_imported_file_is_shown(page: Page) -> None:
    assert FILE in page.ask("document.querySelector('#files').textContent")


def test_the_policy_allows_the_pages_own_script_and_style_sheet_alone(page: Page, report: Path) -> None:
    [policy] = [about["content"] or "" for _, about in Elements(report.read_text()).elements if "http-equiv" in about]
    assert re.search(r"script-src 'sha256-[^' ]{44}';", policy) and re.search(r"style-src-elem 'sha256-[^' ]{44}';", policy)
    assert "unsafe-inline" not in policy.replace("style-src-attr 'unsafe-inline'", "")
    page.ask(
        "(() => { const script = document.createElement('script'); script.textContent = \"document.title = 'ran'\";"
        " document.body.append(script); const style = document.createElement('style');"
        " style.textContent = 'body { display: none }'; document.head.append(style) })()"
    )
    assert page.ask("document.title") != "ran"
    assert page.ask("getComputedStyle(document.body).display") != "none"
    refused = [error for error in page.errors if "Content Security Policy" in error]
    assert len(refused) == len(page.errors) == 2
    page.errors.clear()
