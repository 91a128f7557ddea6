"""Every console example of the manual of `twinbed analyse` prints what the manual shows."""

from __future__ import annotations

import re
import shlex
from pathlib import Path

import pytest

from twinbed.cli.main import run

ROOT = Path(__file__).parents[2]
EXAMPLES = re.findall(r"```console\n\$ twinbed (.*?)\n(.*?)```", (ROOT / "docs" / "analyse.md").read_text(), re.S)


def test_there_are_examples():
    assert len(EXAMPLES) >= 2


@pytest.mark.parametrize(("command", "printed"), EXAMPLES)
def test_an_example_prints_what_it_shows(command, printed, capfdbinary, monkeypatch):
    monkeypatch.chdir(ROOT / "tests" / "golden" / "anova")
    assert run(shlex.split(command)) == 0
    out = capfdbinary.readouterr().out.decode()
    for part in printed.split("...\n"):
        assert part in out
