"""The planted results of the analyses of N, and a command line."""

from __future__ import annotations

from pathlib import Path

import pytest

from numbered_results import WithMachine, planted
from twinbed.cli.main import run
from twinbed.contracts import exit_codes as codes
from twinbed.results.store import Store


@pytest.fixture(scope="module")
def results(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return planted(tmp_path_factory.mktemp("results") / "study")


@pytest.fixture
def shown(capfdbinary):
    """Runs a command line: exit code, standard output, standard error."""

    def command(*arguments: object) -> tuple[int, str, str]:
        code = run(["analyse", *map(str, arguments)])
        out, err = capfdbinary.readouterr()
        return code, out.decode(), err.decode()

    return command


@pytest.fixture
def opened(results, shown):
    """The extracted results with the machine's metrics."""
    assert shown("capacity", results, "--at-least", "1")[0] == codes.DONE
    return WithMachine(Store.open(results))
