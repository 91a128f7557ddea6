"""The fuzz targets in Python without atheris: mutations of real inputs, a bounded number, the same each time."""

from __future__ import annotations

import random
from pathlib import Path

import pytest
from benchmarks.fuzz import targets
from benchmarks.fuzz.__main__ import seed

ROUNDS = {"study": 40, "archive": 60, "agent": 150, "minimega": 600, "imported": 250}
OWN_SEEDS = {
    "agent": [b"\x02\0\0\0\x01\0\0\0\x25{}", b"!\x02\0\0\0\0\0\0\0\x01{}", b"\x05\0\0\0\x01\0\0\0\x2f[[[[["],
    "minimega": [b'{"Resp": [{"Host": "h", "Header": ["id"], "Tabular": [["0"]]}], "More": false}', b'{"a": "\\""} {"b": 1}'],
}
ODD = bytes([0, 1, 0xFF, 0x7F, 0x80]) + b"-%:\n 9({[\"'"


def mutated(content: bytes, draw: random.Random) -> bytes:
    made = bytearray(content[:4096])
    for _ in range(draw.randint(1, 6)):
        at, length = draw.randint(0, len(made)), draw.randint(0, 40)
        made[at : at + draw.choice((0, 1, length))] = draw.choice((bytes([draw.choice(ODD)]), made[:length], b""))
    return bytes(made)


@pytest.mark.parametrize("name", targets.TARGETS)
def test_readers_bear_what_they_are_given(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    seeds, work = tmp_path / "seeds", tmp_path / "work"
    seeds.mkdir()
    work.mkdir()
    monkeypatch.setattr(targets, "FOLDER", work)
    seed(name, seeds)
    known = [file.read_bytes() for file in sorted(seeds.iterdir())] + OWN_SEEDS.get(name, [])
    draw = random.Random(20260101)
    for content in known if name in OWN_SEEDS else ():
        targets.TARGETS[name](content)
    for _ in range(ROUNDS[name]):
        targets.TARGETS[name](mutated(draw.choice(known), draw))


def test_an_answer_that_is_nested_deeply_is_an_error() -> None:
    targets.TARGETS["minimega"](b'{"Resp": ' + b"[" * 200_000 + b"]" * 200_000 + b"}")
