"""docs/scale.md has the tables that its script makes."""

from __future__ import annotations

import runpy
from pathlib import Path

DOCS = Path(__file__).parents[3] / "docs"


def test_the_tables_are_up_to_date() -> None:
    text = (DOCS / "scale.md").read_text(encoding="utf-8")
    assert runpy.run_path(str(DOCS / "make_scale.py"))["page"](text) == text, "run: python docs/make_scale.py"
