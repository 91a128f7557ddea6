"""A host through the real agent: programs, files, ports; what it refuses, and its end."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

import twinbed
from twinbed.hosts.agent import AgentHost, FileThere, cpus_allowed, parse_cpus
from twinbed.hosts.connection import Connection
from twinbed.hosts.error import HostError, HostLost, LimitExceeded, ProgramFailed


@pytest.fixture
def host(probe: Path, tmp_path: Path) -> Iterator[AgentHost]:
    ours, theirs = socket.socketpair()
    with theirs:
        process = subprocess.Popen([probe, "agent", "--fd", str(theirs.fileno())], pass_fds=[theirs.fileno()])
    host = AgentHost("here", Connection("here", ours), str(tmp_path), bin=str(probe.parent))
    yield host
    host.close()
    process.wait(60)


def test_it_greets(host: AgentHost) -> None:
    hello = host.connection.hello(30)
    assert hello["kernel"] == os.uname().release
    assert hello["uid"] == os.geteuid()


def test_programs(host: AgentHost, tmp_path: Path) -> None:
    done = host.run(["sh", "-c", "echo out; echo err >&2; pwd; echo $WORD"], cwd=str(tmp_path), env={"WORD": "given"})
    assert done.text == f"out\n{tmp_path}\ngiven\n"
    assert done.stderr == b"err\n"
    assert done.ended_monotonic_s >= done.started_monotonic_s
    assert host.run(["cat"], stdin=b"a" * 3_000_000).stdout == b"a" * 3_000_000
    assert host.run(["twinbed-probe", "version"]).text.strip() == twinbed.__version__
    status = host.run(["cat", "/proc/self/status"], cpus=[0]).text
    assert cpus_allowed(status) == (0,)


def test_a_nic_is_described(host: AgentHost) -> None:
    there = host.nic("lo")
    mac, mtu = (Path(f"/sys/class/net/lo/{name}").read_text().strip() for name in ("address", "mtu"))
    assert (there.mac, str(there.mtu), there.driver, there.coalescing, there.queues) == (mac, mtu, None, None, None)
    for wrong in ("", "nosuch0", "a\0b", "a" * 300, "../lo"):
        with pytest.raises(HostError, match="here: cannot read the state of the NIC"):
            host.nic(wrong)


def test_how_programs_end(host: AgentHost) -> None:
    with pytest.raises(ProgramFailed, match="here: sh -c echo why >&2; exit 3: exit code 3\n    why"):
        host.run(["sh", "-c", "echo why >&2; exit 3"])
    with pytest.raises(ProgramFailed, match="ended by SIGSEGV"):
        host.run(["sh", "-c", "kill -SEGV $$"])
    with pytest.raises(HostError, match="no-such-program"):
        host.run(["no-such-program"])
    with pytest.raises(HostError, match="/no/such/folder"):
        host.run(["true"], cwd="/no/such/folder")
    sleeper = host.start(["sleep", "60"])
    pid = sleeper.started()
    with pytest.raises(LimitExceeded):
        sleeper.wait(0.05)
    deadline = time.monotonic() + 60
    while Path(f"/proc/{pid}").exists():
        assert time.monotonic() < deadline, "past its limit it is killed"


def test_a_signal_reaches_the_whole_group_unless_told_otherwise(host: AgentHost) -> None:
    program = host.start(["sh", "-c", "trap 'echo caught; exit 7' TERM; echo ready; while :; do sleep 60 & wait $!; done"])
    program.says(b"ready\n", 30)
    program.signal(signal.SIGTERM, group=False)
    assert program.wait(30).code == 7
    assert bytes(program.stdout) == b"ready\ncaught\n"


def test_many_at_once(host: AgentHost, tmp_path: Path) -> None:
    big = os.urandom(8_000_000)
    (tmp_path / "big").write_bytes(big)
    programs = [host.start(["sh", "-c", f"seq {number}; exit {number}"]) for number in range(30)]
    assert host.read(str(tmp_path / "big")) == big
    for number, program in enumerate(programs):
        done = program.wait(60)
        assert done.code == number
        assert done.stdout == "".join(f"{each}\n" for each in range(1, number + 1)).encode()


def test_files(host: AgentHost, tmp_path: Path) -> None:
    host.write(str(tmp_path / "a/b/c"), b"\x00\xff" * 700_000, mode=0o640)
    assert (tmp_path / "a/b/c").read_bytes() == b"\x00\xff" * 700_000
    assert (tmp_path / "a/b/c").stat().st_mode & 0o777 == 0o640
    assert host.listdir(str(tmp_path / "a/b")) == [FileThere("c", "file", 1_400_000)]
    assert host.fetch(str(tmp_path / "a/b/c"), tmp_path / "copy") == 1_400_000
    assert host.read("/proc/self/comm") == b"twinbed-probe\n"
    for call in (host.read, host.listdir):
        with pytest.raises(HostError, match=r"here: .*/none.*No such file"):
            call("/none")
    with pytest.raises(HostError, match="/proc/none"):
        host.write("/proc/none", b"x")


def test_artifacts_are_fetched_where_they_are_not_shared(host: AgentHost, tmp_path: Path) -> None:
    artifacts = tmp_path / "artifacts"
    (artifacts / "folder").mkdir(parents=True)
    (artifacts / "one").write_bytes(b"1")
    (artifacts / "empty").write_bytes(b"")
    to = tmp_path / "to"
    to.mkdir()
    AgentHost("here", host.connection, str(artifacts), shared=artifacts).collect(to)
    assert list(to.iterdir()) == []
    AgentHost("here", host.connection, str(artifacts)).collect(to)
    assert {path.name: path.read_bytes() for path in to.iterdir()} == {"one": b"1", "empty": b""}


def test_a_port_is_waited_for(host: AgentHost) -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = server.getsockname()[1]
        assert host.listening(port, 30) >= 0
    with pytest.raises(HostError, match=str(port)):
        host.listening(port, 0.05)


def test_clocks(host: AgentHost) -> None:
    answer = host.ping()
    assert answer["sent_s"] <= answer["received_s"]
    assert answer["sent_s"] - 1 < answer["realtime_s"] < answer["received_s"] + 1


def test_everything_dies_with_the_agent(host: AgentHost) -> None:
    sleeper = host.start(["sleep", "60"])
    agent, pid = host.connection.hello(30)["pid"], sleeper.started()
    os.kill(agent, signal.SIGKILL)
    with pytest.raises(HostLost):
        sleeper.wait(30)
    with pytest.raises(HostLost):
        host.run(["true"])
    os.kill(pid, signal.SIGKILL)  # outside a lab nothing else ends it


@pytest.mark.parametrize(("text", "cpus"), [("0", (0,)), ("0-2,5", (0, 1, 2, 5)), ("3,7-8\n", (3, 7, 8))])
def test_lists_of_cpus(text: str, cpus: tuple[int, ...]) -> None:
    assert parse_cpus(text) == cpus


def test_a_status_without_cpus() -> None:
    with pytest.raises(ValueError, match="Cpus_allowed_list"):
        cpus_allowed("Name:\tsh\n")
