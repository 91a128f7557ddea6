"""The controller's end of the control stream, against an agent written here from the frame format alone:
u32 payload length, u32 channel, u8 kind, payload; little endian."""

from __future__ import annotations

import contextlib
import json
import signal
import socket
import struct
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from twinbed.contracts.host import Exit
from twinbed.hosts.agent import _KEPT, AgentHost, accept, listen
from twinbed.hosts.connection import Channel, Connection
from twinbed.hosts.error import HostError, HostLost, LimitExceeded, ProgramFailed
from twinbed.model.usage import Usage

HELLO, EXEC, STDIN, SIGNAL, READ, WRITE, LIST, LISTENING, PING = 0x01, 0x10, 0x11, 0x12, 0x13, 0x14, 0x15, 0x16, 0x17
RELEASE = 0x1A
USAGE = 0x19
STARTED, STDOUT, STDERR, EXIT, DATA, END, ERROR = 0x20, 0x21, 0x22, 0x23, 0x24, 0x25, 0x2F
ENDED = {
    "code": 0,
    "signal": None,
    "usage": {"cpu_s": 0.75, "voluntary_switches": 12, "involuntary_switches": 3},
    "max_rss_bytes": 4096,
    "started_monotonic_s": 1.0,
    "ended_monotonic_s": 2.0,
}


class FakeAgent:
    """The other end of the stream."""

    def __init__(self, stream: socket.socket) -> None:
        self.stream = stream
        stream.settimeout(10)

    def frame(self, channel: int, kind: int, payload: bytes | dict[str, Any]) -> bytes:
        body = payload if isinstance(payload, bytes) else json.dumps(payload).encode()
        return struct.pack("<IIB", len(body), channel, kind) + body

    def say(self, channel: int, kind: int, payload: bytes | dict[str, Any]) -> None:
        self.stream.sendall(self.frame(channel, kind, payload))

    def hear(self) -> tuple[int, int, bytes]:
        """(channel, kind, payload)"""
        length, channel, kind = struct.unpack("<IIB", self._exactly(9))
        return channel, kind, self._exactly(length)

    def _exactly(self, count: int) -> bytes:
        data = b""
        while len(data) < count:
            more = self.stream.recv(count - len(data))
            assert more, "the controller ended the stream"
            data += more
        return data


@pytest.fixture
def ends() -> Iterator[tuple[FakeAgent, AgentHost]]:
    theirs, ours = socket.socketpair()
    with contextlib.closing(Connection("client", ours)) as connection, theirs:
        yield FakeAgent(theirs), AgentHost("client", connection, "/artifacts")


def test_the_greeting(ends: tuple[FakeAgent, AgentHost]) -> None:
    agent, host = ends
    with pytest.raises(LimitExceeded, match=r"client: no greeting from the agent after 0\.01 s"):
        host.connection.hello(0.01)
    agent.say(0, HELLO, {"version": "0.1.0", "pid": 1})
    assert host.connection.hello(5) == {"version": "0.1.0", "pid": 1}


def test_an_end_before_the_greeting(ends: tuple[FakeAgent, AgentHost]) -> None:
    agent, host = ends
    agent.stream.close()
    with pytest.raises(HostLost, match="client: its agent ended the connection"):
        host.connection.hello(5)
    with pytest.raises(HostLost):
        host.start(["true"])


def test_a_program_is_asked_for_as_the_format_says(ends: tuple[FakeAgent, AgentHost]) -> None:
    agent, host = ends
    started = []
    starting = threading.Thread(
        target=lambda: started.append(host.start(["cat", "-n"], stdin=b"x" * 300_000, cpus=[1], env={"A": "b"}, cwd="/tmp"))
    )
    starting.start()
    channel, kind, body = agent.hear()
    assert kind == EXEC
    assert json.loads(body) == {
        "argv": ["cat", "-n"],
        "env": {"A": "b"},
        "cwd": "/tmp",
        "cpus": [1],
        "held": False,
        "stdin": True,
    }
    chunks = []
    while (frame := agent.hear())[2]:
        assert frame[:2] == (channel, STDIN)
        chunks.append(frame[2])
    assert b"".join(chunks) == b"x" * 300_000
    assert max(map(len, chunks)) <= 1 << 20
    starting.join(5)
    program = started[0]
    agent.say(channel, STARTED, {"pid": 77})
    assert program.started(5) == 77
    program.release(12.5)
    assert agent.hear() == (channel, RELEASE, b'{"at_monotonic_s": 12.5}')
    asking = threading.Thread(target=lambda: used.append(program.usage()))
    used: list[Usage] = []
    asking.start()
    question, kind, body = agent.hear()
    assert (kind, json.loads(body)) == (USAGE, {"pid": 77})
    agent.say(question, END, {"cpu_s": 0.5, "voluntary_switches": 7, "involuntary_switches": 1})
    asking.join(5)
    assert used == [Usage(0.5, 7, 1)]
    agent.say(channel, STDOUT, b"one ")
    agent.say(channel, STDERR, b"oops")
    agent.say(channel, STDOUT, b"two")
    agent.say(channel, EXIT, ENDED)
    assert program.wait(5) == Exit(0, None, b"one two", b"oops", Usage(0.75, 12, 3), 4096, 1.0, 2.0)


def test_twinbeds_own_program_is_found_where_it_is_on_that_host(ends: tuple[FakeAgent, AgentHost]) -> None:
    agent, host = ends
    host.start(["twinbed-probe", "version"])
    assert json.loads(agent.hear()[2])["argv"] == ["/usr/bin/twinbed-probe", "version"]


def test_channels_interleave_byte_by_byte(ends: tuple[FakeAgent, AgentHost]) -> None:
    agent, host = ends
    programs = [host.start(["say", str(number)]) for number in range(3)]
    channels = [agent.hear()[0] for _ in programs]
    assert len(set(channels)) == 3
    stream = b""
    for text in (b"a", b"b", b"c"):
        for channel in channels:
            stream += agent.frame(channel, STDOUT, text + str(channels.index(channel)).encode())
    stream += b"".join(agent.frame(channel, EXIT, ENDED) for channel in reversed(channels))
    for position in range(len(stream)):
        agent.stream.sendall(stream[position : position + 1])
    assert [program.wait(5).stdout for program in programs] == [b"a0b0c0", b"a1b1c1", b"a2b2c2"]


def test_an_error_concerns_its_channel_only(ends: tuple[FakeAgent, AgentHost]) -> None:
    agent, host = ends
    refused, fine = host.start(["no-such"]), host.start(["true"])
    first, second = agent.hear()[0], agent.hear()[0]
    agent.say(first, ERROR, {"errno": 2, "message": "cannot run no-such: No such file or directory"})
    agent.say(second, EXIT, ENDED)
    with pytest.raises(HostError, match="client: cannot run no-such: No such file or directory"):
        refused.wait(5)
    assert fine.wait(5).code == 0


def test_words_for_a_channel_that_is_closed_or_unknown_are_dropped(ends: tuple[FakeAgent, AgentHost]) -> None:
    agent, host = ends
    agent.say(4711, STDOUT, b"?")
    agent.say(0, ERROR, {"errno": None, "message": "a signal came too late"})
    program = host.start(["true"])
    agent.say(agent.hear()[0], EXIT, ENDED)
    assert program.wait(5).code == 0


def test_the_end_of_the_stream_ends_every_open_channel(ends: tuple[FakeAgent, AgentHost]) -> None:
    agent, host = ends
    waiting = [host.start(["sleep", "100"]) for _ in range(3)]
    failures: list[HostError] = []

    def wait(call: Any) -> None:
        try:
            call()
        except HostError as error:
            failures.append(error)

    calls = [lambda program=program: program.wait(60) for program in waiting]
    calls += [lambda: waiting[0].says(b"ready", 60), lambda: host.read("/proc/stat", limit_s=60), lambda: host.ping(60)]
    threads = [threading.Thread(target=wait, args=(call,)) for call in calls]
    for thread in threads:
        thread.start()
    for _ in range(5):
        agent.hear()
    agent.stream.close()
    for thread in threads:
        thread.join(10)
    assert len(failures) == len(calls)
    assert {type(failure) for failure in failures} == {HostLost}
    assert {str(failure) for failure in failures} == {"client: its agent ended the connection"}


@pytest.mark.parametrize(
    ("broken", "said"),
    [
        (struct.pack("<IIB", (1 << 20) + 1, 1, STDOUT), "its agent sent a frame of 1048577 bytes"),
        (struct.pack("<IIB", 100, 1, STDOUT) + b"cut off", "its agent ended the connection"),
        (b"\x05\x00", "its agent ended the connection"),
        (struct.pack("<IIB", 4, 1, EXIT) + b"{bad", "the connection to its agent broke"),
        (struct.pack("<IIB", 2, 1, STARTED) + b"{}", "the connection to its agent broke: KeyError('pid')"),
        (struct.pack("<IIB", 0, 1, 0x7E), "the connection to its agent broke: ValueError('frame kind 0x7e"),
    ],
    ids=["too-long", "cut-payload", "cut-header", "no-json", "no-pid", "unknown-kind"],
)
def test_a_stream_that_is_not_this_protocol_is_lost_at_once(
    broken: bytes, said: str, ends: tuple[FakeAgent, AgentHost]
) -> None:
    agent, host = ends
    program, other = host.start(["one"]), host.start(["two"])
    assert (agent.hear()[0], agent.hear()[0]) == (1, 2)
    agent.stream.sendall(broken)
    agent.stream.shutdown(socket.SHUT_WR)
    for each in (program, other):
        with pytest.raises(HostLost) as lost:
            each.wait(30)
        assert str(lost.value).startswith(f"client: {said}")
    assert bytes(program.stdout) == b"", "what was cut off is not taken for whole"


def test_the_largest_frame_is_taken(ends: tuple[FakeAgent, AgentHost]) -> None:
    agent, host = ends
    program = host.start(["yes"])
    channel = agent.hear()[0]
    agent.say(channel, STDOUT, b"y" * (1 << 20))
    agent.say(channel, EXIT, ENDED)
    assert program.wait(10).stdout == b"y" * (1 << 20)


def test_a_limit_ends_the_program_and_tells_what_it_said_last(ends: tuple[FakeAgent, AgentHost]) -> None:
    agent, host = ends
    program = host.start(["sleep", "30"])
    channel = agent.hear()[0]
    agent.say(channel, STDERR, b"1\n2\n3\n4\n5\n")
    program.says(b"5\n", 5)
    with pytest.raises(LimitExceeded) as error:
        program.wait(0.01)
    assert str(error.value) == "client: sleep 30: not done after 0.01 s\n    2\n    3\n    4\n    5"
    number, kind, body = agent.hear()
    assert (number, kind, json.loads(body)) == (channel, SIGNAL, {"signal": signal.SIGKILL, "group": True})


def test_a_word_is_waited_for_on_both_outputs_and_across_frames(ends: tuple[FakeAgent, AgentHost]) -> None:
    agent, host = ends
    program = host.start(["server"])
    channel = agent.hear()[0]
    with pytest.raises(LimitExceeded, match="server: not done after"):
        program.says(b"ready", 0.01)
    agent.say(channel, STDOUT, b"rea")
    agent.say(channel, STDOUT, b"dy")
    program.says(b"ready", 5)
    agent.say(channel, STDERR, b"12 packets\n")
    program.says(lambda said: said.endswith(b"\n"), 5)


def test_a_program_that_ends_before_its_word(ends: tuple[FakeAgent, AgentHost]) -> None:
    agent, host = ends
    program = host.start(["server", "-x"])
    channel = agent.hear()[0]
    agent.say(channel, STDERR, b"bad option\n")
    agent.say(channel, EXIT, {**ENDED, "code": 2})
    with pytest.raises(ProgramFailed) as error:
        program.says(b"ready", 5)
    assert str(error.value) == "client: server -x: exit code 2 before it was ready\n    bad option"


def test_no_signal_is_sent_to_a_program_that_has_ended(ends: tuple[FakeAgent, AgentHost]) -> None:
    """Its number may belong to another by now."""
    agent, host = ends
    program = host.start(["true"])
    channel = agent.hear()[0]
    program.signal(15, group=False)
    assert agent.hear() == (channel, SIGNAL, b'{"signal": 15, "group": false}')
    agent.say(channel, EXIT, {**ENDED, "code": None, "signal": 15})
    assert program.wait(5).why == "ended by SIGTERM"
    program.signal(9)
    agent.stream.settimeout(0.05)
    with pytest.raises(TimeoutError):
        agent.stream.recv(1)


@pytest.mark.parametrize(("number", "said"), [(9, "ended by SIGKILL"), (40, "ended by signal 40")])
def test_how_a_program_ended(number: int, said: str) -> None:
    assert Exit(None, number, b"", b"", None, 0, 0, 0).why == said


def test_files(ends: tuple[FakeAgent, AgentHost], tmp_path: Path) -> None:
    agent, host = ends
    heard = []

    def serve() -> None:
        channel, kind, body = agent.hear()
        heard.append((kind, json.loads(body)))
        for text in (b"first ", b"second"):
            agent.say(channel, DATA, text)
        agent.say(channel, END, {"bytes": 12})
        written = b""
        channel, kind, body = agent.hear()
        heard.append((kind, json.loads(body)))
        while (part := agent.hear())[1] == DATA:
            written += part[2]
        heard.append((part[1], json.loads(part[2])))
        agent.say(channel, END, {"bytes": len(written)})
        channel, kind, body = agent.hear()
        heard.append((kind, json.loads(body)))
        agent.say(channel, END, {"waited_s": 0.5})
        channel, kind, body = agent.hear()
        heard.append((kind, json.loads(body)))
        agent.say(channel, ERROR, {"errno": 2, "message": "read /none: No such file or directory"})

    thread = threading.Thread(target=serve)
    thread.start()
    assert host.fetch("/data", tmp_path / "data") == 12
    assert (tmp_path / "data").read_bytes() == b"first second"
    host.write("/etc/x", b"z" * 600_000, mode=0o600)
    assert host.listening(80, 2.0) == 0.5
    with pytest.raises(HostError, match="client: read /none: No such file or directory"):
        host.read("/none")
    thread.join(5)
    assert heard == [
        (READ, {"path": "/data"}),
        (WRITE, {"path": "/etc/x", "mode": 0o600, "parents": True}),
        (END, {}),
        (LISTENING, {"port": 80, "protocol": "tcp", "limit_s": 2.0}),
        (READ, {"path": "/none"}),
    ]


def test_a_sink_that_is_full_is_the_sinks_error(ends: tuple[FakeAgent, AgentHost]) -> None:
    agent, host = ends

    def serve() -> None:
        channel = agent.hear()[0]
        agent.say(channel, DATA, b"x" * 100_000)
        agent.say(channel, END, {"bytes": 100_000})

    thread = threading.Thread(target=serve)
    thread.start()
    with pytest.raises(OSError, match="No space left"):
        host.fetch("/data", Path("/dev/full"))
    thread.join(5)


def test_what_cannot_be_sent_is_a_lost_host(ends: tuple[FakeAgent, AgentHost]) -> None:
    _agent, host = ends
    channel = Channel(host.connection, "trying")
    host.close()
    with pytest.raises(HostLost, match="client: "):
        channel.send(READ, {"path": "/x"})


def test_an_agent_is_accepted_or_the_reason_given(ends: tuple[FakeAgent, AgentHost], tmp_path: Path) -> None:
    agent, host = ends
    starter = host.start(["container"])
    channel = agent.hear()[0]
    agent.say(channel, STDERR, b"mounting\n")
    starter.says(b"mounting", 5)
    with listen(tmp_path / "sock") as server:
        with pytest.raises(LimitExceeded, match=r"server: no agent after 0\.01 s: mounting"):
            accept(server, "server", starter, 0.01, "k")
        with socket.socket(socket.AF_UNIX) as coming:
            coming.connect(str(tmp_path / "sock"))
            connection = accept(server, "server", starter, 5, "k")
            FakeAgent(coming).say(0, HELLO, {"pid": 1, "key": "k"})
            assert connection.hello(5) == {"pid": 1, "key": "k"}
            connection.close()
        agent.say(channel, EXIT, {**ENDED, "code": 1})
        starter.until(lambda: starter.ended, 5)
        with pytest.raises(HostError, match="server: container ended before the host was up: mounting"):
            accept(server, "server", starter, 5, "k")


IMPOSTOR = "server: another program answered: it "


@pytest.mark.parametrize(
    ("frames", "why"),
    [
        ([(0, HELLO, {"pid": 1})], f"{IMPOSTOR}does not know the key"),
        ([(0, HELLO, {"pid": 1, "key": ""})], f"{IMPOSTOR}does not know the key"),
        ([(0, HELLO, {"pid": 1, "key": "the key of another host"})], f"{IMPOSTOR}does not know the key"),
        ([(0, HELLO, {"pid": 1, "key": ["k"]})], f"{IMPOSTOR}does not know the key"),
        ([(1, STARTED, {"pid": 2}), (0, HELLO, {"pid": 1, "key": "k"})], f"{IMPOSTOR}did not greet first"),
        ([(0, HELLO, {"key": "k"}), (0, HELLO, {"key": "k"}), (1, STARTED, {"pid": 2})], "server: its agent greeted twice"),
    ],
    ids=["without", "empty", "of another", "no text", "before the greeting", "twice"],
)
def test_nobody_speaks_for_another_host(frames: list[tuple[int, int, dict[str, Any]]], why: str) -> None:
    theirs, ours = socket.socketpair()
    with contextlib.closing(Connection("server", ours, key="k")) as connection, theirs:
        host = AgentHost("server", connection, "/artifacts")
        for frame in frames:
            FakeAgent(theirs).say(*frame)
        with pytest.raises(HostLost, match=why):
            host.run(["id"], limit_s=5)


def test_a_program_that_says_without_end_ends_the_connection(
    ends: tuple[FakeAgent, AgentHost], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("twinbed.hosts.agent.MOST_OUTPUT_BYTES", 8)
    agent, host = ends
    program = host.start(["yes"])
    channel, _, _ = agent.hear()
    agent.say(channel, STDOUT, b"yyyy")
    agent.say(channel, STDERR, b"nnnn")
    agent.say(channel, STDOUT, b"y")
    with pytest.raises(HostLost, match="client: yes printed more than 8 bytes"):
        program.wait(5)
    assert (bytes(program.stdout), bytes(program.stderr)) == (b"yyyy", b"nnnn")


def test_all_programs_of_all_hosts_share_a_limit(ends: tuple[FakeAgent, AgentHost], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("twinbed.hosts.agent.MOST_KEPT_BYTES", 8)
    agent, host = ends
    for _ in range(3):
        program = host.start(["echo"])
        channel, _, _ = agent.hear()
        agent.say(channel, STDOUT, b"yyyyyy")
        agent.say(channel, EXIT, ENDED)
        program.wait(5)
    programs = [host.start(["yes"]) for _ in range(2)]
    for _ in programs:
        agent.say(agent.hear()[0], STDOUT, b"yyyyyy")
    with pytest.raises(HostLost, match="the programs of all hosts printed more than 8 bytes"):
        programs[1].wait(5)
    assert _KEPT.grow(8), "what was counted is given back when the host is lost"
    _KEPT.grow(-8)


def test_an_agent_that_takes_nothing_is_lost(ends: tuple[FakeAgent, AgentHost], monkeypatch: pytest.MonkeyPatch) -> None:
    """As one that is stopped, or whose ssh is."""
    monkeypatch.setattr("twinbed.hosts.connection.SEND_LIMIT_S", 0.2)
    _, host = ends
    with pytest.raises(HostLost, match=r"client: its agent took no frame for 0\.2 s"):
        host.write("/file", b"x" * 50_000_000)
    with pytest.raises(HostLost):
        host.run(["true"], limit_s=5)


def test_no_more_of_a_file_is_taken_than_was_allowed(ends: tuple[FakeAgent, AgentHost], tmp_path: Path) -> None:
    agent, host = ends

    def send() -> None:
        channel, _, _ = agent.hear()
        agent.say(channel, DATA, b"x" * 6)
        agent.say(channel, DATA, b"x" * 6)

    sending = threading.Thread(target=send)
    sending.start()
    with pytest.raises(HostLost, match="client: /data is longer than the 10 bytes that this host may send"):
        host.fetch("/data", tmp_path / "data", most_bytes=10)
    sending.join(5)
    assert (tmp_path / "data").stat().st_size == 6


def test_all_artifacts_of_a_host_share_the_room(
    ends: tuple[FakeAgent, AgentHost], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("twinbed.hosts.agent._room_bytes", lambda folder: 10)
    agent, host = ends

    def send() -> None:
        channel, _, _ = agent.hear()
        agent.say(channel, END, {"entries": [{"name": name, "kind": "file", "bytes": 1} for name in ("a", "b")]})
        for _ in range(2):
            channel, _, _ = agent.hear()
            agent.say(channel, DATA, b"x" * 6)
            agent.say(channel, END, {"bytes": 0})

    sending = threading.Thread(target=send)
    sending.start()
    with pytest.raises(HostLost, match="/artifacts/b is longer than the 4 bytes that this host may send"):
        host.collect(tmp_path)
    sending.join(5)


@pytest.mark.parametrize("entries", [None, [{"name": "a", "kind": "file"}], [{"name": "a", "kind": "file", "bytes": "1"}]])
def test_a_list_that_is_none_is_the_hosts_error(entries: object, ends: tuple[FakeAgent, AgentHost], tmp_path: Path) -> None:
    agent, host = ends

    def send() -> None:
        agent.say(agent.hear()[0], END, {"entries": entries})

    sending = threading.Thread(target=send)
    sending.start()
    with pytest.raises(HostError, match="client: listing /artifacts: its agent gave an unknown answer: "):
        host.collect(tmp_path)
    sending.join(5)


@pytest.mark.parametrize(
    "payload",
    [
        b"[" * 100_000,
        b"[]",
        b"\xff",
        b"{}",
        json.dumps({**ENDED, "usage": None}).encode(),
        json.dumps({**ENDED, "max_rss_bytes": "much"}).encode(),
    ],
    ids=["deep", "list", "no text", "empty", "no usage", "text for a number"],
)
def test_an_end_that_is_none_loses_the_host(payload: bytes, ends: tuple[FakeAgent, AgentHost]) -> None:
    agent, host = ends
    program = host.start(["true"])
    agent.say(agent.hear()[0], EXIT, payload)
    with pytest.raises(HostLost, match="the connection to its agent broke"):
        program.wait(5)


@pytest.mark.parametrize("payload", [b"[" * 100_000, b"[]", b'"x"'])
def test_an_answer_that_is_no_object_loses_the_host(payload: bytes, ends: tuple[FakeAgent, AgentHost]) -> None:
    agent, host = ends
    channel = Channel(host.connection, "asking")
    agent.say(channel.number, END, payload)
    with pytest.raises(HostLost, match="the connection to its agent broke"):
        channel.result(5)
