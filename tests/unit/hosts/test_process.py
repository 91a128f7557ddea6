"""Programs that write without end, take for ever, or are stopped: each is ended by a limit, and Ctrl-C is heard."""

from __future__ import annotations

import os
import signal
import threading
import time
from pathlib import Path

import pytest

from twinbed.hosts.process import _BROOD, MOST_BYTES, Brood, ProcessFailed, Staying, last_bytes, run, side_by_side

LONG_S = 120.0
"""A limit that nothing here may reach."""


def state(process: int) -> str:
    """The letter of its state; X where there is none of that number any more."""
    try:
        return Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()[0]
    except OSError:
        return "X"


def gone(process: int) -> bool:
    return state(process) in "ZX"


@pytest.mark.parametrize(("stream", "named"), [("", "output"), ("1>&2", "error output")])
def test_a_program_that_writes_without_end_is_ended(stream: str, named: str, tmp_path: Path) -> None:
    pid = tmp_path / "pid"
    with pytest.raises(ProcessFailed) as failed:
        run(["sh", "-c", f"echo $$ >{pid}; exec yes {stream}"], limit_s=LONG_S, most_bytes=100_000)
    assert failed.value.why == f"wrote more than 100,000 bytes of {named} and was killed"
    assert gone(int(pid.read_text()))


def test_its_children_are_ended_with_it(tmp_path: Path) -> None:
    pids = tmp_path / "pids"
    with pytest.raises(ProcessFailed, match="wrote more than"):
        run(["sh", "-c", f"sleep 1000 & echo $! >{pids}; yes"], limit_s=LONG_S, most_bytes=100_000)
    deadline = time.monotonic() + LONG_S
    while not gone(int(pids.read_text())):
        assert time.monotonic() < deadline
        time.sleep(0.01)


def test_the_time_limit_holds_while_it_writes() -> None:
    with pytest.raises(ProcessFailed, match=r"not done after 0\.3 s"):
        run(["sh", "-c", "while :; do echo still here; done"], limit_s=0.3, most_bytes=2**40, stdout=Path("/dev/null"))


def test_a_stopped_program_is_ended() -> None:
    with pytest.raises(ProcessFailed, match=r"not done after 0\.3 s"):
        run(["sh", "-c", "kill -STOP $$"], limit_s=0.3)


def test_one_that_closes_its_streams_and_stays_is_ended() -> None:
    with pytest.raises(ProcessFailed, match=r"not done after 0\.3 s"):
        run(["sh", "-c", "exec >&- 2>&-; sleep 1000"], limit_s=0.3)


def test_a_file_takes_what_memory_would_not(tmp_path: Path) -> None:
    """As a capture or an archive does."""
    file = tmp_path / "large"
    done = run(["head", "-c", str(MOST_BYTES + 1), "/dev/zero"], stdout=file, limit_s=LONG_S)
    assert (file.stat().st_size, done.stdout) == (MOST_BYTES + 1, b"")
    with pytest.raises(ProcessFailed, match="wrote more than 10 bytes of output"):
        run(["echo", "more than ten bytes"], stdout=file, most_bytes=10)


def test_what_is_fed_comes_back(tmp_path: Path) -> None:
    content = os.urandom(3_000_000)
    assert run(["cat"], stdin=content, limit_s=LONG_S).stdout == content
    assert run(["true"], stdin=content, limit_s=LONG_S).code == 0, "one that does not read is no failure"
    (tmp_path / "file").write_bytes(content)
    with (tmp_path / "file").open("rb") as source:
        source.seek(2_999_990)
        assert run(["cat"], stdin=source, limit_s=LONG_S).stdout == content[-10:]


def test_failures_say_what_the_program_said() -> None:
    with pytest.raises(ProcessFailed) as failed:
        run(["sh", "-c", "echo out; echo why >&2; exit 3"])
    assert (failed.value.code, failed.value.stderr) == (3, b"why\n")
    assert run(["sh", "-c", "exit 3"], check=False).code == 3
    with pytest.raises(ProcessFailed, match="no such program"):
        run(["no-such-program"])


def test_one_that_stays_keeps_few_words() -> None:
    staying = Staying(["sh", "-c", "echo one >&2; read line"], most_bytes=100)
    assert staying.code(LONG_S) == 1, "it has no input"
    assert (staying.words(), staying.flooded) == ("one", False)
    flooding = Staying(["sh", "-c", "yes >&2"], most_bytes=100_000)
    assert flooding.code(LONG_S) == -signal.SIGKILL
    assert flooding.flooded and len(flooding.words()) <= 100_000


def test_one_that_is_stopped_is_killed_at_its_end() -> None:
    staying = Staying(["sleep", "1000"])
    os.kill(staying.pid, signal.SIGSTOP)
    while state(staying.pid) != "T":
        time.sleep(0.01)
    staying.ask_to_end()
    assert staying.end(0.2) is None
    assert gone(staying.pid)


def test_ctrl_c_ends_what_threads_wait_for() -> None:
    """It comes to the main thread; the programs are those of others."""
    failures: list[str] = []

    def call(number: int) -> None:
        if number == 2:
            os.kill(os.getpid(), signal.SIGINT)
        try:
            run(["sleep", "1000"], limit_s=1000)
        except ProcessFailed as error:
            failures.append(error.why)

    with pytest.raises(KeyboardInterrupt):
        side_by_side(call, range(3))
    deadline = time.monotonic() + LONG_S
    while len(failures) < 3 and time.monotonic() < deadline:
        time.sleep(0.01)
    assert failures == [f"exit code {-signal.SIGKILL}"] * 3


def test_a_brood_that_is_ended_takes_no_more() -> None:
    brood = Brood()
    token = _BROOD.set(brood)
    try:
        threading.Timer(0.1, brood.end).start()
        for _ in range(2):
            with pytest.raises(ProcessFailed, match="exit code -9"):
                run(["sleep", "1000"], limit_s=1000)
    finally:
        _BROOD.reset(token)


def test_the_end_of_a_large_file(tmp_path: Path) -> None:
    file = tmp_path / "log"
    file.write_bytes(b"a" * 10 + b"end")
    assert (last_bytes(file, 3), last_bytes(file, 100), last_bytes(tmp_path / "none")) == (b"end", b"a" * 10 + b"end", b"")
