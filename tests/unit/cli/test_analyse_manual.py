"""Every console example of the manual of `twinbed analyse` prints what the manual shows."""

from __future__ import annotations

import re
import shlex
from pathlib import Path

import pytest

from twinbed.cli.main import run

ROOT = Path(__file__).parents[3]
MANUAL = "".join((ROOT / "docs" / name).read_text() for name in ("analyse.md", "capacity.md"))
EXAMPLES = re.findall(r"```console\n\$ twinbed (.*?)\n(.*?)```", MANUAL, re.S)


def test_there_are_examples():
    assert len(EXAMPLES) >= 3


@pytest.mark.parametrize(("command", "printed"), EXAMPLES)
def test_an_example_prints_what_it_shows(command, printed, capfdbinary, monkeypatch):
    monkeypatch.chdir(ROOT / "tests" / "golden" / "anova")
    assert run(shlex.split(command)) == 0
    out = capfdbinary.readouterr().out.decode()
    for part in printed.split("...\n"):
        assert part in out
