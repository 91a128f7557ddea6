"""docs/gallery.md is what the script makes of the studies."""

from __future__ import annotations

import runpy
from pathlib import Path

from twinbed.study import shipped

DOCS = Path(__file__).parents[2] / "docs"


def test_the_gallery_is_what_the_studies_say() -> None:
    page = (DOCS / "gallery.md").read_text(encoding="utf-8")
    assert page == runpy.run_path(str(DOCS / "make_gallery.py"))["text"](), "run: python docs/make_gallery.py"
    assert [line[3:] for line in page.splitlines() if line.startswith("## ")] == list(shipped.names())
