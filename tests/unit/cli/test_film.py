"""The film of a session is of commands that there are, and says what they say today where that depends on no machine."""

from __future__ import annotations

import json
import re
from pathlib import Path
from xml.etree import ElementTree

import click
import pytest
from manual.record_film import COMMANDS

from twinbed.cli import main

DOCS = Path(__file__).parents[3] / "docs"
SVG = "{http://www.w3.org/2000/svg}"
MOST_BYTES = 150_000
"""Of the film: every reader of the README loads it."""


@pytest.fixture(scope="module")
def said() -> str:
    """All that was written to the terminal, without what moves the cursor and colours."""
    _, *events = (json.loads(line) for line in (DOCS / "film.cast").read_text().splitlines())
    text = "".join(text for _, kind, text in events if kind == "o")
    return re.sub(r"\x1b(\[[0-9;?]*[A-Za-z]|[()][AB0])", "", text).replace("\r", "")


def test_the_cast_is_an_asciicast() -> None:
    """docs.asciinema.org/manual/asciicast/v2."""
    header, *events = (json.loads(line) for line in (DOCS / "film.cast").read_text().splitlines())
    assert header["version"] == 2 and header["width"] > 0 and header["height"] > 0
    times = [at for at, _, _ in events]
    assert times == sorted(times)


def test_its_commands_are_those_that_are_recorded_and_exist(said: str) -> None:
    assert tuple(line.removeprefix("$ ") for line in said.splitlines() if line.startswith("$ ")) == COMMANDS
    for command in COMMANDS:
        program, name, *words = command.split()
        assert program == "twinbed"
        there = main.cli.get_command(click.Context(main.cli), name)
        assert there
        options = {option for param in there.params for option in param.opts}
        assert {word for word in words if word.startswith("-")} <= options


def test_the_plan_is_what_plan_says(
    said: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    _, *words = COMMANDS[0].split()
    assert main.run(words) == 0
    out = capsys.readouterr().out
    of_the_study = out[out.index("reference ") : out.index("Next:")]
    assert len(of_the_study.splitlines()) > 12
    shown = [line.rstrip() for line in said.splitlines()]
    assert [line for line in of_the_study.splitlines() if line.rstrip() not in shown] == []


def test_the_film_is_of_the_cast(said: str) -> None:
    file = DOCS / "film.svg"
    assert file.stat().st_size < MOST_BYTES
    film = ElementTree.fromstring(file.read_text())
    texts = [text.text or "" for text in film.iter(f"{SVG}text")]
    assert len(texts) > 50
    assert [text for text in texts if text not in said] == []
    drawn = {line.get("id") for line in film.iter(f"{SVG}g")}
    assert {use.get("href") for use in film.iter(f"{SVG}use")} <= {f"#{name}" for name in drawn if name}


def test_nothing_is_fetched_and_nothing_is_run() -> None:
    text = (DOCS / "film.svg").read_text().replace('xmlns="http://www.w3.org/2000/svg"', "")
    assert not re.search(r"<script|https?:|@import|url\(", text)
