"""The folder that the site is built from: the pages in docs/ with generated text and with the output of their examples."""

from __future__ import annotations

import re
import shutil
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from pathlib import Path

from manual import commands, console, fleets, gallery, handbook, json_output, metrics, published, settings

DOCS = Path(__file__).parents[1] / "docs"
_PLACE = re.compile(r"<!-- generated -->\n.*?<!-- end -->\n", re.DOTALL)
"""A marked sentence for readers of the checkout; generated text takes its place."""
_OTHERS = ("measured", "examples", "notebook-results", "film.cast")


def generated(results: Sequence[Path]) -> Mapping[str, Callable[[], str]]:
    """Return what makes the generated text of a page. The handbook compares with ``results``."""
    return {
        "commands.md": commands.text,
        "gallery.md": gallery.text,
        "handbook.md": partial(handbook.text, results),
        "json.md": json_output.text,
        "metrics.md": metrics.text,
        "published.md": published.text,
        "scale.md": fleets.text,
        "settings.md": settings.text,
    }


def write(folder: Path, results: Sequence[Path] = handbook.MEASURED) -> None:
    """Write all pages and what they show into a folder that is not there yet."""
    shutil.copytree(DOCS, folder, ignore=shutil.ignore_patterns(*_OTHERS))
    for name, text in generated(results).items():
        (folder / name).write_text(completed(name, text()), encoding="utf-8")
    for page in folder.rglob("*.md"):
        page.write_text(console.filled(page.read_text(encoding="utf-8")), encoding="utf-8")


def completed(name: str, text: str) -> str:
    """Return a page of docs/ with its generated text."""
    page, places = _PLACE.subn(lambda _: text, (DOCS / name).read_text(encoding="utf-8"))
    if places != 1:
        raise ValueError(f"docs/{name} has {places} places for generated text; give it one: <!-- generated -->, <!-- end -->")
    return page
