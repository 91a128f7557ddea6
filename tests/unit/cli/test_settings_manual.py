"""docs/settings.md is what the declarations say now, and has every setting."""

from __future__ import annotations

import re
import runpy
from pathlib import Path

from twinbed import registry
from twinbed.study.subjects import subjects

DOCS = Path(__file__).parents[3] / "docs"
PAGE = (DOCS / "settings.md").read_text(encoding="utf-8")


def test_the_page_is_made_from_the_declarations() -> None:
    assert runpy.run_path(str(DOCS / "make_settings.py"))["text"]() == PAGE, "run: python docs/make_settings.py"


def test_every_setting_is_in_its_section() -> None:
    sections = dict(re.findall(r"^### (\S+)\n(.*?)(?=^##|\Z)", PAGE, re.MULTILINE | re.DOTALL))
    for subject in subjects(registry.catalogue()):
        if subject.model is not None:
            for name in subject.model.model_fields:
                assert f"`{name}`" in sections[subject.name], (subject.name, name)


def test_links_of_manuals_to_it_lead_somewhere() -> None:
    anchors = {
        re.sub(r"[^\w -]", "", title.lower()).replace(" ", "-") for title in re.findall(r"^##+ (.+)$", PAGE, re.MULTILINE)
    }
    found = [anchor for page in DOCS.glob("*.md") for anchor in re.findall(r"\(settings\.md#([^)]+)\)", page.read_text())]
    assert len(found) >= 5 and set(found) <= anchors
    manual = set(re.findall(r"^### (\w+)$", (DOCS / "study-file.md").read_text(), re.MULTILINE))
    assert set(re.findall(r"\(study-file\.md#(\w+)\)", PAGE)) <= manual
