"""What hosts and kernels say is decoded whatever its bytes are: one value that is not UTF-8 ends no study."""

from __future__ import annotations

import ast
from collections.abc import Iterable, Iterator

import pytest

from sources import nodes

ROOMS = ("backgrounds", "fleet", "hosts", "instruments", "lab", "linkcheck", "links", "readers", "testbeds", "workloads")
OUR_OWN = {
    # The compiled core wrote these texts.
    "readers/counters/place.py",
    "readers/stations.py",
}


def strict(nodes: Iterable[ast.AST]) -> Iterator[int]:
    """Lines with ``.decode()`` without a word on what to do with other bytes."""
    for node in nodes:
        if not isinstance(node, ast.Call) or node.args or node.keywords:
            continue
        if isinstance(node.func, ast.Attribute) and node.func.attr == "decode":
            yield node.lineno


@pytest.mark.parametrize("room", ROOMS)
def test_nothing_of_a_host_is_decoded_strictly(room: str) -> None:
    of_room = {name: each for name, each in nodes().items() if name.split("/")[0] == room}
    assert of_room
    assert {f"{name}:{line}" for name, each in of_room.items() for line in strict(each) if name not in OUR_OWN} == set()


def test_a_strict_decode_is_found() -> None:
    assert list(strict(ast.walk(ast.parse("host.read(path).decode().strip()")))) == [1]
    assert list(strict(ast.walk(ast.parse("host.read(path).decode(errors='replace')")))) == []
