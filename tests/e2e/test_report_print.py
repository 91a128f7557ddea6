"""The report on paper, printed by headless Chromium: how many pages, and what is not on them."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from browser import Page, browser
from synthetic_results import planted_response, write_study
from twinbed.analyses.compare.method import analysis as compare
from twinbed.model.caution import Caution, Kind
from twinbed.report.styles import rendered
from twinbed.results.extract import extract
from twinbed.workloads.planted import planted

MOST_PAGES = 12


@pytest.fixture(scope="module")
def page(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Page]:
    with browser(tmp_path_factory.mktemp("profile")) as opened:
        yield opened


def written(folder: Path, factors: dict[str, list[object]], replicates: int) -> Path:
    testbeds = ["physical", "container", "e1000"]
    respond = planted_response({"physical": 1.0, "container": 1.03, "e1000": 0.6}, 0.02, seed=4)
    passport = {"server": {"kernel": "6.1.0", "offloads": {f"feature-{number}": "on" for number in range(40)}}}
    cautions = [Caution(Kind.SOFTWARE_CPU, "accelerator tcg")]
    write_study(folder, testbeds, factors, replicates, respond, cautions=cautions, passport=passport)
    tables = extract(folder, {"planted": planted}, {})
    (folder / "report.html").write_text(rendered("html", tables, compare.run(tables)), encoding="utf-8")
    return folder / "report.html"


STUDIES: dict[str, tuple[dict[str, list[object]], int]] = {
    "payload": ({"payload": ["500B", "1MiB"]}, 5),
    "pairs": ({"pairs": [1, 2, 4, 8, 16]}, 2),
}


@pytest.fixture(scope="module")
def reports(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    return {name: written(tmp_path_factory.mktemp(name), *study) for name, study in STUDIES.items()}


@pytest.mark.parametrize("study", STUDIES)
def test_thirty_runs_take_at_most_twelve_pages(page: Page, tmp_path: Path, reports: dict[str, Path], study: str) -> None:
    page.open(reports[study], width=1280, height=800)
    first = "document.querySelector('.card, table.matrix').getBoundingClientRect()"
    assert page.ask(f"{first}.top") < 700, "lists or verdicts are on the first screen"
    page.pdf(tmp_path / "report.pdf")
    # Chromium writes the objects of pages uncompressed.
    pages = len(re.findall(rb"/Type\s*/Page\b", (tmp_path / "report.pdf").read_bytes()))
    assert 2 <= pages <= MOST_PAGES


def test_details_are_folded_and_nothing_is_torn_on_paper(page: Page, reports: dict[str, Path]) -> None:
    page.call("Emulation.setEmulatedMedia", media="print")
    try:
        page.open(reports["payload"], width=700, height=1000)
        page.ask("document.querySelectorAll('details').forEach(each => { each.open = true })")
        style = "getComputedStyle(document.querySelector('{}')).{}"
        inside = "[...document.querySelectorAll('details > :not(summary)')].map(each => getComputedStyle(each).display)"
        assert set(page.ask(inside)) >= {"none"}
        for heading in ("h2", "h3", "caption"):
            assert page.ask(style.format(heading, "breakAfter")) == "avoid"
        for whole in ("figure", "tr"):
            assert page.ask(style.format(whole, "breakInside")) == "avoid"
    finally:
        page.call("Emulation.setEmulatedMedia", media="")
