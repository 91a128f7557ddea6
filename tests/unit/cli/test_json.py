"""`--json`: every command has it or says why not, and its envelope holds what `--format json` prints."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import click
import pytest
from manual import json_output

import twinbed
from twinbed.cli.envelope import SCHEMA, WITHOUT
from twinbed.cli.main import cli, run
from twinbed.contracts import exit_codes as codes

CAPTURES = Path(__file__).parents[2] / "golden" / "captures"


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


def has_format(command: click.Command) -> bool:
    return any("--format" in each.opts and "json" in getattr(each.type, "choices", ()) for each in command.params)


@pytest.mark.parametrize("name", COMMANDS)
def test_every_command_has_it_or_says_why_not(name: str) -> None:
    options = [option for each in COMMANDS[name].params for option in each.opts]
    assert options.count("--json") == (name not in WITHOUT)
    assert not (name in WITHOUT and has_format(COMMANDS[name]))


def test_what_is_said_to_lack_it_is_a_command() -> None:
    assert set(WITHOUT) <= set(COMMANDS)


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    path = tmp_path_factory.mktemp("json")
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(path)
        json_output.prepared()
        yield path


@pytest.mark.parametrize("name", json_output.EXAMPLES)
def test_the_envelope_holds_the_result(name: str, folder: Path) -> None:
    code, text = json_output.output(json_output.line(name, "--json"))
    envelope = json.loads(text)
    assert list(envelope) == ["twinbed", "command", "result"]
    assert envelope["twinbed"] == {"schema": SCHEMA, "version": twinbed.__version__}
    assert envelope["command"] == name
    shape = json_output.shape(envelope["result"])
    assert json.loads(json_output.laid_out(shape)) == shape, "the page of the manual shows it"
    if has_format(COMMANDS[name]):
        again, bare = json_output.output(json_output.line(name, "--format", "json"))
        assert (envelope["result"], code) == (json.loads(bare), again)
    else:
        assert envelope["result"], "a command tells what it did"
        for file in envelope["result"].get("written", ()):
            assert (folder / file).exists()


def test_run_tells_its_runs_and_verdict(folder: Path) -> None:
    result = json.loads(json_output.output(["run", "demo.yaml", "--json"])[1])["result"]
    assert result["runs"] == {"complete": 24, "failed": 0, "left": 0, "made": 0}
    assert result["report"] == "results/demo/report.html"
    _, quiet = json_output.output(["run", "demo.yaml", "-q"])
    assert quiet.splitlines() == [*result["verdict"], result["report"]]


def test_a_file_gets_the_bare_result(folder: Path) -> None:
    _, text = json_output.output(["analyse", "stalls", "results/demo", "-o", "stalls.txt", "--json"])
    assert json.loads(text)["result"] == {"written": ["stalls.txt"]}
    _, bare = json_output.output(["analyse", "stalls", "results/demo", "--format", "json"])
    assert (folder / "stalls.txt").read_text() == bare


def test_what_is_said_beside_a_file_is_left_out(folder: Path) -> None:
    """`match` says on standard output that captures share nothing, where its rows go to a file."""
    other = CAPTURES / "http-ipv6.pcap"
    code, text = json_output.output(["match", json_output.CAPTURE, str(other), "-o", "rows.json", "--json"])
    assert code == codes.NOTHING_SHARED
    assert json.loads(text)["result"] == {"written": ["rows.json"]}
    assert json.loads((folder / "rows.json").read_text())


def test_an_error_is_text_elsewhere(folder: Path, capfd: pytest.CaptureFixture[str]) -> None:
    for wrong in (["compare", "nowhere"], ["report", "nowhere"]):
        code = run(wrong)
        plain = capfd.readouterr()
        assert run([*wrong, "--json"]) == code != codes.DONE
        assert capfd.readouterr() == plain
        assert plain.out == ""


def test_another_format_beside_it_is_refused(capfd: pytest.CaptureFixture[str]) -> None:
    assert run(["studies", "--json", "--format", "csv"]) == codes.USAGE
    assert "give one of the two" in capfd.readouterr().err
    assert run(["studies", "--json", "--format", "json"]) == codes.DONE
