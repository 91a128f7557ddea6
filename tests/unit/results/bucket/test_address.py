"""Addresses, given as text or as the path that a command line makes of it."""

from __future__ import annotations

from pathlib import Path

import pytest

from twinbed.results.bucket.address import address_of


@pytest.mark.parametrize("text", ["s3://bucket/a/b", "gs://bucket", "az://container/x", "file:///srv/results"])
def test_a_path_of_an_address_is_the_address(text: str) -> None:
    for given in (text, Path(text)):
        found = address_of(given)
        assert str(found) == text
        assert str(found and found / "study.json") == f"{text}/study.json"


@pytest.mark.parametrize("text", ["results/x", "/s3:/x", "s3", "s3://", "C:/x", "ftp://a/b", "s3:bucket/x"])
def test_no_address(text: str) -> None:
    assert address_of(text) is None
    assert address_of(Path(text)) is None
