"""Interrupts of a run are answered before the clean-up, and a second one does not break it off."""

from __future__ import annotations

import signal
import subprocess
import sys

import pytest

PROGRAM = """
import select, sys, time
from twinbed.cli.run import stopping
try:
    with stopping():
        try:
            print("begun", flush=True)
            while True:  # a signal just before a sleep is answered after it
                time.sleep(0.01)
        finally:
            print("cleaning", flush=True)
            while not select.select([sys.stdin], [], [], 0.01)[0]:  # nor is a signal just before a read
                pass
            print("clean", flush=True)
except KeyboardInterrupt:
    sys.exit(130)
"""


@pytest.mark.parametrize("first", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
@pytest.mark.parametrize("second", [signal.SIGINT, signal.SIGTERM])
def test_the_first_is_answered_and_the_second_breaks_nothing_off(first: signal.Signals, second: signal.Signals) -> None:
    pipe = subprocess.PIPE
    with subprocess.Popen([sys.executable, "-c", PROGRAM], stdin=pipe, stdout=pipe, stderr=pipe) as program:
        assert program.stdin and program.stdout and program.stderr
        assert program.stdout.readline() == b"begun\n"
        program.send_signal(first)
        assert program.stderr.readline() == b"\n" and program.stderr.readline().startswith(b"stopping: ")
        assert program.stdout.readline() == b"cleaning\n"
        program.send_signal(second)
        assert program.stderr.readline() == b"\n" and program.stderr.readline().startswith(b"still stopping: ")
        program.stdin.write(b"\n")
        program.stdin.flush()
        assert program.stdout.readline() == b"clean\n"
    assert program.returncode == 130


def test_what_is_ignored_stays_so() -> None:
    before = signal.signal(signal.SIGHUP, signal.SIG_IGN)
    try:
        from twinbed.cli.run import stopping

        with stopping():
            assert signal.getsignal(signal.SIGHUP) == signal.SIG_IGN
    finally:
        signal.signal(signal.SIGHUP, before)


def test_handlers_are_as_they_were_afterwards() -> None:
    from twinbed.cli.run import SIGNALS, stopping

    before = [signal.getsignal(number) for number in SIGNALS]
    with pytest.raises(ValueError), stopping():
        raise ValueError
    assert [signal.getsignal(number) for number in SIGNALS] == before
