"""What a monitor sees of a real lab: planted connections of every class, a replayed attack, and engines that read the captures.

Nothing of it may leave the lab: the machine's own interfaces are listened to meanwhile.
"""

from __future__ import annotations

import contextlib
import socket
import stat
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path

import pytest

from twinbed import design
from twinbed.contracts.command import Command
from twinbed.contracts.extracted import Extracted
from twinbed.contracts.plugins import Plugins
from twinbed.contracts.site import Site
from twinbed.contracts.workload import Workload, WorkloadPlan
from twinbed.lab import preflight
from twinbed.lab.execution import Outcome, RunFailed, execute
from twinbed.metrics.planted import METRICS
from twinbed.readers.monitor.classes import CLASSES
from twinbed.readers.replay import pcap
from twinbed.registry import PLUGINS, catalogue
from twinbed.results.extract.extra import extra
from twinbed.study.loading import load
from twinbed.study.run import Run
from twinbed.workloads.planted import PlantedParams

sys.path.insert(0, str(Path(__file__).parents[1] / "unit" / "results"))
from test_extra import HTTP, PLANTED, TWO, connection

GOLDEN = Path(__file__).parents[1] / "golden" / "formats"
CONTROL = b"a packet of this machine's own"


def one_run(workload: str, monitor: str, driver: str = "container") -> Run:
    text = f"""
study: monitored
testbeds: {{bed: {{driver: {driver}}}}}
workload: {{{workload}}}
instruments: {{monitor: {{{monitor}}}}}
replicates: 1
"""
    (run,) = design.runs(load(text, "monitored.yaml", catalogue()))
    return run


FORCED_BUFFER = 33
"""SO_RCVBUFFORCE of linux/socket.h: beyond what the machine gives to everybody. Other tests have traffic on its loopback."""
ADDRESSES = {b"\x08\x00": slice(26, 34), b"\x86\xdd": slice(22, 54)}
"""Where a frame has those of IPv4 and of IPv6, by its type. Of others all is looked at."""


def of_a_lab(frame: bytes) -> bool:
    """By its addresses alone: in numbers and checksums of others' frames any three bytes come now and then."""
    return bytes((10, 77, 0)) in frame[:60][ADDRESSES.get(frame[12:14], slice(60))] or frame[6:11] == b"\6\0\x0a\x4d\0"


@contextlib.contextmanager
def nothing_leaves() -> Iterator[None]:
    """No frame with a lab's addresses is on any interface of this machine; that it would be seen, a packet to itself shows."""
    with socket.socket(socket.AF_PACKET, socket.SOCK_RAW, socket.htons(3)) as everything:
        everything.setsockopt(socket.SOL_SOCKET, FORCED_BUFFER, 2**28)
        everything.settimeout(30)
        yield
        with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as own:
            own.sendto(CONTROL, ("127.0.0.1", 9))
        while CONTROL not in (frame := everything.recv(65536)):
            assert not of_a_lab(frame), "a frame of the lab's"


class Planter(Workload[PlantedParams]):
    """Sends frames as they are, from the client."""

    name, params, summary = "planted", PlantedParams, "frames as they are"
    metrics, work, rate = METRICS, "requests", "requests_per_second"

    def plan(self, params: PlantedParams, pairs: Sequence[tuple[str, str, str]]) -> WorkloadPlan:
        frames = [*connection(50000, 80), *(frame for planted in PLANTED.values() for frame in planted)]
        content = pcap.write([(number * 1_000_000, frame) for number, frame in enumerate(frames)])
        client = pairs[0][0]
        send = Command(client, ("tcpreplay", "-i", "eth0", "/run/planted.pcap"), limit_s=30)
        return WorkloadPlan(files=[(client, "/run/planted.pcap", content)], clients=[send])

    def parse(self, params: PlantedParams, artifacts: Path) -> Extracted:
        return Extracted()


def rows(found: Extracted, name: str) -> Sequence[Mapping[str, object]]:
    return dict(extra(list(found.tables.items()), HTTP)[1])[name].to_pylist()


def test_planted_connections_of_every_class_are_found_on_both_links(site: Callable[..., Site], leaves_nothing: None) -> None:
    run, place = one_run("kind: planted", "snaplen: 65535"), site()
    plugins = Plugins(PLUGINS.drivers, {"planted": Planter()}, PLUGINS.instruments, {})
    with nothing_leaves():
        execute(run, plugins, place, Outcome(), lambda _: None)
    choice = run.instruments["monitor"]
    found = PLUGINS.instruments["monitor"].extract(choice.params, place.artifacts)
    classes = rows(found, "extra_classes")
    for link in ("client", "server"):
        of = {row["class"]: row for row in classes if (row["link"], row["checksums"]) == (link, "ignored")}
        missing = {name: of[name]["connections"] for name in CLASSES if of[name]["connections"] < 1 + (name in TWO)}
        assert missing == {}
        assert of["ARP/ND"]["frames"] >= 1


def test_a_replayed_capture_arrives_whole_and_stays_in_the_lab(site: Callable[..., Site], leaves_nothing: None) -> None:
    run, place = one_run("kind: replay, speed: 4", "snaplen: 65535"), site()
    with nothing_leaves():
        execute(run, PLUGINS, place, Outcome(), lambda _: None)
    found = PLUGINS.workloads["replay"].parse(run.workload.params, place.artifacts)
    values = {value.metric: value.value for value in found.values}
    assert values["sent_packets"] == values["arrived_packets"] == 30
    assert values["failed_packets"] == values["left_out_packets"] == 0
    assert values["arrived_share"] == 1
    seen = PLUGINS.instruments["monitor"].extract(run.instruments["monitor"].params, place.artifacts)
    # What a start that is far apart tells of a connection, it tells twice: its sides are then logged apart.
    tcp = [row for row in seen.tables["monitored_connections"].to_pylist() if row["link"] == "client"]
    assert {(row["originator_address"], row["responder_port"]) for row in tcp} == {("10.77.0.1", 80)}
    assert {row["originator_port"] for row in tcp} == {40000, 40001, 40002}


def test_replay_is_refused_outside_of_a_lab(site: Callable[..., Site]) -> None:
    run = one_run("kind: replay", "snaplen: 65535", driver="model")
    (check,) = preflight.confined([run], PLUGINS.drivers)
    assert not check.works and "runs only in labs" in check.found
    with pytest.raises(RunFailed, match="runs only in labs"):
        execute(run, PLUGINS, site(), Outcome(), lambda _: None)


def stand_in(folder: Path, name: str, script: str) -> Path:
    """A program that stands in for an engine: what it writes, the real one wrote or its manual shows."""
    file = folder / name
    file.write_text(f"#!/bin/sh\n{script}\n")
    file.chmod(file.stat().st_mode | stat.S_IXUSR)
    return file


@pytest.mark.parametrize("engine", ["suricata", "zeek"])
def test_an_engine_reads_the_kept_captures(
    engine: str, tmp_path: Path, site: Callable[..., Site], monkeypatch: pytest.MonkeyPatch, leaves_nothing: None
) -> None:
    """Real Suricata wrote the file that its stand-in copies: 52 alerts of 4 signatures, 11 flow records (by jq)."""
    wrote = {
        "suricata": f'while [ "$1" != -l ]; do shift; done; cp {GOLDEN}/suricata-eve/offload/input.json "$2/eve.json"',
        "zeek": f"cp {GOLDEN}/zeek-conn-json/sorted-keys/input.json conn.log",
    }
    program = stand_in(tmp_path, f"{engine}-stand-in", wrote[engine])
    monkeypatch.setattr("twinbed.instruments.monitor.INSTALLED", (f"{tmp_path}/",))
    run, place = (
        one_run("kind: http, tool: ab, duration: 1s, max_requests: 20", f"engine: {engine}, program: {program}"),
        site(),
    )
    execute(run, PLUGINS, place, Outcome(), lambda _: None)
    found = PLUGINS.instruments["monitor"].extract(run.instruments["monitor"].params, place.artifacts)
    values = {(value.metric, value.host): value.value for value in found.values}
    if engine == "suricata":
        assert values["alerts", ""] == values["strict_alerts", "client"] == 52
        assert values["flow_records", "server"] == 11
        assert sorted({row["signature_id"] for row in found.tables["alerts"].to_pylist()}) == [
            2200074,
            2200075,
            2200077,
            2200078,
        ]
    else:
        assert values["alerts", ""] is None and values["flow_records", ""] == 1


def test_a_missing_engine_is_named_with_how_to_get_it() -> None:
    run = one_run("kind: http", "engine: suricata, program: /usr/nowhere/suricata")
    (check,) = preflight.trials([("monitor", run.instruments["monitor"].params)])
    assert not check.works and "no such program" in check.found and "bookworm-backports" in check.mend
