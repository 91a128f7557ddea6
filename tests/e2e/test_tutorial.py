"""The tutorial of one's own program is followed to the letter, but for the number of replicates."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

from twinbed.cli.main import run

PAGE = Path(__file__).parents[2] / "docs/tutorial-own-program.md"


def test_ten_lines_bring_ones_own_program_to_a_verdict(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    text = PAGE.read_text(encoding="utf-8")
    files = dict(re.findall(r'^```\w+ title="([^"]+)"\n(.*?)^```$', text, re.MULTILINE | re.DOTALL))
    assert sorted(files) == ["client.py", "echo.yaml", "server.py"]
    assert len(files["echo.yaml"].splitlines()) == 10
    assert "replicates: 5" in files["echo.yaml"]
    for name, content in files.items():
        (tmp_path / name).write_text(content.replace("replicates: 5", "replicates: 2"))
    monkeypatch.chdir(tmp_path)
    commands = [line.split()[1:] for line in text.splitlines() if line.startswith("twinbed ")]
    assert [command[0] for command in commands] == ["try", "run", "compare"]
    assert run(commands[0]) == 0
    shown = capsys.readouterr().out.splitlines()[0]
    assert re.fullmatch(r"response_time +\S+ s +client/client\.txt: line 1, column 1: '\S+' and 499 more", shown), shown
    assert run(commands[1]) == 0
    capsys.readouterr()
    assert run([*commands[2], "--format", "json"]) in (0, 4, 5)
    rows = [row for row in json.loads(capsys.readouterr().out)["comparisons"] if row["metric"] == "response_time"]
    assert [(row["testbed"], row["n"]) for row in rows] == [("virtio", 2)]
