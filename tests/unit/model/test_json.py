"""Texts of JSON: one way to read them."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

import twinbed
from twinbed.model.json import foreign, loads, parsed


def test_nothing_else_reads_json() -> None:
    package = Path(twinbed.__file__).parent
    past_it = [
        str(file.relative_to(package))
        for file in sorted(package.rglob("*.py"))
        if re.search(r"\bjson\.loads?\b|from json import", file.read_text()) and file != package / "model/json.py"
    ]
    assert not past_it, "read it by twinbed.model.json, which says what is wrong with a text that is nested too deeply"


def test_a_text_nested_too_deeply_is_a_value_error() -> None:
    deep = "[" * 100_000
    with pytest.raises(RecursionError):
        json.loads(deep)
    for read in (loads, foreign, parsed):
        with pytest.raises(ValueError, match=r"deep|recursion"):
            read(deep)
