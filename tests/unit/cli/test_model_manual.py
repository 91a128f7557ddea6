"""docs/model.md against the driver: its example is read, and every parameter stands there with its default."""

from __future__ import annotations

import re
from pathlib import Path

from twinbed import registry
from twinbed.study.loading import load
from twinbed.testbeds.model.settings import ModelSettings

MANUAL = (Path(__file__).parents[3] / "docs/model.md").read_text()


def test_the_example_is_right() -> None:
    (text,) = re.findall(r"^```yaml\n(.*?)^```$", MANUAL, re.MULTILINE | re.DOTALL)
    assert load(text, "example.yaml", registry.catalogue()).cells


def test_every_parameter_stands_there_with_its_default() -> None:
    section = MANUAL.partition("## Parameters")[2].partition("\n## ")[0]
    written: dict[str, object] = {}
    for names, defaults in re.findall(r"^\| (`[^|]+`) \| ([^|]+) \|", section, re.MULTILINE):
        for name, default in zip(names.split(", "), defaults.split(", "), strict=True):
            text = default.strip("` ").removesuffix(" segments").replace("Gbit/s", "gbit")
            written[name.strip("`")] = text
    assert set(written) == set(ModelSettings.model_fields)
    assert ModelSettings.model_validate(written) == ModelSettings()
