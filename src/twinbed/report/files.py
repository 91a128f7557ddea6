"""What a study that was imported says of its files: how many were read, and what of the others could not be."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from html import escape
from typing import Any

from twinbed.model.tables import Outline

MOST_FILES = 50
"""Files that are named; the rest is a number."""


def measured_by(outline: Outline) -> Sequence[str]:
    """The formats of the files; none of a study that was run."""
    return [str(each) for each in _import(outline).get("formats", {}) if each != "unknown"]


def imported(outline: Outline) -> Iterator[str]:
    """A section of the page; nothing for a study that was run."""
    about = _import(outline)
    if not about:
        return
    counts = ", ".join(f"{count} {what}" for what, count in about.get("files", {}).items() if count)
    yield f'<section id="files"><h2>Files</h2><p>Measured elsewhere and imported: {escape(counts)}.</p>'
    wrong = about.get("not_read", ())
    if wrong:
        items = "".join(
            f"<li><code>{escape(str(each['path']))}</code> {escape(str(each['what']))}: {escape(str(each['reason']))}</li>"
            for each in wrong[:MOST_FILES]
        )
        rest = len(wrong) - MOST_FILES
        more = f"<li>and {rest} more, in study.json</li>" if rest > 0 else ""
        yield f"<details open><summary>What could not be read in full ({len(wrong)} files)</summary>"
        yield f"<ul>{items}{more}</ul></details>"
    yield "</section>"


def _import(outline: Outline) -> Mapping[str, Any]:
    found = outline.data.get("import")
    return found if isinstance(found, Mapping) else {}
