"""`-q` and `-v`: every command that does more than print prose has them, and they hold what they promise."""

from __future__ import annotations

import json
import logging
from collections.abc import Iterator
from pathlib import Path

import click
import pytest

from twinbed.cli.envelope import WITHOUT
from twinbed.cli.main import cli, run
from twinbed.contracts import exit_codes as codes


def commands(group: click.Group, above: tuple[str, ...] = ()) -> Iterator[tuple[str, click.Command]]:
    context = click.Context(group)
    for name in group.list_commands(context):
        command = group.get_command(context, name)
        assert command is not None
        if isinstance(command, click.Group):
            yield from commands(command, (*above, name))
        else:
            yield " ".join((*above, name)), command


COMMANDS = dict(commands(cli))
TABLE = "observation,loss,receivers\n" + "".join(f"{i},{i * i % 7 / 10},{i % 3}\n" for i in range(30))


@pytest.mark.parametrize("name", COMMANDS)
def test_every_command_has_them_once(name: str) -> None:
    options = [option for each in COMMANDS[name].params for option in each.opts]
    for option in ("-q", "--quiet", "-v", "--verbose"):
        assert options.count(option) == (name not in WITHOUT)


@pytest.fixture
def table(tmp_path: Path) -> str:
    (tmp_path / "table.csv").write_text(TABLE)
    return str(tmp_path / "table.csv")


def test_quiet_prints_nothing_and_ends_alike(table: str, capfd: pytest.CaptureFixture[str]) -> None:
    asked = ["analyse", "anova", table, "--response", "loss", "--factor", "receivers"]
    loud = run(asked)
    assert "receivers" in capfd.readouterr().out
    assert run([*asked, "-q"]) == loud
    assert capfd.readouterr() == ("", "")


def test_quiet_leaves_json(table: str, capfd: pytest.CaptureFixture[str]) -> None:
    run(["analyse", "anova", table, "--response", "loss", "--factor", "receivers", "-q", "--json"])
    assert json.loads(capfd.readouterr().out)["command"] == "analyse anova"


def test_quiet_leaves_errors(table: str, capfd: pytest.CaptureFixture[str]) -> None:
    assert run(["analyse", "anova", table, "--response", "lost", "--factor", "receivers", "-q"]) == codes.USAGE
    out, err = capfd.readouterr()
    assert not out
    assert "lost" in err


def test_quiet_of_what_writes_a_file(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    assert run(["init", str(tmp_path / "a.yaml"), "-q"]) == codes.DONE
    assert capfd.readouterr().out == ""
    assert (tmp_path / "a.yaml").read_text().count("testbeds:")


def test_verbose_says_what_is_written_and_ends_with_the_command(
    table: str, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    page = tmp_path / "page.html"
    asked = ["analyse", "anova", table, "--response", "loss", "--factor", "receivers", "--html", str(page)]
    run(asked)
    plain = capfd.readouterr()
    run([*asked, "-v"])
    said = capfd.readouterr()
    assert said.out == plain.out
    assert f"write {page}" in said.err
    assert said.err.splitlines()[-1].endswith("done")
    assert not logging.getLogger("twinbed").handlers
    run(asked)
    assert capfd.readouterr() == plain
