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
    """Of the analysis, or whatever the file is called."""
    title: str
    is_old: bool
    """Whether a run has ended since it was made."""


def further(tables: Tables, report: Path | None) -> Sequence[Further]:
    """The pages in the results' folder, those of analyses in their order first. ``report`` is the file that will link them;
    None where it is none."""
    folder = tables.shown / FOLDER
    if report is None or not folder.is_dir():
        return ()
    newest = max((_changed(tables.shown / "runs" / record.id / "run.json") for record in tables.records), default=0.0)
    rank = {name: at for at, name in enumerate(registry.analysis_names())}
    files = sorted(folder.glob("*.html"), key=lambda file: (rank.get(file.stem, len(rank)), file.name))
    return [
        Further(
            quote(Path(os.path.relpath(file.resolve(), report.resolve().parent)).as_posix()),
            file.stem,
            _title(file) or file.stem,
            _changed(file) < newest,
        )
        for file in files
        if file.is_file()
    ]


def _changed(file: Path) -> float:
    try:
        return file.stat().st_mtime
    except OSError:
        return 0.0


def _title(file: Path) -> str:
    with file.open("rb") as page:
        found = _TITLE.search(page.read(_BEGINNING).decode(errors="replace"))
    return unescape(found[1]).strip() if found else ""


def further_section(pages: Sequence[Further]) -> Iterator[Markup]:
    """A section of the report; nothing where there are none."""
    if not pages:
        return
    yield html('<section id="{}"><h2>{}</h2><p>{}</p><ul>', KEY, TITLE, "Made of these results with settings of their own.")
    for each in pages:
        old = " (older than the newest run: make it again)" if each.is_old else ""
        yield html('<li><a href="{}">{}</a>: <code>{}</code>{}</li>', each.link, each.title, each.name, old)
    yield Markup("</ul></section>")
