"""``--help`` of every command: a sentence, examples that the command accepts, options in groups; and ``twinbed`` alone.

The words of analyses' help are their rooms': ``test_wording`` reads them."""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterator
from pathlib import Path

import click
import pytest

from twinbed.analyses import ANALYSES
from twinbed.cli.help import METHOD, described, groups
from twinbed.cli.main import COMMANDS, SECTIONS, cli, run
from twinbed.contracts import exit_codes as codes

MOST_IN_A_GROUP = 8
OF_ANALYSES = {*ANALYSES, "predict"}
"""Commands whose help is written in the folders of analyses."""


def every_context(context: click.Context) -> Iterator[click.Context]:
    yield context
    if isinstance(context.command, click.Group):
        for name in context.command.list_commands(context):
            command = context.command.get_command(context, name)
            assert command is not None
            yield from every_context(click.Context(command, info_name=name, parent=context))


CONTEXTS = list(every_context(click.Context(cli, info_name="twinbed", **cli.context_settings)))
OF_COMMANDS = [(each.command_path, described(each.command).examples) for each in CONTEXTS]
EXAMPLES = [
    line
    for _, lines in OF_COMMANDS
    for line in " ".join(lines).replace("\\ ", " ").replace(" twinbed ", "\ntwinbed ").splitlines()
]


def test_every_command_is_in_one_section() -> None:
    names = [name for members in SECTIONS.values() for name in members]
    assert sorted(names) == sorted(set(names)) == sorted(COMMANDS)


@pytest.mark.parametrize("context", CONTEXTS, ids=lambda each: each.command_path)
def test_help_begins_with_a_sentence_and_has_short_groups(context: click.Context) -> None:
    sentence = described(context.command).sentence
    assert sentence[-1] in ".?" and len(sentence.split()) <= (50 if context.info_name in OF_ANALYSES else 25), sentence
    for title, rows in groups(context).items():
        assert len(rows) <= MOST_IN_A_GROUP, (title, rows)
    if context.info_name not in OF_ANALYSES:
        assert METHOD not in groups(context)


@pytest.mark.parametrize("path", [each.command_path for each in CONTEXTS if each.info_name not in OF_ANALYSES])
def test_every_command_has_examples(path: str) -> None:
    assert 1 <= len(dict(OF_COMMANDS)[path]) <= 3, "a block of lines that begin with twinbed"


@pytest.mark.parametrize("line", dict.fromkeys(EXAMPLES))
def test_examples_are_accepted(line: str) -> None:
    """Every command and option of an example is there. The text after three blanks says what the example does."""
    words = shlex.split(re.split(r" {2,}| [>|] |  ?#", line)[0])[1:]
    context = cli.make_context("twinbed", words) if words else None
    while context is not None and isinstance(context.command, click.Group) and context._protected_args + context.args:
        rest = [*context._protected_args, *context.args]
        name, command, rest = context.command.resolve_command(context, rest)
        assert command is not None
        context = command.make_context(name, rest, parent=context)


def shown(capsys: pytest.CaptureFixture[str]) -> list[str]:
    assert run([]) == codes.DONE
    return capsys.readouterr().out.splitlines()


def test_twinbed_alone_says_what_to_do_next(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys) -> None:
    monkeypatch.chdir(tmp_path)
    assert "  twinbed init        write a first study, study.yaml" in shown(capsys)
    Path("mine.yaml").write_text("# a study\nstudy: mine\n")
    Path("other.yaml").write_text("services: {}\n")
    lines = shown(capsys)
    assert (
        lines[0] == "mine.yaml is a study without results. Next:"
        and "  twinbed plan mine.yaml  show its runs, time and disk" in lines
    )
    (tmp_path / "results" / "mine" / "runs" / "a1").mkdir(parents=True)
    (tmp_path / "results" / "mine" / "runs" / ".unfinished-b2").mkdir()
    (tmp_path / "results" / "mine" / "study.json").write_text("{}")
    Path("a second.yaml").write_text("study: second\n")
    lines = shown(capsys)
    assert lines[0] == "results/mine holds 1 run. Next:" and len(lines) <= 8
    assert [line.split("  ")[1] for line in lines[1:-1]] == [
        "twinbed compare results/mine",
        "twinbed explain results/mine",
        "twinbed report results/mine",
        "twinbed run mine.yaml",
        "twinbed plan 'a second.yaml'",
        "twinbed run 'a second.yaml'",
    ]
