"""docs/testbeds.md against the drivers: its examples are read, every setting is described."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from twinbed import registry
from twinbed.contracts.host_settings import HostSettings
from twinbed.study.loading import load
from twinbed.testbeds.container import ContainerSettings
from twinbed.testbeds.qemu.settings import FEATURES, QemuSettings

MANUAL = (Path(__file__).parents[3] / "docs/testbeds.md").read_text()
EXAMPLES = re.findall(r"^```yaml\n(.*?)^```$", MANUAL, re.MULTILINE | re.DOTALL)


@pytest.mark.parametrize("text", EXAMPLES)
def test_every_example_is_right(text: str) -> None:
    assert load(f"study: x\nworkload: {{kind: http}}\n{text}", "example.yaml", registry.catalogue()).cells


@pytest.mark.parametrize(("settings", "section"), [(QemuSettings, "## Guests"), (ContainerSettings, "## Containers")])
def test_every_setting_is_described(settings: type[HostSettings], section: str) -> None:
    text = MANUAL.partition(section)[2].partition("\n## ")[0]
    for name in (*(set(settings.model_fields) - set(HostSettings.model_fields)), "cpus"):
        assert f"`{name}`" in text


def test_every_feature_is_named() -> None:
    for name in FEATURES:
        assert f"`{name}`" in MANUAL
