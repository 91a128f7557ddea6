"""Every console example of the manual of `twinbed calibrate` prints what the manual shows."""

from __future__ import annotations

import re
import shlex
from pathlib import Path

import pytest
from tests.calibration_results import write_calibrated

from twinbed.cli.main import run

MANUAL = (Path(__file__).parents[3] / "docs" / "calibration.md").read_text()
EXAMPLES = re.findall(r"```console\n\$ twinbed (.*?)\n(.*?)```", MANUAL, re.S)


@pytest.fixture(scope="module")
def results(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Made data: 16 payloads and 3 numbers of threads on virtio, 8 of the payloads on physical."""
    folder = tmp_path_factory.mktemp("manual")
    write_calibrated(folder / "results")
    return folder


def test_the_examples_print_what_they_show(
    results: Path, capfdbinary: pytest.CaptureFixture[bytes], monkeypatch: pytest.MonkeyPatch
) -> None:
    """In their order: the second reads what the first has written."""
    monkeypatch.chdir(results)
    assert [command.split()[0] for command, _ in EXAMPLES] == ["calibrate", "predict"]
    for command, printed in EXAMPLES:
        assert run(shlex.split(command)) == 0
        out = capfdbinary.readouterr().out.decode()
        for part in printed.split("...\n"):
            assert part in out, part
