"""The page of settings has every setting."""

from __future__ import annotations

import re

from manual import settings

from twinbed import registry
from twinbed.study.declared import subjects


def test_every_setting_is_in_its_section() -> None:
    sections = dict(re.findall(r"^### (\S+)\n(.*?)(?=^##|\Z)", settings.text(), re.MULTILINE | re.DOTALL))
    for subject in subjects(registry.catalogue()):
        if subject.model is not None:
            for name in subject.model.model_fields:
                assert f"`{name}`" in sections[subject.name], (subject.name, name)
