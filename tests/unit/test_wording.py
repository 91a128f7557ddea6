"""Every text follows the rules of wording: rooms of the program, the manual, ``--help`` of every command.

``manual/wording.py`` has the rules: no banned word, no sentence above 35 words, none that begins with its object, and
docstrings of functions that begin with a verb.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import click
import pytest
from manual import commands, fleets, gallery, metrics, published, settings, wording

from twinbed.cli.help import VERBATIM, described
from twinbed.cli.main import cli

ROOT = Path(__file__).parents[2]
SOURCES = ROOT / "src" / "twinbed"
# fmt: off
NOT_YET: frozenset[str] = frozenset()
# fmt: on
"""Rooms, pages and commands whose texts are still to be rewritten. It only shrinks."""

ROOMS = {path.stem: path for path in SOURCES.iterdir() if path.suffix == ".py" or (path / "__init__.py").is_file()}
PAGES = {path.relative_to(ROOT).as_posix(): path for path in (ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md")))}
# The handbook and the page of JSON take a minute to make; their sentences are those of rooms and of ``manual``.
GENERATED = {
    "commands": commands,
    "gallery": gallery,
    "metrics": metrics,
    "published": published,
    "scale": fleets,
    "settings": settings,
}


def every_context(context: click.Context) -> Iterator[click.Context]:
    yield context
    if isinstance(context.command, click.Group):
        for name in context.command.list_commands(context):
            command = context.command.get_command(context, name)
            assert command is not None
            yield from every_context(click.Context(command, info_name=name, parent=context))


COMMANDS = {each.command_path: each for each in every_context(click.Context(cli, info_name="twinbed"))}


def clean(names: object) -> list[str]:
    return sorted(set(names) - NOT_YET)


def test_what_is_not_yet_clean_exists() -> None:
    assert {*ROOMS, "manual", *PAGES, *(f"generated/{name}" for name in GENERATED), *COMMANDS} >= NOT_YET


def wrong_of(texts: Iterator[wording.Text]) -> list[str]:
    return [f"{each.path}:{each.line}: {'; '.join(each.problems)}" for each in texts if each.problems]


@pytest.mark.parametrize("room", clean([*ROOMS, "manual"]))
def test_a_room_speaks_plainly(room: str) -> None:
    assert wrong_of(wording.texts([ROOMS.get(room, ROOT / "manual")])) == []


@pytest.mark.parametrize("page", clean(PAGES))
def test_a_page_speaks_plainly(page: str) -> None:
    assert wrong_of(wording.texts([PAGES[page]])) == []


@pytest.mark.parametrize("name", clean(f"generated/{name}" for name in GENERATED))
def test_a_generated_page_speaks_plainly(name: str, tmp_path: Path) -> None:
    page = tmp_path / "page.md"
    page.write_text(GENERATED[name.removeprefix("generated/")].text())
    assert wording.of_page(page).problems == []


@pytest.mark.parametrize("path", clean(COMMANDS))
def test_help_speaks_plainly(path: str) -> None:
    command = COMMANDS[path].command
    help_text = described(command)
    texts = [help_text.sentence, *help_text.notes, command.epilog or ""]
    texts += [each.help or "" for each in command.params if isinstance(each, click.Option)]
    assert [problem for text in texts if not text.startswith(VERBATIM) for problem in wording.problems(text)] == []


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("Compare the testbeds. Print the verdict.", []),
        ("Whether it holds is printed.", ["fronted: Whether it holds is printed."]),
        ("Whether it holds?", []),
        ("A dear testbed stood still.", ["banned: dear", "banned: stood still"]),
        ("The option --dear names a testbed, `dear` its value.", []),
        (" ".join(["word"] * 36) + ".", ["36 words: " + "word " * 10 + "..."]),
        (" ".join(["word"] * 20) + ". `code` " + " ".join(["word"] * 20) + ".", []),
        (" ".join(["word"] * 20) + " (it is.) Then " + " ".join(["word"] * 20) + ".", []),
    ],
)
def test_what_the_rules_find(text: str, expected: list[str]) -> None:
    assert wording.problems(text) == expected


def test_what_a_docstring_may_begin_with(tmp_path: Path) -> None:
    file = tmp_path / "some.py"
    file.write_text(
        '@property\ndef name():\n    """The name."""\n\n\ndef verb():\n    """Return it."""\n\n\n'
        'def noun():\n    """The name."""'
        '\n\n\ndef question():\n    """Where does the time go?"""\n\n\ndef display():\n    """Run it.\n\n    \\b\n    '
        + "twinbed run "
        + "x " * 50
        + '\n    """\n'
    )
    assert [(each.text, each.problems) for each in wording.of_python(file) if each.problems] == [
        ("The name.", ["docstring without a verb first"])
    ]
