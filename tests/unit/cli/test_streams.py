"""Output that nobody reads, that has no room, or that was closed; and the signals that interrupt."""

from __future__ import annotations

import os
import resource
import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from tests.command import twinbed

from twinbed.cli import main
from twinbed.model.error import TwinbedError
from twinbed.render.output import write

STUDY = Path(__file__).parents[3] / "studies" / "quickstart.yaml"
PROGRAM = [sys.executable, "-m", "twinbed.cli.main"]
PLAN = [*PROGRAM, "plan", str(STUDY)]
SETUP = [*PROGRAM, "setup", "container"]
"""It prints at once."""


def test_a_reader_that_has_gone_is_no_error() -> None:
    read, write = os.pipe()
    os.close(read)
    done = subprocess.run(SETUP, stdout=write, stderr=subprocess.PIPE, check=False)
    os.close(write)
    assert (done.returncode, done.stderr) == (128 + signal.SIGPIPE, b"")


def test_no_room_for_the_output_is_said() -> None:
    with Path("/dev/full").open("wb") as full:
        done = subprocess.run(SETUP, stdout=full, stderr=subprocess.PIPE, check=False)
    assert done.returncode == 2
    assert done.stderr.startswith(b"twinbed: standard output: No space left on device\n")


def test_no_room_for_a_page_names_the_page(tmp_path: Path) -> None:
    with pytest.raises(TwinbedError, match=r"page\.html cannot be written: File too large"):
        _with_small_files(lambda: write("a" * 10_000, tmp_path / "page.html"))
    assert list(tmp_path.iterdir()) == []


def _with_small_files(act: Callable[[], None]) -> None:
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (1000, before[1]))
    try:
        act()
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)


@pytest.mark.parametrize("wide", ["0", "99999999", "-1", "x"])
def test_any_width_is_one(wide: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", wide)
    done = twinbed("published", "list")
    assert (done.returncode, done.stderr) == (0, "")


def test_a_working_folder_that_is_gone_is_said(tmp_path: Path) -> None:
    gone = ["sh", "-c", 'cd "$1"; rmdir "$1"; shift; exec "$@"', "sh", str(tmp_path), *PLAN]
    done = subprocess.run(gone, capture_output=True, check=False)
    assert (done.returncode, done.stderr.splitlines()[0]) == (2, b"twinbed: the working directory was deleted")


@pytest.mark.parametrize("words", [["plan", ""], ["report", "results", "-o", ""], ["compare", ""]])
def test_an_empty_path_is_not_the_working_directory(words: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    assert main.run(words) == 2
    assert "the name of the file is empty" in capsys.readouterr().err


def test_a_name_that_is_too_long_is_said(capsys: pytest.CaptureFixture[str]) -> None:
    assert main.run(["compare", "x" * 256]) == 2
    assert "File name too long" in capsys.readouterr().err or "no such folder" in capsys.readouterr().err


def test_a_traceback_obeys_the_writer() -> None:
    bug = "from twinbed.cli import main; main.run = lambda words: {}[chr(27) + '[2J']; main.main()"
    done = subprocess.run([sys.executable, "-c", bug], capture_output=True, check=False)
    assert b"Traceback" in done.stderr and b"\x1b" not in done.stderr and done.returncode == 1


@pytest.mark.parametrize("closed", ["1", "2", "0<&- 1>&- 2"])
def test_closed_streams_are_no_matter(closed: str) -> None:
    done = subprocess.run(["sh", "-c", f'exec "$@" {closed}>&-', "sh", *PROGRAM, "--help"], capture_output=True, check=False)
    assert (done.returncode, done.stderr) == (0, b"")


SLOW = """
import sys, time
from twinbed.cli import main
class Slow:
    def main(self, **_):
        print("begun", flush=True)
        while True:  # a signal just before a sleep is answered after it
            time.sleep(0.01)
main.cli = Slow()
main.main()
"""


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
def test_every_signal_to_end_is_an_interrupt(number: signal.Signals) -> None:
    with subprocess.Popen([sys.executable, "-c", SLOW], stdout=subprocess.PIPE, stderr=subprocess.PIPE) as program:
        assert program.stdout and program.stderr
        assert program.stdout.readline() == b"begun\n"
        program.send_signal(number)
        assert program.stderr.read() == b"interrupted\n"
    assert program.returncode == 130


def test_a_hangup_that_is_ignored_stays_so() -> None:
    with subprocess.Popen(["nohup", sys.executable, "-c", SLOW], stdout=subprocess.PIPE, stderr=subprocess.PIPE) as program:
        assert program.stdout and program.stderr
        assert program.stdout.readline() == b"begun\n"
        program.send_signal(signal.SIGHUP)
        program.send_signal(signal.SIGTERM)
        assert program.stderr.read().endswith(b"interrupted\n")
    assert program.returncode == 130
