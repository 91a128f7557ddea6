"""The report in headless Chromium: opens from disk, clicks work, nothing is fetched, nothing is logged, it fits a phone."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import groupby, pairwise
from pathlib import Path

import pytest

from browser import Page, browser
from synthetic_results import planted_response, write_study
from twinbed.analyses.compare.method import analysis as compare
from twinbed.model.caution import Caution, Kind
from twinbed.report.styles import rendered
from twinbed.results.extract import extract
from twinbed.workloads.planted import planted

LONG = "a-testbed-with-a-name-that-nobody-would-want-to-type-twice"


@pytest.fixture(scope="module")
def report(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("results")
    respond = planted_response({"container": 1.0, "virtio": 1.03, LONG: 0.4}, 0.02, seed=4)
    write_study(
        folder,
        ["container", "virtio", LONG],
        {"payload": ["500B", "1MiB"], "offload": ["on", "off"]},
        5,
        respond,
        cautions=[Caution(Kind.SOFTWARE_CPU, "accelerator tcg")],
        passport={"server": {"kernel": "6.1.0", "offloads": {f"feature-{number}": "on" for number in range(40)}}},
        applied=[{"subject": "s1", "setting": "rate_bit_s", "asked": 10**9, "found": 10**9, "source": "tc -j qdisc show"}],
    )
    tables = extract(folder, {"planted": planted}, {})
    (folder / "report.html").write_text(rendered("html", tables, compare.run(tables)), encoding="utf-8")
    return folder / "report.html"


@pytest.fixture(scope="module")
def page(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Page]:
    with browser(tmp_path_factory.mktemp("profile")) as opened:
        yield opened


@pytest.fixture
def opened(page: Page, report: Path) -> Iterator[Page]:
    page.errors.clear()
    page.requests.clear()
    page.open(report)
    yield page
    assert page.errors == []
    assert set(page.requests) == {report.as_uri()}


def test_the_answer_comes_first(opened: Page) -> None:
    assert opened.ask("document.querySelector('h2').textContent") == "Verdict"
    for part in (".lede", ".card"):
        box = f"document.querySelector('{part}').getBoundingClientRect()"
        assert opened.ask(f"{box}.height") > 20 and opened.ask(f"{box}.top") < 700, f"{part} is on the first screen"
    # Four cells on two testbeds, three headline metrics: a verdict each.
    assert opened.ask("document.querySelectorAll('table.matrix td button').length") == 24
    assert opened.ask("document.querySelectorAll('.card').length") == 2
    assert opened.ask("[...document.querySelectorAll('section.folded > details')].every(each => !each.open)")


def test_a_verdict_opens_what_it_rests_on(opened: Page) -> None:
    why = "document.querySelector('table.matrix td [popover]')"
    assert opened.ask(f"getComputedStyle({why}).display") == "none"
    opened.click("table.matrix td button")
    assert opened.ask(f"getComputedStyle({why}).display") != "none"
    text = opened.ask(f"{why}.textContent")
    assert "ratio" in text and "virtio" in text and "after correction for" in text


def test_plots_are_drawn_and_described(opened: Page) -> None:
    # Three headline metrics, each with its values; the ratios of all are one picture in the verdict.
    assert opened.ask("document.querySelectorAll('[id^=layer] figure svg[role=img][aria-label]').length") == 3
    opened.ask("document.querySelectorAll('details').forEach(each => { each.open = true })")
    assert opened.ask("[...document.querySelectorAll('figure svg')].every(svg => svg.getBoundingClientRect().width > 200)")
    # Four cells of three testbeds with five replicates each: a mark each.
    assert (
        opened.ask(
            "document.querySelector('#layer-application .plots figure svg').querySelectorAll('circle[data-said]').length"
        )
        == 60
    )


def test_colours_come_from_the_page(opened: Page) -> None:
    """No placeholder is left, and what the style sheet says is what is painted."""
    assert opened.ask("document.querySelector('main').innerHTML.match(/#0[1-7]0[1-7]0[1-7]/)") is None
    paint = "getComputedStyle(document.querySelector('#layer-application .plots figure svg circle[data-said]')).fill"
    assert opened.ask(paint) == "rgb(26, 29, 33)"


def test_a_click_sorts_a_table(opened: Page) -> None:
    opened.click("#runs details summary")
    column = "[...document.querySelectorAll('#runs-table tbody tr')].map(row => row.cells[2].textContent)"
    unsorted = opened.ask(column)
    opened.click("#runs-table thead th:nth-child(3) button")
    assert opened.ask("document.querySelector('#runs-table thead th:nth-child(3)').getAttribute('aria-sort')") == "ascending"
    assert opened.ask(column) == sorted(unsorted) != unsorted
    opened.click("#runs-table thead th:nth-child(3) button")
    assert opened.ask(column) == sorted(unsorted, reverse=True)


def test_numbers_sort_as_numbers(opened: Page) -> None:
    opened.click("#runs details summary")
    column = "[...document.querySelectorAll('#runs-table tbody tr')].map(row => Number(row.cells[0].textContent))"
    opened.click("#runs-table thead th:nth-child(1) button")
    assert opened.ask(column) == list(range(1, 61))


def test_failed_runs_can_be_picked_out(opened: Page) -> None:
    opened.click("#runs details summary")
    shown = "[...document.querySelectorAll('#runs-table tbody tr')].filter(row => !row.hidden).length"
    assert opened.ask(shown) == 60
    opened.click("#only-failed")
    assert opened.ask(shown) == 0
    opened.click("#only-failed")
    assert opened.ask(shown) == 60


def test_a_mark_says_its_numbers(opened: Page) -> None:
    opened.ask("document.querySelectorAll('details').forEach(each => { each.open = true })")
    mark = "document.querySelector('#layer-application .plots figure svg circle[data-said]')"
    opened.ask(f"{mark}.scrollIntoView({{block: 'center', behavior: 'instant'}})")
    x, y = opened.ask(f"(() => {{const r = {mark}.getBoundingClientRect(); return [r.x + r.width / 2, r.y + r.height / 2]}})()")
    opened.call("Input.dispatchMouseEvent", type="mouseMoved", x=x, y=y)
    opened.until("!document.getElementById('tip').hidden")
    assert "container" in opened.ask("document.getElementById('tip').textContent")


def test_links_lead_somewhere(opened: Page) -> None:
    opened.click("nav a[href='#testbeds']")
    opened.until("location.hash === '#testbeds'")
    assert opened.ask("[...document.querySelectorAll('a')].every(a => document.querySelector(a.getAttribute('href')))")


@pytest.mark.parametrize("width", [380, 768, 1280])
def test_nothing_sticks_out(page: Page, report: Path, width: int) -> None:
    page.errors.clear()
    page.open(report, width=width, height=800)
    page.ask("document.querySelectorAll('details').forEach(each => { each.open = true })")
    assert page.ask("document.documentElement.scrollWidth") <= width
    assert page.errors == []


def test_headings_go_down_one_step_at_a_time(opened: Page) -> None:
    levels = opened.ask("[...document.querySelectorAll('h1, h2, h3, h4')].map(each => Number(each.tagName[1]))")
    assert levels.count(1) == 1
    assert all(after - before <= 1 for before, after in pairwise(levels))


def test_text_stands_out_from_its_ground_light_and_dark(page: Page, report: Path) -> None:
    """Contrast of at least 4.5 to 1 (WCAG 2.1, 1.4.3) of the colours that text has, by the formula of WCAG."""
    for scheme in ("light", "dark"):
        page.call("Emulation.setEmulatedMedia", features=[{"name": "prefers-color-scheme", "value": scheme}])
        page.open(report)
        ground = _colour(page, "document.body", "backgroundColor")
        for selector in ("body", ".note, figcaption", ".verdict.different", ".verdict.equivalent", "a", "summary"):
            ink = _colour(page, f"document.querySelector({selector!r})", "color")
            assert _contrast(ink, ground) >= 4.5, (scheme, selector)
    page.call("Emulation.setEmulatedMedia", features=[])


AXE = Path(__file__).parents[1] / "editor" / "node_modules" / "axe-core" / "axe.min.js"


@pytest.mark.parametrize("width", [1280, 390])
def test_axe_finds_nothing_serious(page: Page, report: Path, width: int) -> None:
    """As a screen reader and a keyboard have it, with all folded sections open: axe-core's own judgement."""
    page.errors.clear()
    page.open(report, width=width)
    page.ask("document.querySelectorAll('details').forEach(each => { each.open = true })")
    page.ask(AXE.read_text(encoding="utf-8") + "; undefined")
    page.ask("axe.run(document, {resultTypes: ['violations']}).then(found => { window.found = found }); undefined")
    page.until("window.found !== undefined")
    bad = page.ask(
        "window.found.violations.filter(each => ['serious', 'critical'].includes(each.impact))"
        ".map(each => [each.id, each.nodes.length, each.nodes[0].html.slice(0, 200)])"
    )
    assert bad == []


def test_the_keyboard_reaches_contents_verdicts_and_sections_in_their_order(opened: Page) -> None:
    seen = []
    for _ in range(60):
        opened.call("Input.dispatchKeyEvent", type="keyDown", key="Tab", windowsVirtualKeyCode=9)
        opened.call("Input.dispatchKeyEvent", type="keyUp", key="Tab", windowsVirtualKeyCode=9)
        seen.append(opened.ask("document.activeElement.tagName"))
    assert [kind for kind, _ in groupby(seen)][:2] == ["A", "DIV"], "the contents, then the matrix, which scrolls"
    assert seen.count("BUTTON") == 24 and "SUMMARY" in seen
    assert seen.index("BUTTON") < seen.index("SUMMARY")


def _colour(page: Page, element: str, name: str) -> list[int]:
    text = page.ask(f"getComputedStyle({element}).{name}")
    return [int(part) for part in text.removeprefix("rgb(").removesuffix(")").split(",")]


def _contrast(one: list[int], two: list[int]) -> float:
    def luminance(colour: list[int]) -> float:
        parts = [value / 255 for value in colour]
        linear = [part / 12.92 if part <= 0.04045 else ((part + 0.055) / 1.055) ** 2.4 for part in parts]
        return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]

    dark, light = sorted((luminance(one), luminance(two)))
    return (light + 0.05) / (dark + 0.05)
