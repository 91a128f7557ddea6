"""The instrument ``stations`` on real kernels: it has what the kernel's own trace has, planted delays are where they were
planted, and a guest's parts add up and lie within the bound of its clock."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from collections import Counter
from collections.abc import Callable, Mapping
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest
from tests.traffic import bridged

from twinbed import _core, design
from twinbed.analyses.anatomy import parts, steps
from twinbed.analyses.anatomy.parts import PARTS, WHOSE, Split
from twinbed.analyses.anatomy.stations import Host
from twinbed.analyses.anatomy.steps import Requests, Seen
from twinbed.contracts.site import Site
from twinbed.instruments.packets import PacketsParams, packets
from twinbed.instruments.stations import StationsParams, stations
from twinbed.lab.execution import Outcome, execute
from twinbed.registry import PLUGINS, catalogue
from twinbed.study.loading import load

pytestmark = [pytest.mark.privileged, pytest.mark.skipif(os.geteuid() != 0, reason="makes namespaces")]

SCENE = Path(bridged.__file__)
HOSTS = ("client", "server")


def scene(folder: Path, probe: Path, what: str) -> int:
    """The real-time clock less the monotonic one, in nanoseconds."""
    alone = ("unshare", "--net", "--mount", "--pid", "--fork", "--kill-child", "--mount-proc", "--propagation", "private")
    argv = [*alone, sys.executable, str(SCENE), str(folder), str(probe), what]
    return int(json.loads(subprocess.run(argv, stdout=subprocess.PIPE, check=True, text=True, timeout=120).stdout))


def split(folder: Path) -> tuple[Requests, Split]:
    tables = {host: pa.table(_core.capture_tables(folder / f"{host}.pcap", ["steps"])[0]["steps"]) for host in HOSTS}
    hosts = {}
    for host in HOSTS:
        connections, rows = _core.stations(folder / host / "kernel.stations")
        hosts[host] = Host(rows, connections, own_clock=False)
    found = steps.requests(tables["client"], tables["server"], Seen.BOTH)
    return found, parts.split(tables["client"], tables["server"], found, hosts, Seen.BOTH)


def adds_up(found: Requests, each: Split) -> None:
    for step, of_step in PARTS[Seen.BOTH].items():
        total = sum(each.seconds[parts.name(step, part)] for part in of_step)
        known = np.isfinite(total)
        assert known.any()
        assert np.abs(total - found.durations[step])[known].max() < 1e-12


@pytest.mark.parametrize(("what", "part"), [("sleep", "server.program"), ("queue", "server.qdisc"), ("busy", "server.wake")])
def test_a_planted_delay_is_the_largest_part_of_its_host(tmp_path: Path, probe: Path, what: str, part: str) -> None:
    if what == "busy" and len(os.sched_getaffinity(0)) < 2:
        pytest.skip("client and server would share the busy CPU")
    scene(tmp_path, probe, what)
    found, each = split(tmp_path)
    assert len(found) == bridged.REQUESTS
    # On a busy machine TCP may send a packet twice; its request has no stations then.
    assert each.incomplete < bridged.REQUESTS / 2
    adds_up(found, each)
    of_server = {
        parts.name(step, one): float(np.nanmedian(each.seconds[parts.name(step, one)]))
        for step, of_step in PARTS[Seen.BOTH].items()
        if WHOSE[step] == "server"
        for one in of_step
    }
    assert max(of_server, key=lambda name: of_server[name]) == part, of_server


EVENT = re.compile(r"^.*?\s(\d+\.\d+): (\w+): (.*)$")
NAMES = {"net_dev_queue": "qdisc", "net_dev_start_xmit": "driver", "netif_receive_skb": "softirq"}
READS, WRITES = {0, 45}, {1, 44}
"""Numbers of read, recvfrom, write and sendto on x86_64."""
ETHERNET, IPV4_AND_TCP, WITH_OPTIONS_OF_A_SYN = 14, 20 + 32, 20 + 40
"""Bytes of headers; with timestamps, and of Linux's SYN."""
SYN = 2
TICK_NS = 1000
"""The kernel's text has microseconds."""


def test_stations_are_those_of_the_kernels_own_trace(tmp_path: Path, probe: Path) -> None:
    real_less_monotonic_ns = scene(tmp_path, probe, "trace")
    _, rows = _core.stations(tmp_path / "server" / "kernel.stations")
    recorded: dict[str, list[Mapping[str, int]]] = {}
    for row in rows.to_pylist():
        recorded.setdefault(row["station"], []).append(row)
    traced: dict[str, list[tuple[int, int]]] = {}
    for line in (tmp_path / "trace").read_text().splitlines():
        if (match := EVENT.match(line)) is None:
            continue
        time, event, text = match.groups()
        at = round(float(time) * 1e9) + real_less_monotonic_ns
        if event in NAMES:
            traced.setdefault(NAMES[event], []).append((at, int(re.search(r"\blen=(\d+)", text)[1])))  # type: ignore[index]
        elif (call := re.match(r"NR (\d+) = (-?\d+)", text)) and int(call[2]) > 0:
            kind = {number: name for name, numbers in (("read", READS), ("write", WRITES)) for number in numbers}
            if int(call[1]) in kind:
                traced.setdefault(kind[int(call[1])], []).append((at, int(call[2])))
    assert traced.keys() >= {"qdisc", "driver", "softirq", "read", "write"}
    for station, events in traced.items():
        is_call = station in ("read", "write")
        own = recorded[station]
        headers = IPV4_AND_TCP + (0 if station == "softirq" else ETHERNET)
        lengths = [_length(row, is_call, headers) for row in own]
        # Acknowledgments alone, of any options, are not recorded; nor are those that close told from them in the trace.
        with_news = Counter(length for length, row in zip(lengths, own, strict=True) if row["bytes"] or row["flags"] & SYN)
        assert with_news == Counter(length for _, length in events if length in with_news), station
        for before, _, after, expected in zip([None, *own], own, [*own[1:], None], lengths, strict=False):
            # The same event is in the trace: after the record before, and before the one after it.
            moment = "end_ns" if is_call else "time_ns"
            since = before[moment] if before else 0
            until = after[moment] if after else sys.maxsize
            assert any(length == expected and since <= at + TICK_NS and at - TICK_NS <= until for at, length in events), station


def _length(row: Mapping[str, int], is_call: bool, headers: int) -> int:
    """What the kernel's trace gives for it."""
    options = WITH_OPTIONS_OF_A_SYN - IPV4_AND_TCP if row["flags"] & SYN else 0
    return row["bytes"] if is_call else row["bytes"] + headers + options


GUESTS = """
study: stations
testbeds: {guest: {driver: qemu, nic: virtio-net-pci}}
workload: {kind: http, tool: ab, payload: 500B, duration: 30s, max_requests: 50}
instruments: [packets, stations]
replicates: 1
"""


def test_parts_of_guests_add_up_and_their_clocks_are_bounded(site: Callable[..., Site], leaves_nothing: None) -> None:
    place = site()
    (run,) = design.runs(load(GUESTS, "stations.yaml", catalogue()))
    execute(run, PLUGINS, place, Outcome(), lambda _: None)
    of_packets = packets.extract(PacketsParams(), place.artifacts).tables["steps"]
    tables = {link: of_packets.filter(pa.compute.equal(of_packets["link"], link)) for link in HOSTS}
    of_stations = stations.extract(StationsParams(), place.artifacts).tables
    with_run = [
        of_stations[name].append_column("run", pa.repeat("it", of_stations[name].num_rows))
        for name in ("stations", "station_connections", "station_probes")
    ]
    hosts = parts.hosts_of(*with_run)["it"]
    assert all(host.own_clock for host in hosts.values())
    found = steps.requests(tables["client"], tables["server"], Seen.BOTH)
    each = parts.split(tables["client"], tables["server"], found, hosts, Seen.BOTH)
    assert len(found) - each.incomplete > 10
    assert each.unbounded == each.disordered == 0
    adds_up(found, each)
    crossing = {parts.name(step, part) for step, of_step in PARTS[Seen.BOTH].items() for part in of_step if part.crosses}
    assert {name for name, bound in each.bounds.items() if bound > 0} == crossing
    for name in crossing:
        # The clock is as early and as late as it can be, with every packet still going forward in time.
        shortest = np.nanmin(each.seconds[name])
        assert shortest >= each.bounds[name] * (1 - 1e-3) - 1e-9, name
