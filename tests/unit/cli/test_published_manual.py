"""The manual of printed tables is what the data and the audit say."""

from __future__ import annotations

import runpy
from pathlib import Path

DOCS = Path(__file__).parents[3] / "docs"


def test_the_manual_of_printed_tables_is_up_to_date() -> None:
    made = runpy.run_path(str(DOCS / "make_published.py"))["text"]()
    assert (DOCS / "published.md").read_text(encoding="utf-8") == made, "run: python docs/make_published.py"
