"""Streams that do not end and streams that are not what they should be, with half a gigabyte of memory for whoever reads."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time

from tests.hostile_streams import FLOODS, MOST_MEMORY_BYTES

_EACH = """
import os
from tests import hostile_streams
from twinbed.model.error import TwinbedError
for name, (call, why) in hostile_streams.FLOODS.items():
    if child := os.fork():  # which shares what was imported, and has its memory for itself
        assert os.waitpid(child, 0)[1] == 0, name
        continue
    try:
        hostile_streams.bounded()
        try:
            call()
        except TwinbedError as error:
            assert why in str(error), error
        else:
            raise AssertionError("it was taken whole")
        print(hostile_streams.peak_bytes(), name, flush=True)
    except BaseException:
        import traceback
        traceback.print_exc()
        os._exit(1)
    os._exit(0)
"""
_WAITING = """
import time
from tests import hostile_streams
from twinbed.hosts import lease, session
from twinbed.hosts.session import Wanted
from twinbed.hosts.ssh import Address
from pathlib import Path
session.MOST_PREAMBLE_BYTES = 2**60
session._GREETING_LIMIT_S = hostile_streams.HANGS_S
session.ssh.command = lambda *_, **__: ["sh", "-c", "echo begun >&2; yes"]
made = session.Session.__init__
def told(one, *given):
    made(one, *given)
    print("begun", flush=True)
session.Session.__init__ = told
with lease.open_leases([Wanted(Address("client", "c1"), 20.0, None)], Path("/bin/true")):
    pass
"""


def test_every_flood_is_ended_by_its_limit() -> None:
    done = subprocess.run([sys.executable, "-c", _EACH], capture_output=True, text=True, check=False, timeout=300)
    assert done.returncode == 0, done.stderr
    peaks = {name: int(peak) for peak, _, name in (line.partition(" ") for line in done.stdout.splitlines())}
    assert peaks.keys() == FLOODS.keys()
    assert max(peaks.values()) <= MOST_MEMORY_BYTES


def test_whatever_comes_ends_in_an_answer_or_an_error() -> None:
    done = subprocess.run(
        [sys.executable, "-m", "tests.hostile_streams", "60", "38"], capture_output=True, text=True, check=False, timeout=900
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout.startswith("60 cases (agent 15, login 15, minimega 15, qmp 15)")


def test_ctrl_c_ends_the_wait_for_a_login_that_prints_without_end() -> None:
    """The limits are far away; the thread that reads hears no signal."""
    process = subprocess.Popen([sys.executable, "-c", _WAITING], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    assert process.stdout is not None
    assert process.stdout.readline() == "begun\n"
    begun = time.monotonic()
    os.kill(process.pid, signal.SIGINT)
    _, stderr = process.communicate(timeout=300)
    assert stderr.rstrip().endswith("KeyboardInterrupt"), stderr
    assert time.monotonic() - begun < 50, "it waited for the limit of the login"
