"""Every command line of the tutorial and the guides is one that there is; those that need no privileges do what they should."""

from __future__ import annotations

import re
import shlex
from pathlib import Path

import click
import pytest

from twinbed.cli.main import cli, run

DOCS = Path(__file__).parents[3] / "docs"
GUIDES = sorted([*DOCS.glob("tutorial*.md"), DOCS / "index.md", *DOCS.glob("howto-*.md")])
AB = DOCS.parent / "tests" / "golden" / "formats" / "ab-text" / "plain"


def commands(guide: Path) -> list[str]:
    """Of its blocks, in their order; a prompt before them is none of theirs."""
    blocks = re.findall(r"^ *```[^\n]*\n(.*?)^ *```$", guide.read_text(encoding="utf-8"), re.MULTILINE | re.DOTALL)
    lines = [line.strip().removeprefix("$ ") for block in blocks for line in block.replace("\\\n", " ").splitlines()]
    return [line for line in lines if line.startswith("twinbed ")]


def parsed(arguments: list[str]) -> click.Context:
    """What click makes of a command line, down to the last subcommand; nothing is run. A wrong one is a click.UsageError."""
    command: click.Command = cli
    context = cli.make_context("twinbed", list(arguments), **cli.context_settings)
    while isinstance(command, click.Group):
        name, child, rest = command.resolve_command(context, [*context._protected_args, *context.args])
        assert child is not None
        context = child.make_context(name, rest, parent=context)
        command = child
    return context


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """With the files that the guides tell of: an option that names a file has it looked for."""
    monkeypatch.chdir(tmp_path)
    (report,) = AB.glob("input*")
    for side, testbed in (("old", "physical"), ("new", "kvm")):
        for replicate in (1, 2):
            file = tmp_path / side / testbed / f"payload-500_{replicate}.txt"
            file.parent.mkdir(parents=True, exist_ok=True)
            # Files that are the same byte for byte are copies of one run.
            file.write_bytes(report.read_bytes().replace(b"Server Port:", b"Server Port:" + b" " * (replicate + len(side))))
    return tmp_path


@pytest.mark.parametrize("guide", GUIDES, ids=lambda guide: guide.stem)
def test_each_command_is_one_that_there_is(guide: Path, folder: Path) -> None:
    found = commands(guide)
    assert found
    for name in ("first.yaml", "study.yaml", "hardware.yaml", "mine.yaml", "both.zip", "echo.yaml"):
        (folder / name).write_text("")
    for name in ("both", "physical", "virtual", "hardware", "first-quick", "offload-quick", "echo"):
        (folder / "results" / name).mkdir(parents=True)
    for line in found:
        try:
            parsed(shlex.split(line, comments=True)[1:])
        except click.UsageError as error:
            pytest.fail(f"{guide.name}: {line}: {error.format_message()}")


@pytest.mark.parametrize("line", ["plan --no-such-option", "analyse nothing", "merge", "plam"])
def test_a_wrong_command_is_found(line: str, folder: Path) -> None:
    with pytest.raises(click.UsageError):
        parsed(shlex.split(line))


def test_results_that_you_have_are_compared_as_the_guide_says(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    codes = [run(shlex.split(line)[1:]) for line in commands(DOCS / "howto-results-i-have.md")]
    said = capsys.readouterr()
    first, dry, one, other, merged, compared, passport, report = codes
    assert first == 2, said.err
    assert "--pattern 'physical/payload-500_{replicate:int}.txt' --testbed NAME" in said.err  # one testbed, one payload
    assert [dry, one, other, merged, passport, report] == [0] * 6, said.err
    assert compared in (0, 4, 5)
    assert "kvm" in said.out


def test_an_archive_is_read_as_the_guide_says(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for line in commands(DOCS / "howto-results-i-have.md")[2:5]:
        assert run(shlex.split(line)[1:]) == 0, capsys.readouterr().err
    for line in commands(DOCS / "howto-artifact.md"):
        if "study.yaml" not in line and "again " not in f"{line} ":
            assert run(shlex.split(line)[1:]) in (0, 4, 5), (line, capsys.readouterr().err)
    assert (folder / "both.zip").is_file()


def test_the_tutorials_study_is_written_and_planned(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """`plan` ends with 3 where the machine lacks something. The manual has the output itself: it is made with the site."""
    lines = [line for line in commands(DOCS / "tutorial.md") if line.split()[1] in ("init", "plan")]
    assert [line.split()[1] for line in lines] == ["init", "plan"]
    assert run(shlex.split(lines[0])[1:]) == 0
    assert run(shlex.split(lines[1])[1:]) in (0, 3)
    assert "first-quick: 4 cells x 3 replicates" in capsys.readouterr().out
