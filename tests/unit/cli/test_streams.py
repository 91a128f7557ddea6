"""Output that nobody reads, that has no room, or that was closed; and the signals that interrupt."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

STUDY = Path(__file__).parents[3] / "studies" / "quickstart.yaml"
PLAN = [sys.executable, "-m", "twinbed.cli.main", "plan", str(STUDY)]


def test_a_reader_that_has_gone_is_no_error() -> None:
    read, write = os.pipe()
    os.close(read)
    done = subprocess.run(PLAN, stdout=write, stderr=subprocess.PIPE, check=False)
    os.close(write)
    assert (done.returncode, done.stderr) == (128 + signal.SIGPIPE, b"")


def test_no_room_for_the_output_is_said() -> None:
    with Path("/dev/full").open("wb") as full:
        done = subprocess.run(PLAN, stdout=full, stderr=subprocess.PIPE, check=False)
    assert (done.returncode, done.stderr) == (2, b"twinbed: standard output: No space left on device\n")


@pytest.mark.parametrize("closed", ["1", "2", "0<&- 1>&- 2"])
def test_closed_streams_are_no_matter(closed: str) -> None:
    done = subprocess.run(["sh", "-c", f'exec "$@" {closed}>&-', "sh", *PLAN], capture_output=True, check=False)
    assert (done.returncode, done.stderr) == (0, b"")


SLOW = """
import sys, time
from twinbed.cli import main
class Slow:
    def main(self, **_):
        print("begun", flush=True)
        time.sleep(60)
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
