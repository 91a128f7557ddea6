"""What an editor shows of a study, by the real yaml-language-server: it reads the schema that each study's first line names."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest

from editor.diagnose import Server

STUDIES = Path(__file__).parents[3] / "studies"
MISTAKES = {
    "testbeds: {container: {driver: container, nic: e1000}}": "nic",
    "workload: {kind: http, keepalive: on}": "keepalive",
    "topology: {link: {rate: fast}}": "a rate such as 10kbit",
    "replicates: many": "integer",
    "order: shuffled": "randomized-blocks",
}
"""A line of a study -> a word of what is said of it."""


@pytest.fixture(scope="module")
def server() -> Iterator[Server]:
    one = Server()
    yield one
    one.close()


@pytest.mark.parametrize("path", sorted(STUDIES.glob("*.yaml")), ids=lambda path: path.stem)
def test_nothing_is_wrong_with_a_study_that_comes_with_the_program(server: Server, path: Path) -> None:
    assert server.diagnostics(path) == []


def test_every_mistake_is_shown_at_its_line(server: Server, tmp_path: Path) -> None:
    shutil.copy(STUDIES / "schema.json", tmp_path)
    lines = ["# yaml-language-server: $schema=schema.json", "study: wrong", *MISTAKES]
    study = tmp_path / "wrong.yaml"
    study.write_text("\n".join(lines) + "\n", encoding="utf-8")
    said: dict[int, str] = {}
    for each in server.diagnostics(study):
        line = each["range"]["start"]["line"]
        said[line] = said.get(line, "") + each["message"]
    assert {lines[line] for line in said} == set(MISTAKES)
    for line, text in said.items():
        assert MISTAKES[lines[line]] in text
