"""Hostile names through every command in every form: nothing is obeyed by a terminal or a spreadsheet, and nothing fails.

`python tests/hostile_names.py --cases 100 --seed 1` is the long form."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

from hostile_names import NAMES, Case, campaign, faults, is_seen
from synthetic_results import planted_response, write_study
from twinbed.cli.main import COMMANDS

SEED = 2
"""`make soak` tries others."""


def test_no_command_obeys_a_name() -> None:
    outcome = campaign([SEED], figures=lambda _: True)
    assert dict(outcome.wrong) == {}
    begun = {command.partition(" ")[0] for command in outcome.commands}
    assert set(COMMANDS) <= begun, "each command is called"
    assert outcome.calls > 125


def test_what_is_wrong_is_seen() -> None:
    """Else the test above cannot fail."""
    assert not list(faults(["compare"], 0, "fine\n", ""))
    for words, out, err in (
        (["compare"], "a\x1b[2J", ""),
        (["compare"], "", "\u202e"),
        (["compare"], "FORGED-LINE equivalent", ""),
        (["compare"], "", "Traceback (most recent call last)"),
        (["compare", "--format", "csv"], "a,=1+1", ""),
        (["compare", "--json"], "{", ""),
    ):
        assert list(faults(words, 0, out, err)), (out, err)
    assert list(faults([], "KeyError at x", "", ""))


def test_a_case_has_all_names() -> None:
    assert sum(not all(map(is_seen, name)) for name in NAMES.values()) > 15
    assert set(Case(1, Path()).hostile) == set(NAMES.values())


DRAW = """
import sys
from twinbed.cli.main import run
for folder in sys.argv[1:]:
    print(folder, run(["report", folder]), flush=True)
"""
"""In a process of its own: the library that draws ended the process."""


def test_a_page_of_any_reference_is_drawn(tmp_path: Path) -> None:
    folders = []
    for number, reference in enumerate(("{x}{0.y}", "\\g<0>\\q", "\x1b[2J\0\ud800")):
        folders.append(folder := tmp_path / str(number))
        testbeds = (reference, f"other {reference}")
        write_study(folder, testbeds, {}, 3, planted_response(dict(zip(testbeds, (1.0, 0.5), strict=True)), 0.02, seed=1))
    done = subprocess.run([sys.executable, "-c", DRAW, *folders], capture_output=True, text=True, check=False)
    assert [line for line in done.stdout.splitlines() if line.endswith(" 0")] == [f"{folder} 0" for folder in folders]
    assert (done.returncode, done.stderr) == (0, "")
    for folder in folders:
        assert all(map(is_seen, (folder / "report.html").read_text()))
