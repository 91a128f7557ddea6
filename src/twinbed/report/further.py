"""Pages of single analyses that lie in the results: the report links them.

``twinbed analyse NAME RESULTS --html`` puts them there (``observations/pages``), with the settings that its user gave, which a
report made of the results alone cannot know. They are linked, not copied: each opens from disk by itself.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from html import unescape
from pathlib import Path
from urllib.parse import quote

from markupsafe import Markup

from twinbed import registry
from twinbed.model.tables import Tables
from twinbed.observations.pages import FOLDER
from twinbed.render.html import html
from twinbed.tree import Tree

KEY, TITLE = "further", "Further pages"
_TITLE = re.compile(r"<title>(.*?)</title>", re.DOTALL)
_BEGINNING = 4096
"""Bytes of a page that have its title."""


@dataclass(frozen=True, slots=True)
class Further:
    """One page."""

    link: str
    """From the report's folder to it."""
    name: str
    """The analysis' name, or whatever the file is called."""
    title: str
    is_old: bool
    """True if a run has ended since it was made."""


def further(tables: Tables, report: Path | None) -> Sequence[Further]:
    """Return the pages in the results' folder, in the order of analyses first. ``report`` is the file that will link them; None
    where it is none."""
    if report is None or not tables.shown.is_dir():
        return ()
    tree = Tree(tables.shown)
    pages = [Path(name) for name, kind in tree.entries(FOLDER).items() if kind == "file" and name.endswith(".html")]
    if not pages:
        return ()
    newest = max((_changed(tree, f"runs/{record.id}/run.json") for record in tables.records), default=0.0)
    rank = {name: at for at, name in enumerate(registry.analysis_names())}
    above, folder = report.resolve().parent, (tables.shown / FOLDER).resolve()
    return [
        Further(
            quote(Path(os.path.relpath(folder / page, above)).as_posix()),
            page.stem,
            _title(tree, f"{FOLDER}/{page}") or page.stem,
            _changed(tree, f"{FOLDER}/{page}") < newest,
        )
        for page in sorted(pages, key=lambda page: (rank.get(page.stem, len(rank)), page.name))
    ]


def _changed(tree: Tree, name: str) -> float:
    status = tree.status(name)
    return 0.0 if status is None else status.st_mtime


def _title(tree: Tree, name: str) -> str:
    with tree.open(name) as page:
        title = _TITLE.search(page.read(_BEGINNING).decode(errors="replace"))
    return unescape(title[1]).strip() if title else ""


def further_section(pages: Sequence[Further]) -> Iterator[Markup]:
    """Yield a section of the report; nothing where there are none."""
    if not pages:
        return
    yield html('<section id="{}"><h2>{}</h2><p>{}</p><ul>', KEY, TITLE, "Made from these results, with other settings.")
    for page in pages:
        old = " (older than the newest run: make it again)" if page.is_old else ""
        yield html('<li><a href="{}">{}</a>: <code>{}</code>{}</li>', page.link, page.title, page.name, old)
    yield Markup("</ul></section>")
