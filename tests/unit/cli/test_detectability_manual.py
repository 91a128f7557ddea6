"""docs/detectability.md: its study is run on fake hosts and prints what the manual shows; its settings are the code's."""

from __future__ import annotations

import re
import shlex
from pathlib import Path

import pytest

from twinbed.analyses.detectability.features import REMEDIES
from twinbed.cli.main import run

MANUAL = (Path(__file__).parents[3] / "docs" / "detectability.md").read_text()
((COMMAND, PRINTED),) = re.findall(r"```console\n\$ twinbed (.*?)\n(.*?)```", MANUAL, re.DOTALL)
(STUDY,) = re.findall(r"```yaml\n(.*?)```", MANUAL, re.DOTALL)


def test_the_example_prints_what_it_shows(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfdbinary: pytest.CaptureFixture[bytes]
) -> None:
    (tmp_path / "told.yaml").write_text(STUDY)
    monkeypatch.chdir(tmp_path)
    assert run(["run", "told.yaml", "-o", "results/told"]) == 0
    capfdbinary.readouterr()
    assert run(shlex.split(COMMAND)) == 0
    # The planted noise follows from the runs' names, and those from every default: the interval alone depends on it.
    shown, wanted = (re.sub(r"\[0\.\d+", "[#", text) for text in (capfdbinary.readouterr().out.decode(), PRINTED))
    assert shown.startswith(wanted.rstrip("\n"))
    assert run([*shlex.split(COMMAND), "-o", "told.html"]) == 0
    assert "What hiding costs" in (tmp_path / "told.html").read_text()


def test_the_manual_names_every_setting_that_removes_something() -> None:
    for remedy in REMEDIES.values():
        assert f"`{remedy.setting}" in MANUAL
