"""Ladders in headless Chromium: a click on a step unfolds it and marks its packets; they fit a screen, a phone and paper."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.unit.analyses.anatomy.test_ladders import study

from browser import Page, browser
from twinbed.analyses.anatomy.method import analysis as anatomy
from twinbed.analyses.anatomy.words import section
from twinbed.render.pages import page as page_of


@pytest.fixture(scope="module")
def file(tmp_path_factory: pytest.TempPathFactory) -> Path:
    target = tmp_path_factory.mktemp("anatomy") / "anatomy.html"
    result = anatomy.run(study({"real": 1.0, "virtual": 30.0, "third": 2.0}))
    target.write_text(page_of(section(result), result, "results"), encoding="utf-8")
    return target


@pytest.fixture(scope="module")
def page(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Page]:
    with browser(tmp_path_factory.mktemp("profile")) as tab:
        yield tab


PICTURES = "Array.from(document.querySelectorAll('.plots.ladder figure svg')).map(each => each.getBoundingClientRect())"


def test_a_click_on_a_step_shows_its_packets_and_its_distribution(page: Page, file: Path) -> None:
    page.open(file)
    # A link scrolls smoothly, and a click amid that would meet another element; when it begins and ends, nothing tells.
    page.ask("document.documentElement.style.scrollBehavior = 'auto'")
    step = "document.getElementById('anatomy-1-server')"
    assert page.ask(f"{step}.open") is False
    page.click('a[href="#anatomy-1-server"]')
    page.until(f"{step}.open && document.querySelector('.picked') !== null")
    assert page.ask(f"{step}.querySelectorAll('table').length") == 3
    assert page.ask(f"{step}.querySelectorAll('svg.strip').length") == 1
    marked = "Array.from(document.querySelectorAll('.picked')).map(each => each.dataset.steps)"
    assert set(page.ask(f"{marked}.flatMap(steps => steps.split(' '))")) >= {"server"}
    assert page.ask(f"{marked}.every(steps => steps.split(' ').includes('server'))")
    assert page.ask("document.querySelectorAll('.step.picked').length") == 3, "on every testbed"
    page.click("#anatomy-1-server summary")
    page.until("!document.querySelector('.picked')")
    assert not page.errors
    assert [each for each in page.requests if not each.startswith("file:")] == []


def test_ladders_stand_side_by_side_on_one_axis_on_a_screen_and_below_each_other_on_a_phone(page: Page, file: Path) -> None:
    page.open(file, 1280, 900)
    tops = page.ask(f"{PICTURES}.map(box => Math.round(box.top))")
    assert len(tops) == 3 and len(set(tops)) == 1
    assert len(set(page.ask(f"{PICTURES}.map(box => Math.round(box.height))"))) == 1
    ticks = (
        "Array.from(document.querySelectorAll('.plots.ladder figure svg')).map(svg => Array.from(svg.querySelectorAll('text'))"
    )
    of_each = page.ask(
        f"{ticks}.filter(each => /^[0-9.]+ .?s$/.test(each.textContent)"
        " && each.getAttribute('text-anchor') === 'end').map(each => each.textContent + each.getAttribute('y')).join())"
    )
    assert of_each[0] and len(set(of_each)) == 1, "the same times at the same heights"
    page.open(file, 390, 844)
    boxes = page.ask(f"{PICTURES}.map(box => [box.left, box.right, box.top])")
    assert all(left >= 0 and right <= 390 for left, right, _ in boxes)
    assert sorted(top for _, _, top in boxes) == [top for _, _, top in boxes] and len({top for _, _, top in boxes}) == 3
    assert page.ask("document.documentElement.scrollWidth") == 390
    size = "parseFloat(getComputedStyle(text).fontSize) * svg.getBoundingClientRect().width / svg.viewBox.baseVal.width"
    smallest = page.ask(
        "Math.min(...Array.from(document.querySelectorAll('.plots.ladder figure svg')).flatMap(svg =>"
        f" Array.from(svg.querySelectorAll('text')).map(text => {size})))"
    )
    assert smallest >= 9, "pixels"


def test_ladders_are_whole_on_paper(page: Page, file: Path) -> None:
    page.open(file, 680, 1009)  # A4 within its margins
    page.call("Emulation.setEmulatedMedia", media="print")
    try:
        boxes = page.ask(f"{PICTURES}.map(box => [box.left, box.right, box.height])")
        assert all(left >= 0 and right <= 680 and height < 1009 for left, right, height in boxes)
        assert page.ask("getComputedStyle(document.querySelector('.plots.ladder figure')).breakInside") == "avoid"
    finally:
        page.call("Emulation.setEmulatedMedia", media="")
