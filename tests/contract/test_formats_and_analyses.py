"""The contract of every format and of every analysis."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.contract import broken
from twinbed import registry
from twinbed.lab.suite import promises


@pytest.mark.parametrize("name", registry.formats())
def test_a_format_keeps_its_promises(name: str, tmp_path: Path) -> None:
    assert broken(promises("formats", registry.formats()[name], tmp_path)) == []


@pytest.mark.parametrize("name", registry.analysis_names())
def test_an_analysis_keeps_its_promises(name: str, tmp_path: Path) -> None:
    assert broken(promises("analyses", registry.analysis(name), tmp_path)) == []
