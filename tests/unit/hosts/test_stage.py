"""Programs of a run on its hosts, with programs that are played."""

from __future__ import annotations

import contextlib
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from twinbed.contracts.bed import Bed
from twinbed.contracts.command import Command, Ready
from twinbed.contracts.host import Exit
from twinbed.contracts.site import Site
from twinbed.hosts import stage
from twinbed.hosts.error import HostError, HostLost, LimitExceeded, ProgramFailed
from twinbed.hosts.stage import Stage, all_at_once, placed, still_there, to_its_end
from twinbed.image import Image
from twinbed.model.usage import Usage

DONE = {"max_rss_bytes": 0, "started_monotonic_s": 0, "ended_monotonic_s": 0}


class Program:
    """Says and does what it is told; notes what is done to it in ``log``."""

    def __init__(
        self,
        host: PlayedHost,
        argv: Any,
        *,
        out: bytes = b"",
        err: bytes = b"",
        code: int = 0,
        signal: int | None = None,
        ended: bool = False,
        missing: bool = False,
        takes_s: float = 0.0,
        used: Usage | None = None,
    ) -> None:
        self.host, self.argv = host, tuple(argv)
        self.stdout, self.stderr = bytearray(out), bytearray(err)
        self.code, self.ended, self.missing = code, ended, missing
        self.ended_by = signal
        self.takes_s = takes_s
        self.changed = threading.Condition()
        self.answers: list[bytes] = []
        self.used = used

    def started(self, limit_s: float = 10.0) -> int:
        self.host.log.append((self.argv[0], "started", None))
        if self.missing:
            raise HostError(f"{self.argv[0]}: no such file")
        time.sleep(self.takes_s)
        self.host.held_at_s = time.monotonic()
        return 1

    def release(self, at_s: float) -> None:
        self.host.log.append((self.argv[0], "release", None))
        self.host.moments.append(at_s)

    def says(self, text: bytes | Callable[[bytes], bool], limit_s: float) -> None:
        self.host.log.append((self.argv[0], "says", limit_s))
        said = bytes(self.stderr)
        if not (text(said) if callable(text) else text in said):
            raise LimitExceeded(f"{self.argv[0]} said nothing")

    def signal(self, number: int) -> None:
        self.host.log.append((self.argv[0], "signal", number))
        if number == 10 and self.answers:
            self.stderr += self.answers.pop(0)

    def wait(self, limit_s: float) -> Exit:
        self.host.log.append((self.argv[0], "wait", limit_s))
        if self.code < 0:
            raise LimitExceeded(f"{self.argv[0]}: not done")
        code = self.code if self.ended_by is None else None
        return Exit(
            usage=self.used, code=code, signal=self.ended_by, stdout=bytes(self.stdout), stderr=bytes(self.stderr), **DONE
        )


class PlayedHost:
    artifacts, bin = "/kept", "/opt"

    def __init__(self, name: str, log: list[Any]) -> None:
        self.name, self.log = name, log
        self.plays: dict[str, dict[str, Any]] = {}
        self.started: list[Program] = []
        self.refuses, self.lost = 0, False
        self.env: Any = None
        self.held: list[bool] = []
        self.moments: list[float] = []
        self.held_at_s = 0.0

    def start(self, argv: Any, env: Any, held: bool) -> Program:
        self.env = env
        self.held.append(held)
        self.log.append((argv[0], "start", None))
        program = Program(self, argv, **self.plays.get(argv[0], {}))
        self.started.append(program)
        return program

    def monotonic_ahead_s(self) -> float:
        return 1000.0

    def listening(self, port: int, limit_s: float, protocol: str = "tcp") -> float:
        self.log.append((str(port), "listening", None))
        if self.lost:
            raise HostLost("gone")
        if self.refuses:
            self.refuses -= 1
            raise HostError("nothing listens")
        return 0.0


@pytest.fixture
def host() -> PlayedHost:
    return PlayedHost("client", [])


@pytest.fixture
def bed(host: PlayedHost) -> Bed:
    return Bed(hosts={"client": host}, addresses={}, targets=[], applied=[], passport={})


@pytest.fixture
def site(tmp_path: Path) -> Site:
    return Site(
        "run", tmp_path, Image("0", tmp_path, tmp_path, "erofs", tmp_path, tmp_path, "6.1", {}), tmp_path / "artifacts", (0,)
    )


def command(name: str, **rest: Any) -> Command:
    return Command("client", (name,), **rest)


def test_places_are_filled_in(host: PlayedHost, bed: Bed, site: Site) -> None:
    asked = Command("client", ("{bin}/x", "-o", "{artifacts}/y", "{other}"), env={"CONF": "{artifacts}/c"})
    to_its_end(asked, bed, site)
    assert host.started[0].argv == ("/opt/x", "-o", "/kept/y", "{other}")
    assert host.env == {"CONF": "/kept/c"}
    assert placed("{artifacts}{bin}", host) == "/kept/opt"


def test_all_are_started_before_any_is_waited_for(host: PlayedHost, bed: Bed, site: Site) -> None:
    host.plays = {"a": {"err": b"ready"}, "b": {}}
    Stage(bed, site).start([command("a", ready=Ready(says=b"ready"), limit_s=7.0), command("b", ready=Ready(listening=80))])
    assert host.log == [("a", "start", None), ("b", "start", None), ("a", "says", 7.0), ("80", "listening", None)]


def test_a_later_round_waits_for_the_one_before_and_ends_first(host: PlayedHost, bed: Bed, site: Site) -> None:
    host.plays = {name: {"err": b"ready"} for name in "abc"}
    held = Stage(bed, site)
    ready = Ready(says=b"ready")
    asked = [command("b", ready=ready, round=1), command("a", ready=ready), command("c", ready=ready, round=1, stop_limit_s=99)]
    started = held.start(asked)
    assert [(name, what) for name, what, _ in host.log] == [
        *(("a", "start"), ("a", "says")),
        *(("b", "start"), ("c", "start"), ("b", "says"), ("c", "says")),
    ]
    host.log.clear()
    held.stop(started)
    assert [name for name, what, _ in host.log if what == "signal"] == ["b", "c", "a"]
    assert {name: limit for name, what, limit in host.log if what == "wait"} == {"a": 30.0, "b": 30.0, "c": 99}


def test_a_port_is_asked_for_until_it_is_listened_on(host: PlayedHost, bed: Bed, site: Site) -> None:
    host.refuses = 3
    Stage(bed, site).start([command("nginx", ready=Ready(listening=80))])
    assert [entry for entry in host.log if entry[1] == "listening"] == [("80", "listening", None)] * 4


def test_a_port_that_nobody_listens_on_in_time(host: PlayedHost, bed: Bed, site: Site) -> None:
    host.refuses = 1_000_000
    with pytest.raises(LimitExceeded, match=r"^client: nginx: it did not listen on TCP port 80 within 0\.01 s$"):
        Stage(bed, site).start([command("nginx", ready=Ready(listening=80), limit_s=0.01)])


def test_a_server_that_ends_instead_of_listening(host: PlayedHost, bed: Bed, site: Site) -> None:
    host.refuses = 1_000_000
    host.plays = {"nginx": {"ended": True, "code": 1, "err": b"bind: Address already in use"}}
    with pytest.raises(
        ProgramFailed, match=r"client: nginx: exit code 1 before it was ready\n    bind: Address already in use"
    ):
        Stage(bed, site).start([command("nginx", ready=Ready(listening=80))])


def test_a_server_that_cannot_be_started(host: PlayedHost, bed: Bed, site: Site) -> None:
    host.refuses = 1_000_000
    host.plays = {"nginx": {"missing": True}}
    with pytest.raises(HostError, match=r"^nginx: no such file$"):
        Stage(bed, site).start([command("nginx", ready=Ready(listening=80))])


def test_a_host_that_is_lost_is_not_waited_for(host: PlayedHost, bed: Bed, site: Site) -> None:
    host.lost = True
    with pytest.raises(HostLost, match="gone"):
        Stage(bed, site).start([command("nginx", ready=Ready(listening=80))])


def test_a_program_that_stays_must_say_when_it_is_ready(bed: Bed, site: Site) -> None:
    with pytest.raises(AssertionError, match="must have `ready`"):
        Stage(bed, site).start([command("x")])


def test_programs_that_hold_data_are_ended_last_and_only_once_they_are_empty(
    host: PlayedHost, bed: Bed, site: Site, tmp_path: Path
) -> None:
    host.plays = {name: {"err": b"ready\n", "out": b"said"} for name in ("dump", "count")}
    held = Stage(bed, site)
    started = held.start(
        [
            command("dump", ready=Ready(says=b"ready"), drained=lambda said: said.endswith(b"0 left\n")),
            command("count", ready=Ready(says=b"ready"), stop=2, stdout="count.txt"),
        ]
    )
    host.started[0].answers = [b"2 left\n", b"1 left\n", b"0 left\n"]
    host.log.clear()
    held.stop(started)
    signals = [(name, number) for name, what, number in host.log if what == "signal"]
    assert signals == [("count", 2), ("dump", 10), ("dump", 10), ("dump", 10), ("dump", 15)]
    kept = {path.name: path.read_bytes() for path in (tmp_path / "artifacts" / "client").iterdir()}
    assert kept == {
        "dump.out": b"said",
        "dump.out.err": b"ready\n2 left\n1 left\n0 left\n",
        "count.txt": b"said",
        "count.txt.err": b"ready\n",
    }


def test_a_program_that_never_empties(host: PlayedHost, bed: Bed, site: Site, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(stage, "_DRAIN_LIMIT_S", 0.05)
    host.plays = {"dump": {"err": b"ready\n"}}
    held = Stage(bed, site)
    started = held.start([command("dump", ready=Ready(says=b"ready"), drained=lambda said: False)])
    host.started[0].answers = [b"9 left\n"] * 1_000
    with pytest.raises(LimitExceeded, match=r"client: dump still holds data after \d s"):
        held.stop(started)


@pytest.mark.parametrize(("most_s", "ends"), [(60.0, True), (0.0, False)])
def test_a_program_that_gets_on_has_longer(
    host: PlayedHost, bed: Bed, site: Site, monkeypatch: pytest.MonkeyPatch, most_s: float, ends: bool
) -> None:
    monkeypatch.setattr(stage, "_DRAIN_LIMIT_S", 0.0)
    monkeypatch.setattr(stage, "_DRAIN_MOST_S", most_s)
    host.plays = {"dump": {"err": b"ready\n"}}
    held = Stage(bed, site)
    started = held.start([command("dump", ready=Ready(says=b"ready"), drained=lambda said: said.endswith(b" 0 left\n"))])
    host.started[0].answers = [b" %d left\n" % left for left in range(9, -1, -1)]
    with contextlib.nullcontext() if ends else pytest.raises(LimitExceeded, match="dump still holds data"):
        held.stop(started)


@pytest.mark.parametrize(
    ("end", "kept"),
    [
        ({"code": 0}, b"said\n"),
        ({"code": 2}, b"twinbed: irtt: exit code 2\nsaid\n"),
        ({"signal": 9}, b"twinbed: irtt: ended by SIGKILL\nsaid\n"),
        ({"signal": 2}, b"twinbed: irtt: ended by SIGINT\nsaid\n"),
        ({"signal": 15}, b"twinbed: irtt: ended by SIGTERM\nsaid\n"),
    ],
)
def test_a_bad_end_is_kept_with_the_error_output(
    host: PlayedHost, bed: Bed, site: Site, tmp_path: Path, end: dict[str, int], kept: bytes
) -> None:
    host.plays = {"irtt": {"err": b"said\n", **end}}
    held = Stage(bed, site)
    held.stop(held.start([command("irtt", ready=Ready(says=b"said"), stop=2, stdout="irtt.out")]))
    assert (tmp_path / "artifacts/client/irtt.out.err").read_bytes() == kept


def test_a_program_may_die_of_the_usual_stop_signal(host: PlayedHost, bed: Bed, site: Site, tmp_path: Path) -> None:
    host.plays = {"dump": {"err": b"said\n", "signal": 15}}
    held = Stage(bed, site)
    held.stop(held.start([command("dump", ready=Ready(says=b"said"))]))
    assert (tmp_path / "artifacts/client/dump.out.err").read_bytes() == b"said\n"


def test_what_was_said_is_kept_of_a_run_that_fails(host: PlayedHost, bed: Bed, site: Site, tmp_path: Path) -> None:
    host.plays = {"count": {"err": b"ready\n", "out": b"so far"}}
    held = Stage(bed, site)
    held.start([command("count", ready=Ready(says=b"ready"))])
    held.kill()
    assert (tmp_path / "artifacts/client/count.out").read_bytes() == b"so far"


def test_a_command_that_fails_keeps_its_words(host: PlayedHost, bed: Bed, site: Site, tmp_path: Path) -> None:
    host.plays = {"ab": {"code": 22, "err": b"apr_socket_recv: reset", "out": b"half"}}
    with pytest.raises(ProgramFailed, match="client: ab: exit code 22\n    apr_socket_recv: reset"):
        to_its_end(command("ab", stdout="ab.txt"), bed, site)
    assert (tmp_path / "artifacts/client/ab.txt").read_bytes() == b"half"
    assert (tmp_path / "artifacts/client/ab.txt.err").read_bytes() == b"apr_socket_recv: reset"


def test_clients_run_together_to_their_ends_and_all_failures_are_the_runs(
    host: PlayedHost, bed: Bed, site: Site, tmp_path: Path
) -> None:
    host.plays = {"a": {"out": b"1"}, "b": {"code": 1, "err": b"first"}, "c": {"code": -1, "out": b"3"}, "d": {"out": b"4"}}
    with pytest.raises(HostError, match="client: b: exit code 1\n    first; c: not done"):
        all_at_once([command(name, stdout=name, limit_s=9.0) for name in "abcd"], bed, site)
    assert [name for name, what, _ in host.log if what == "start"] == list("abcd")
    assert list(host.log[:4]) == [(name, "start", None) for name in "abcd"]
    assert {path.name for path in (tmp_path / "artifacts/client").iterdir()} == {"a", "b", "b.err", "c", "d"}


def test_several_clients_are_given_one_moment_and_one_is_not_held(host: PlayedHost, bed: Bed, site: Site) -> None:
    before = time.monotonic()
    skew_s = all_at_once([command(name) for name in "abc"], bed, site).skew_s
    first, *others = host.moments
    assert first > before + 1000
    assert others == [first, first]
    assert skew_s == 0.0
    all_at_once([command("d")], bed, site)
    assert host.held == [True, True, True, False] and len(host.moments) == 3


def test_the_moment_is_set_when_all_are_held_however_long_that_takes(host: PlayedHost, bed: Bed, site: Site) -> None:
    host.plays = {"b": {"takes_s": 0.3}}
    all_at_once([command(name) for name in "abc"], bed, site)
    assert min(host.moments) > 1000 + host.held_at_s
    assert [what for _, what, _ in host.log[3:9]] == ["started"] * 3 + ["release"] * 3


def test_none_starts_where_one_cannot_be_brought_up(host: PlayedHost, bed: Bed, site: Site) -> None:
    host.plays = {"b": {"missing": True}}
    with pytest.raises(HostError, match=r"^b: no such file$"):
        all_at_once([command(name) for name in "abc"], bed, site)
    assert not host.moments
    assert {name for name, what, number in host.log if (what, number) == ("signal", 9)} >= {"a", "c"}


def test_what_programs_used_is_that_of_the_measurement(host: PlayedHost, bed: Bed, site: Site) -> None:
    """A server had warm-up requests before; a client has its whole life; a function of this process has nothing."""
    host.plays = {
        "server": {"used": Usage(5.0, 120, 7)},
        "client": {"used": Usage(1.5, 40, 2)},
    }
    stage = Stage(bed, site)
    (server, function) = stage.start([command("server", ready=Ready()), command("function", ready=Ready())])
    assert server.used is None
    server.before = Usage(2.0, 100, 3)
    (client,) = all_at_once([command("client")], bed, site, [server]).started
    stage.stop([server, function])
    assert (client.used, server.used, function.used) == (Usage(1.5, 40, 2), Usage(3.0, 20, 4), None)


def test_a_program_that_ended_under_the_workload(host: PlayedHost, bed: Bed, site: Site) -> None:
    host.plays = {"nginx": {"err": b"ready"}, "dump": {"err": b"ready"}}
    started = Stage(bed, site).start([command(name, ready=Ready(says=b"ready")) for name in ("nginx", "dump")])
    still_there(started)
    host.started[1].ended = True
    with pytest.raises(ProgramFailed, match="client: dump: exit code 0 while the workload ran"):
        still_there(started)
