"""What hosts and kernels say is decoded whatever its bytes are: one value that is not UTF-8 ends no study."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

import twinbed

PACKAGE = Path(twinbed.__file__).parent
ROOMS = ("backgrounds", "fleet", "hosts", "instruments", "lab", "linkcheck", "links", "readers", "testbeds", "workloads")
OUR_OWN = {
    # The compiled core wrote these texts.
    "readers/counters/place.py",
    "readers/stations.py",
}


def strict(tree: ast.AST) -> Iterator[int]:
    """Lines with ``.decode()`` without a word on what to do with other bytes."""
    for node in ast.walk(tree):
        if not isinstance(node, ast.Call) or node.args or node.keywords:
            continue
        if isinstance(node.func, ast.Attribute) and node.func.attr == "decode":
            yield node.lineno


@pytest.mark.parametrize("room", ROOMS)
def test_nothing_of_a_host_is_decoded_strictly(room: str) -> None:
    found = {
        f"{file.relative_to(PACKAGE)}:{line}"
        for file in (PACKAGE / room).rglob("*.py")
        for line in strict(ast.parse(file.read_text()))
        if str(file.relative_to(PACKAGE)) not in OUR_OWN
    }
    assert found == set()


def test_a_strict_decode_is_found() -> None:
    assert list(strict(ast.parse("host.read(path).decode().strip()"))) == [1]
    assert list(strict(ast.parse("host.read(path).decode(errors='replace')"))) == []
