"""What people type: other words for help and the version, misspelt commands, options and profiles."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import click
import pytest

import twinbed
from twinbed.cli.lazy import LazyGroup
from twinbed.cli.main import cli, run
from twinbed.contracts import exit_codes as codes
from twinbed.lab import preflight

STUDY = """
study: words
testbeds: {one: {driver: fake, seed: 1}, two: {driver: fake, seed: 2}}
workload: {kind: planted}
instruments: []
factors: {testbed: [one, two]}
replicates: 2
"""


def every_command(group: click.Group = cli, words: tuple[str, ...] = ()) -> Iterator[tuple[str, ...]]:
    context = click.Context(group)
    for name in group.list_commands(context):
        command = group.get_command(context, name)
        yield (*words, name)
        if isinstance(command, click.Group):
            yield from every_command(command, (*words, name))


@pytest.fixture
def shown(capsys: pytest.CaptureFixture[str]):
    def command(*words: str | Path) -> tuple[int, str, str]:
        code = run([str(word) for word in words])
        out, err = capsys.readouterr()
        return code, out, err

    return command


def test_the_version_has_both_its_names(shown) -> None:
    assert shown("-V") == shown("--version") == (codes.DONE, f"twinbed {twinbed.__version__}\n", "")


@pytest.mark.parametrize("words", [(), *every_command()], ids=" ".join)
def test_help_is_a_word_too(shown, words: tuple[str, ...]) -> None:
    assert shown("help", *words) == shown(*words, "--help")


def test_help_of_what_there_is_not(shown) -> None:
    code, _, err = shown("help", "pln")
    assert code == codes.USAGE and "'plan'" in err
    code, _, err = shown("help", "plan", "more")
    assert code == codes.USAGE and "twinbed plan has no commands of its own" in err


@pytest.mark.parametrize(
    "words, hint",
    [
        (("pln",), "Did you mean 'plan'"),
        (("analyze", "anova"), "Did you mean 'analyse'?"),
        (("anova", "results"), "It is 'twinbed analyse anova'."),
        (("analyse", "compare"), "It is 'twinbed compare'."),
        (("analyse", "anva"), "Did you mean 'anova'"),
        (("plan", "--profil", "quick"), "'--profile'"),
        (("compare", "--formt=json"), "'--format'"),
    ],
)
def test_what_is_misspelt_is_guessed(shown, words: tuple[str, ...], hint: str) -> None:
    code, out, err = shown(*words)
    assert (code, out) == (codes.USAGE, "") and hint in err


def test_no_more_is_guessed_than_can_be_read(shown) -> None:
    alike = LazyGroup("alike", lazy={f"plan{each}": cli.lazy["plan"] for each in range(9)})
    with pytest.raises(click.UsageError) as caught:
        alike.main(["plan"], standalone_mode=False)
    assert caught.value.message.count("'plan") == 1 + 3
    assert "Did you mean" not in shown("qqqq")[2]


def test_a_profile_that_a_study_has_not(shown, tmp_path: Path) -> None:
    file = tmp_path / "s.yaml"
    file.write_text(STUDY)
    code, _, err = shown("plan", file, "--profile", "quick")
    assert code == codes.USAGE
    assert err.startswith("--profile: 'quick' is not a profile of this study: it has none, so leave --profile out\n")
    file.write_text(f"{STUDY}profiles: {{quick: {{replicates: 1}}, slow: {{replicates: 9}}}}\n")
    code, _, err = shown("run", file, "--profile", "quik")
    assert code == codes.USAGE and "; allowed: quick, slow; did you mean 'quick'?" in err


def test_check_takes_settings_as_plan_does(shown, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    file = tmp_path / "s.yaml"
    file.write_text(STUDY)
    checked = []

    def note(testbeds):
        checked.append([params.seed for _, _, params in testbeds])
        return []

    monkeypatch.setattr(preflight, "study", note)
    assert shown("check", file)[0] == shown("check", file, "-s", "testbeds.two.seed=7")[0] == codes.DONE
    assert checked == [[1, 2], [1, 7]]
    code, _, err = shown("check", file, "--set", "replicats=2")
    assert code == codes.USAGE and "did you mean 'replicates'?" in err
    code, _, err = shown("check", "--set", "replicates=2")
    assert code == codes.USAGE and "--set changes a study" in err
