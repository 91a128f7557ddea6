"""The manual of metrics is what the plugins declare."""

from __future__ import annotations

import runpy
from pathlib import Path

DOCS = Path(__file__).parents[3] / "docs"


def test_the_manual_of_metrics_is_up_to_date() -> None:
    made = runpy.run_path(str(DOCS / "make_metrics.py"))["text"]()
    assert (DOCS / "metrics.md").read_text(encoding="utf-8") == made, "run: python docs/make_metrics.py"
