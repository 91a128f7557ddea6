"""The ssh program that holds a lease, played by a shell: whatever is asked meanwhile, how it ends is its own."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from twinbed.hosts import ssh
from twinbed.hosts.session import Session, Wanted
from twinbed.hosts.ssh import Address

CODE = 7


def test_a_host_may_take_its_time_to_put_everything_back(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The stream ends at once; ssh does when the host is done."""
    done = tmp_path / "done"
    os.mkfifo(done)
    held = os.open(done, os.O_RDWR)
    script = f"exec <&- >&-; read line <{done}; exit {CODE}"
    monkeypatch.setattr(ssh, "command", lambda *_, **__: ["sh", "-c", script])
    session = Session(Wanted(Address("client", "c1"), 20.0, None), "digest")
    assert session.stream.recv(1) == b""
    assert session.why() == ""
    os.write(held, b"\n")
    assert session.wait(30.0) == CODE
    os.close(held)
