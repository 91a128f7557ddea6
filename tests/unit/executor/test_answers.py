"""Answers of workers are what a function declares, or an error that says who sent what."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum

import pytest

from twinbed.executor.answers import FAILURE, JSON_BYTES, VALUE, carried_out, program, value_of
from twinbed.executor.packed import packed, unpacked
from twinbed.executor.protocol import BadAnswer, NoExecutor
from twinbed.model.error import TwinbedError


class Kind(StrEnum):
    SHORT = "short"


@dataclass(frozen=True, slots=True)
class Result:
    kind: Kind
    numbers: tuple[float, ...]
    content: bytes
    by_name: Mapping[str, int | None]


def result(number: float) -> Result:
    return Result(Kind.SHORT, (number, math.inf, -0.0, 0.1 + 0.2), b"\xff\0", {"a": 1, "b": None})


def content(size: int) -> bytes:
    return bytes(size)


def fails(error: Exception) -> int:
    raise error


@pytest.mark.parametrize("number", [1 / 3, math.nan, 5e-324, 1e308])
def test_a_value_comes_as_it_was(number: float) -> None:
    assert repr(value_of(carried_out(program(), result, number), result, "w")) == repr(result(number))
    assert value_of(carried_out(program(), content, JSON_BYTES + 1), content, "w") == bytes(JSON_BYTES + 1)


@pytest.mark.parametrize(
    "answer",
    [
        "text",
        None,
        b"",
        b"X[1]",
        VALUE,
        VALUE + b"[1, 2]",
        VALUE + b"[{}]",
        VALUE + b'[{"kind": "long", "numbers": [], "content": "", "by_name": {}}]',
        VALUE + b'[{"kind": "short", "numbers": ["1"], "content": "", "by_name": {}}]',
        VALUE + b'[{"kind": "short", "numbers": [], "content": "", "by_name": {}, "more": 1}]',
        VALUE + b"[" * 100_000,
        FAILURE + b"{}",
        FAILURE + b'{"message": "m", "exit_code": 0}',
        FAILURE + b'{"message": "m", "class": "os.system"}',
        FAILURE + b" " * JSON_BYTES + b"{}",
    ],
    ids=range(15),
)
def test_anything_else_is_refused(answer: object) -> None:
    with pytest.raises(BadAnswer, match=r"^w ") as caught:
        value_of(answer, result, "w")
    assert caught.value.exit_code == 1 and len(caught.value.message) < 1100


@pytest.mark.parametrize(
    ("error", "text", "exit_code"),
    [
        (NoExecutor("not three", advice="take four", exit_code=7), "not three", 7),
        (ValueError("\udcff"), r"ValueError: \udcff", 1),
        (RecursionError("deep"), "RecursionError: deep", 1),
    ],
)
def test_what_is_raised_is_raised_here(error: Exception, text: str, exit_code: int) -> None:
    with pytest.raises(TwinbedError) as caught:
        value_of(carried_out(program(), fails, error), fails, "w")
    assert (caught.value.message, caught.value.exit_code) == (text, exit_code)


def test_an_error_of_the_system_is_one_here() -> None:
    with pytest.raises(FileNotFoundError) as caught:
        value_of(carried_out(program(), fails, FileNotFoundError(2, "No such file", "/x")), fails, "w")
    assert (caught.value.strerror, caught.value.filename) == ("No such file", "/x")


def test_files_come_as_they_were() -> None:
    files = {"runs": b"\n1", "empty": b"", "a.parquet": bytes(1000)}
    assert unpacked(packed(files)) == files


@pytest.mark.parametrize("name", ["../x", "", ".hidden", "a/b", "a\x1b", "a" * 101])
def test_names_of_files_lead_nowhere(name: str) -> None:
    with pytest.raises(BadAnswer, match="name"):
        unpacked(packed({name: b""}))


@pytest.mark.parametrize("content", [b"", b"{", b"[]\n", b'{"a": -1}\n', b'{"a": 2}\nx', b'{"a": "1"}\nx', b'{"a": true}\nx'])
def test_what_is_no_list_of_files_is_refused(content: bytes) -> None:
    with pytest.raises(BadAnswer):
        unpacked(content)
