"""The manual of regression: every example is run, and prints every line that the manual shows."""

from __future__ import annotations

import re
import shlex
import shutil
from pathlib import Path

import pytest

from twinbed.cli.main import run

ROOT = Path(__file__).parents[3]
EXAMPLES = re.findall(r"```console\n\$ twinbed (.*?)\n(.*?)```", (ROOT / "docs/analyse-regression.md").read_text(), re.S)


@pytest.mark.parametrize(("command", "shown"), EXAMPLES)
def test_examples(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], command: str, shown: str
) -> None:
    monkeypatch.chdir(tmp_path)
    shutil.copy(ROOT / "tests/golden/regression/study.csv", "nics.csv")
    run(shlex.split(command))
    said = capsys.readouterr()
    printed = {" ".join(line.split()) for line in (said.out + said.err).splitlines()}
    for line in shown.splitlines():
        assert " ".join(line.split()) in printed


def test_there_are_examples() -> None:
    assert len(EXAMPLES) == 3
