"""The manual as a site: it builds without a warning, has every page, asks no other host, and links lead somewhere."""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
from collections.abc import Iterator
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote, urlsplit

import pytest
from manual import json_output
from manual.console import filled
from manual.pages import DOCS, write
from ruamel.yaml import YAML
from tests.browser import browser

ROOT = Path(__file__).parents[2]
README_LINES, PAGE_LINES = 120, 300
BUILD_LIMIT_S = 900
"""The builder takes some seconds of CPU; a busy machine gives it less."""
FETCHED = {"script": "src", "img": "src", "link": "href", "iframe": "src", "source": "src", "video": "src", "audio": "src"}
"""What a browser asks for by itself when it shows a page: element -> attribute."""
NOT_FETCHED = {"canonical", "prev", "next", "alternate", "edit"}
"""What a <link> may be for without anything being fetched."""

pytestmark = pytest.mark.timeout(BUILD_LIMIT_S + 300)


class Page(HTMLParser):
    """What a page refers to, and the anchors that it has."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.links: list[str] = []
        self.fetched: list[str] = []
        self.anchors: set[str] = set()
        self.feed(text)
        self.close()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        values = {name: value or "" for name, value in attrs}
        self.anchors |= {values[name] for name in ("id", "name") if name in values}
        if tag == "a" and "href" in values:
            self.links.append(values["href"])
        if values.get(FETCHED.get(tag, "")) and not NOT_FETCHED & set(values.get("rel", "").split()):
            self.fetched.append(values[FETCHED[tag]])


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Built from pages of its own, with few of the results and one of the examples, since both take long and link nowhere."""
    folder = tmp_path_factory.mktemp("manual")
    shutil.copy(ROOT / "mkdocs.yml", folder)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(json_output, "EXAMPLES", {"studies": ""})
        patch.setattr(json_output, "prepared", lambda: None)
        write(folder / "dist" / "pages", [ROOT / "docs/measured/syscalls.zip"])
    program = Path(sys.executable).with_name("zensical")
    assert program.exists(), "no zensical beside python: pip install --group dev"
    done = subprocess.run(
        [program, "build", "--strict"], cwd=folder, capture_output=True, text=True, check=False, timeout=BUILD_LIMIT_S
    )
    assert done.returncode == 0, done.stdout + done.stderr
    assert "warning" not in (done.stdout + done.stderr).lower()
    return folder / "dist" / "manual"


@pytest.fixture(scope="module")
def pages(site: Path) -> dict[Path, Page]:
    return {path: Page(path.read_text(encoding="utf-8")) for path in sorted(site.rglob("*.html"))}


def in_nav(entry: object) -> Iterator[str]:
    if isinstance(entry, str):
        yield entry
    elif isinstance(entry, dict):
        for below in entry.values():
            yield from in_nav(below)
    elif isinstance(entry, list):
        for below in entry:
            yield from in_nav(below)


@pytest.fixture(scope="module")
def sources(site: Path) -> set[str]:
    """The pages that the site is built from."""
    folder = site.with_name("pages")
    return {str(path.relative_to(folder)) for path in folder.rglob("*.md")}


def test_every_page_is_in_nav_once(sources: set[str]) -> None:
    settings = YAML(typ="safe").load((ROOT / "mkdocs.yml").read_text(encoding="utf-8"))
    assert sorted(in_nav(settings["nav"])) == sorted(sources)


def test_every_page_is_built_and_begins_with_its_heading(pages: dict[Path, Page], site: Path, sources: set[str]) -> None:
    built = {Path(source).with_suffix(".html") for source in sources}
    assert {path.relative_to(site) for path in pages} == {*built, Path("404.html")}
    for page in built:
        assert "<h1" in (site / page).read_text(encoding="utf-8"), page


def test_readme_shows_what_its_commands_print() -> None:
    """`python -m manual readme` puts it there."""
    text = (ROOT / "README.md").read_text(encoding="utf-8")
    assert "console executed" in text
    assert filled(text, keep_mark=True) == text


def test_examples_of_the_site_have_their_output(sources: set[str], site: Path) -> None:
    marked = [page for page in sources if "```console executed" in (DOCS / page).read_text(encoding="utf-8")]
    assert "tutorial.md" in marked
    for page in marked:
        text = (site.with_name("pages") / page).read_text(encoding="utf-8")
        assert "console executed" not in text
        empty = re.findall(r"^ *\$ twinbed [^\n]*\n *```", text, re.MULTILINE)
        assert not empty, page


@pytest.mark.parametrize("page", [ROOT / "README.md", *sorted(DOCS.rglob("*.md"))], ids=lambda page: page.stem)
def test_no_page_is_too_long(page: Path) -> None:
    lines = page.read_text(encoding="utf-8").count("\n")
    assert lines <= (README_LINES if page.name == "README.md" else PAGE_LINES)


def test_every_page_that_the_program_names_is_there() -> None:
    found = {
        name
        for source in (ROOT / "src").rglob("*.py")
        for name in re.findall(r"docs/([\w/-]+\.md)", source.read_text(encoding="utf-8"))
    }
    assert len(found) > 20
    assert not [name for name in found if not (DOCS / name).is_file()]


def test_nothing_is_asked_of_another_host(pages: dict[Path, Page], site: Path) -> None:
    for path, page in pages.items():
        assert any("iframe-worker" in each for each in page.fetched), path
        outside = [each for each in page.fetched if urlsplit(each).scheme not in ("", "data") or each.startswith("//")]
        assert not outside, (path, outside)
        # The page for what is not found is meant for a server, and asks from its root.
        missing = [each for each in page.fetched if path.name != "404.html" and not target(path, each).is_file()]
        assert not missing, (path, missing)
    for style in site.rglob("*.css"):
        text = style.read_text(encoding="utf-8")
        assert "url(http" not in text and "url(//" not in text and "@import" not in text, style


def test_links_lead_to_pages_and_anchors_that_exist(pages: dict[Path, Page]) -> None:
    broken, followed = [], 0
    for path, page in pages.items():
        for link in page.links if path.name != "404.html" else ():
            parts = urlsplit(link)
            if parts.scheme or parts.netloc:
                continue
            followed += 1
            to = target(path, link) if parts.path else path
            anchor = unquote(parts.fragment)
            if not to.is_file() or (anchor and to in pages and anchor not in pages[to].anchors):
                broken.append((path.name, link))
    assert followed > 1000
    assert not broken


def test_a_word_typed_into_search_finds_its_page(site: Path, tmp_path: Path) -> None:
    """From disk, as most people open the manual."""
    with browser(tmp_path) as page:
        page.open(site / "index.html")
        page.click(".md-search__button")
        page.call("Input.insertText", text="replicate")
        page.until(
            "[...document.querySelectorAll('body > div')].some(each => each.shadowRoot?.textContent.includes('Glossary'))"
        )
        assert page.errors == []


def target(page: Path, link: str) -> Path:
    return (page.parent / unquote(urlsplit(link).path)).resolve()
