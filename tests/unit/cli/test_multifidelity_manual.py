"""Every console example of docs/multifidelity.md prints what the manual shows, of the study that the manual shows."""

from __future__ import annotations

import re
import shlex
from pathlib import Path

import pytest
from tests.multifidelity_results import STUDY, write

from twinbed.cli.main import run

MANUAL = (Path(__file__).parents[3] / "docs" / "multifidelity.md").read_text()
EXAMPLES = re.findall(r"```console\n\$ twinbed (.*?)\n(.*?)```", MANUAL, re.S)
(TEXT,) = re.findall(r"```yaml\n(.*?)```", MANUAL, re.S)


@pytest.fixture
def there(tmp_path, monkeypatch):
    """The pilot, and the study with the plan that the manual prints."""
    (tmp_path / "mix.yaml").write_text(TEXT)
    write(tmp_path / "results" / "pilot", TEXT)
    seed, samples = (re.findall(pattern, EXAMPLES[0][1], re.M)[0] for pattern in (r"^seed: \d+", r"samples: {.*}"))
    write(tmp_path / "results" / "mix", TEXT.replace("seed: 6", seed).replace("samples: 30", samples))
    monkeypatch.chdir(tmp_path)


def test_the_study_is_that_of_other_tests():
    assert len(EXAMPLES) == 2
    assert TEXT.strip() == STUDY.strip()


@pytest.mark.parametrize(("command", "printed"), EXAMPLES)
def test_an_example_prints_what_it_shows(there, command, printed, capfdbinary):
    assert run(shlex.split(command)) == 0
    out = capfdbinary.readouterr().out.decode()
    for part in printed.split("...\n"):
        assert part in out
