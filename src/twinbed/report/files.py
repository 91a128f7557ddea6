"""Report the files of an imported study: how many were read, and why others could not be."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from markupsafe import Markup

from twinbed.model.json import Document
from twinbed.model.members import object_at, objects_at
from twinbed.model.tables import Outline
from twinbed.render.html import html

MOST_FILES = 50
"""Files that are named; the rest is a number."""


def measured_by(outline: Outline) -> Sequence[str]:
    """Return the formats of the files; none of a study that was run."""
    return [str(name) for name in object_at(_import(outline), "formats") if name != "unknown"]


def imported(outline: Outline) -> Iterator[Markup]:
    """Yield a section of the page; nothing for a study that was run."""
    section = _import(outline)
    if not section:
        return
    counts = ", ".join(f"{count} {what}" for what, count in object_at(section, "files").items() if count)
    yield html('<section id="files"><h2>Files</h2><p>Measured elsewhere and imported: {}.</p>', counts)
    wrong = objects_at(section, "not_read")
    if wrong:
        items = Markup().join(
            html("<li><code>{}</code> {}: {}</li>", str(entry["path"]), str(entry["what"]), str(entry["reason"]))
            for entry in wrong[:MOST_FILES]
        )
        rest = len(wrong) - MOST_FILES
        more = html("<li>and {} more, in study.json</li>", rest) if rest > 0 else ""
        yield html("<details open><summary>What could not be read in full ({} files)</summary>", len(wrong))
        yield html("<ul>{}{}</ul></details>", items, more)
    yield Markup("</section>")


def _import(outline: Outline) -> Document:
    return object_at(outline.data, "import")
