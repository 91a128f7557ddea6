"""docs/advise.md: its study is run on fake hosts and prints what the manual shows."""

from __future__ import annotations

import re
import shlex
from pathlib import Path

import pytest

from twinbed.cli.main import run

MANUAL = (Path(__file__).parents[3] / "docs" / "advise.md").read_text()
((COMMAND, PRINTED),) = re.findall(r"```console\n\$ twinbed (.*?)\n(.*?)```", MANUAL, re.DOTALL)
(STUDY,) = re.findall(r"```yaml\n(.*?)```", MANUAL, re.DOTALL)


def test_the_example_prints_what_it_shows(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfdbinary: pytest.CaptureFixture[bytes]
) -> None:
    (tmp_path / "stands-in.yaml").write_text(STUDY)
    monkeypatch.chdir(tmp_path)
    run(["run", "stands-in.yaml", "-o", "results/stands-in", "--no-report"])
    capfdbinary.readouterr()
    assert run(shlex.split(COMMAND)) == 0
    printed = capfdbinary.readouterr().out.decode()
    assert printed.startswith(PRINTED.rstrip("\n"))
    assert "slow gives 0.7" in printed
