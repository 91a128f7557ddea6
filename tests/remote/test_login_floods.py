"""A host whose login prints without end: twinbed ends it, says who and how much, and stays small. A real sshd prints."""

from __future__ import annotations

import contextlib
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from tests.hostile_streams import MOST_MEMORY_BYTES, peak_bytes
from tests.remote.machines import Machines, until
from tests.remote.studies import study
from twinbed.contracts.site import Site
from twinbed.hosts import session, ssh
from twinbed.hosts.error import HostError, LimitExceeded
from twinbed.hosts.ssh import Address
from twinbed.model.topology import Topology
from twinbed.testbeds.remote import remote

_KEYS = "/run/authorized_keys"


@contextmanager
def login(two: Machines, command: str) -> Iterator[None]:
    """Whoever logs in to the client gets this in place of a shell."""
    client = two.hosts["client"]
    before = client.run("cat", _KEYS)
    client.run("sh", "-c", f"cat >{_KEYS}", text=f'command="{command}" {before}')
    try:
        yield
    finally:
        client.run("sh", "-c", f"cat >{_KEYS}", text=before)
        until("no login is left", lambda: not two.sshd_processes("client")[1:], 60)


@pytest.mark.parametrize(
    ("command", "why"),
    [
        ("yes", "printed more than"),
        ("yes >&2", "bytes of error output"),
        ("while :; do echo y; sleep 0.05; done", "did not end its login"),
    ],
    ids=["output", "error output", "slowly"],
)
def test_a_lease_ends_the_login(command: str, why: str, two: Machines, place: Site, monkeypatch: pytest.MonkeyPatch) -> None:
    slowly = "sleep" in command
    monkeypatch.setattr(session.Session.preamble, "__defaults__", (2.0 if slowly else 120.0,))
    with (
        login(two, command),
        pytest.raises(LimitExceeded, match=f"client .*{why}") as failed,
        remote.up(remote.params(**two.settings()), Topology(), place),
    ):
        pass
    assert "starts at login" in failed.value.advice


def test_a_command_says_so_and_stays_small(two: Machines, tmp_path: Path) -> None:
    with login(two, "yes"), (tmp_path / "said").open("wb") as said:
        process = subprocess.Popen(study(tmp_path, two, {"duration": "1s"}), stdout=said, stderr=said)
        peak = 0
        while process.poll() is None:
            with contextlib.suppress(OSError, LookupError):
                peak = peak_bytes(process.pid)
            time.sleep(0.05)
    text = (tmp_path / "said").read_text()
    assert process.returncode not in (0, -9), text
    assert "client" in text and "bytes of output" in text and "at login" in text, text
    assert 0 < peak <= MOST_MEMORY_BYTES


def test_an_answer_without_end_is_no_answer(two: Machines) -> None:
    with login(two, "yes"), pytest.raises(HostError, match=r"client .*wrote more than 16,777,216 bytes of output"):
        ssh.run(Address("client", "client"), "true")
