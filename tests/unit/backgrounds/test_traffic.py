"""Background traffic: what is planned for which hosts, what a study is told that cannot be, what the tools' reports say."""

from __future__ import annotations

import math
import shutil
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from twinbed import design
from twinbed.backgrounds.traffic import (
    HTTP_PORT,
    HTTP_REPORT,
    TCP_PORT,
    TCP_REPORT,
    UDP_PORT,
    UDP_REPORT,
    TrafficParams,
    traffic,
)
from twinbed.contracts.command import Command
from twinbed.contracts.extracted import UNREADABLE
from twinbed.contracts.place import MACHINE, PROBE_PORT, Places
from twinbed.metrics.background import METRICS
from twinbed.registry import PLUGINS, catalogue
from twinbed.study.document import StudyError
from twinbed.study.loading import load

GOLDEN = Path(__file__).parents[2] / "golden" / "traffic"
PAIRS = [("client1", "server1", "10.77.0.2"), ("client2", "server2", "10.77.1.2")]
PLACES = Places([MACHINE], PAIRS, [("otherclient1", "otherserver1", "10.77.2.2")])
ALL = TrafficParams.model_validate({"http": 3, "tcp": 2, "udp": "50mbit"})
PLAIN = """
study: busy
testbeds: {a: {driver: container}}
workload: {kind: http}
"""


def commands(**settings: Any) -> list[Command]:
    return list(traffic.plan(TrafficParams.model_validate(settings), PLACES).commands)


@pytest.mark.parametrize(
    ("on", "clients", "servers"),
    [("pairs", ["client1", "client2"], ["server1", "server2"]), ("bystanders", ["otherclient1"], ["otherserver1"])],
)
def test_it_runs_between_the_hosts_it_was_asked_for(on: str, clients: list[str], servers: list[str]) -> None:
    plan = traffic.plan(ALL.model_copy(update={"on": on}), PLACES)
    assert sorted({command.host for command in plan.commands if command.round}) == clients
    assert sorted({command.host for command in plan.commands if not command.round}) == servers
    assert sorted({host for host, _, _ in plan.files}) == servers
    assert len(plan.commands) == 6 * len(clients)


def test_udp_begins_before_what_fills_the_links() -> None:
    rounds = {(Path(each.argv[0]).name, each.stdout): each.round for each in traffic.plan(ALL, PLACES).commands}
    assert rounds == {
        ("iperf3", UDP_REPORT): 0,
        ("iperf3", TCP_REPORT): 0,
        ("nginx", "background-nginx.txt"): 0,
        ("iperf3", "background-udp.txt"): 1,
        ("iperf3", "background-tcp.txt"): 2,
        ("stdbuf", HTTP_REPORT): 2,
    }


@pytest.mark.parametrize(
    ("settings", "programs", "needed"),
    [
        ({"http": 1}, {"nginx", "stdbuf"}, ("nginx", "stdbuf", "wrk")),
        ({"tcp": 1}, {"iperf3"}, ("iperf3",)),
        ({"udp": "1mbit"}, {"iperf3"}, ("iperf3",)),
    ],
)
def test_of_a_kind_at_level_0_nothing_runs(settings: dict[str, Any], programs: set[str], needed: tuple[str, ...]) -> None:
    found = commands(**settings)
    assert {command.argv[0] for command in found} == programs
    assert len(found) == 2 * len(PAIRS)
    assert TrafficParams.model_validate(settings).programs() == needed


def test_levels_are_handed_to_the_tools() -> None:
    text = {
        command.stdout: " ".join(command.argv) for command in traffic.plan(ALL, PLACES).commands if command.host == "client1"
    }
    assert "iperf3 -c 10.77.0.2 -p 2122 -t 0 " in text["background-udp.txt"]
    assert text["background-udp.txt"].endswith(" -u -b 50000000")
    assert text["background-tcp.txt"].endswith(" -P 2")
    assert " -c 3 " in text[HTTP_REPORT] and text[HTTP_REPORT].endswith(" http://10.77.0.2:2120/payload")
    six = traffic.plan(TrafficParams(http=1), Places([], [("client", "server", "fd00::2")])).commands
    assert any(command.argv[-1] == "http://[fd00::2]:2120/payload" for command in six)


@pytest.mark.parametrize("workload", ["http", "iperf3"])
def test_nothing_is_shared_with_the_workloads_own_programs(workload: str) -> None:
    """Neither a port, nor a file, nor an artifact on any host."""
    own = PLUGINS.workloads[workload].plan(PLUGINS.workloads[workload].params(), PAIRS)
    plan = traffic.plan(ALL, PLACES)
    programs = [*own.servers, *own.warm_up, *own.clients]
    assert not {(each.host, each.stdout) for each in programs} & {(each.host, each.stdout) for each in plan.commands}
    assert all(each.stdout for each in plan.commands), "no program is named by its file alone"
    assert not {(host, path) for host, path, _ in own.files} & {(host, path) for host, path, _ in plan.files}
    taken = {each.ready.listening for each in own.servers if each.ready is not None}
    assert not taken & {HTTP_PORT, TCP_PORT, UDP_PORT}
    assert len({HTTP_PORT, TCP_PORT, UDP_PORT, PROBE_PORT}) == 4


@pytest.mark.parametrize(
    ("more", "said"),
    [
        ("background: {kind: traffic, tcp: 1, on: bystanders}\n", "loads.yaml:5:37: background.on: has no bystanders"),
        ("background: {traffic: {udp: 1mbit, on: bystanders}}\n", "background.traffic.on: has no bystanders"),
        (
            "background: {kind: traffic, tcp: 1}\nfactors: {on: [pairs, bystanders]}\n",
            "background.on: has no bystanders to run between; allowed: topology: {bystanders: N}, or on: pairs",
        ),
        (
            "background: {kind: traffic, tcp: 1, on: bystanders}\nfactors: {bystanders: [0, 1]}\n",
            "background.on: has no bystanders",
        ),
        ("background: {kind: traffic, udp: 50}\nfactors: {udp: [fast]}\n", "background.udp: is also the factor"),
        ("background: {kind: traffic, udp: fast}\n", "background.udp: 'fast' is not"),
        ("background: {kind: traffic, udp: -1mbit}\n", "background.udp"),
        ("background: {kind: traffic, tcp: 129}\n", "background.tcp: 129 is not allowed; allowed: less than or equal to 128"),
        ("background: {kind: traffic, tcp: 1.5}\n", "background.tcp"),
        ("background: {kind: traffic, http: 501}\n", "background.http"),
        ("background: {kind: traffic, http: 1, http_payload: 2MiB}\n", "background.http_payload"),
        ("background: {kind: traffic, on: machine}\n", "background.on: 'machine' is not known; allowed: pairs or bystanders"),
        ("background: {kind: traffic, upd: 1mbit}\n", "did you mean 'udp'?"),
        ("topology: {bystanders: 81}\n", "topology.bystanders"),
        ("topology: {bystanders: -1}\n", "topology.bystanders"),
    ],
)
def test_what_cannot_be_is_told(more: str, said: str) -> None:
    with pytest.raises(StudyError) as caught:
        load(PLAIN + more, "loads.yaml", catalogue())
    assert any(said in str(problem) for problem in caught.value.problems), caught.value


def test_bystanders_are_needed_only_where_they_carry_something() -> None:
    text = PLAIN + "background: {kind: traffic, on: bystanders}\nfactors: {tcp: [0, 1], bystanders: [0, 2]}\n"
    study = load(text + "exclude: [{tcp: 1, bystanders: 0}]\n", "loads.yaml", catalogue())
    assert [(cell.backgrounds["traffic"].params.tcp, cell.topology.bystanders) for cell in study.cells] == [
        (0, 0),
        (0, 2),
        (1, 2),
    ]
    assert design.run_expense(next(iter(design.runs(study)))).seconds > 0


def test_what_was_carried_is_read() -> None:
    """By iperf3's own summary of the whole test, and wrk's own rate, each with the digits that it has."""
    found = {(each.metric, each.host): each.value for each in traffic.extract(ALL, GOLDEN / "run").values}
    of_each = {
        ("background_http_rate", "client"): pytest.approx(1.66, abs=0.005),
        ("background_tcp_goodput", "server"): pytest.approx(321e3, rel=0.005),
        ("background_udp_goodput", "server"): pytest.approx(9557e3, rel=0.001),
        ("background_udp_loss", "server"): pytest.approx(524 / 7383),
    }
    assert found == of_each | {(metric, ""): value for (metric, _), value in of_each.items()}


def test_the_interval_that_is_written_twice_counts_once() -> None:
    """Three whole seconds, of which the file has the third twice."""
    found = {each.metric: each.value for each in traffic.extract(TrafficParams(tcp=2, udp=1), GOLDEN / "ended").values}
    assert found["background_tcp_goodput"] == pytest.approx((11245e3 + 11798e3 + 12058e3) / 3, rel=1e-4)
    assert found["background_udp_goodput"] == pytest.approx((1.01 * 11954e3 + 0.99 * 11814e3 + 11666e3) / 3, rel=1e-4)
    assert found["background_udp_loss"] == 0


def test_what_was_lost_of_several_places_is_of_all_their_datagrams(tmp_path: Path) -> None:
    line = "[  5]   0.00-1.00   sec  1.00 MBytes  {rate} Kbits/sec  0.100 ms  {lost}/{all} (9%)  \n"
    for place, rate, lost, datagrams in (("server1", 1000, 10, 100), ("server2", 3000, 0, 300)):
        (tmp_path / place).mkdir()
        said = "Server listening on 2122 (test #1)\n" + line.format(rate=rate, lost=lost, all=datagrams)
        # What was cut short when it ended, and a last interval without a length.
        (tmp_path / place / UDP_REPORT).write_text(
            said + "[  5]   1.00-1.00   sec  0.00 Bytes  -nan Kbits/sec  0.1 ms  0/0 (0%)  \n[  5]   1.00-2.0"
        )
    found = {(each.metric, each.host): each.value for each in traffic.extract(TrafficParams(udp=1), tmp_path).values}
    assert found == {
        ("background_udp_goodput", "server1"): 1e6,
        ("background_udp_goodput", "server2"): 3e6,
        ("background_udp_goodput", ""): 4e6,
        ("background_udp_loss", "server1"): 0.1,
        ("background_udp_loss", "server2"): 0.0,
        ("background_udp_loss", ""): 0.025,
    }


def test_a_tool_that_was_killed_before_it_said_anything_makes_null(tmp_path: Path) -> None:
    """Of its own place, and of all together."""
    shutil.copytree(GOLDEN / "run", tmp_path, dirs_exist_ok=True)
    said = (GOLDEN / "run" / "client" / HTTP_REPORT).read_text()
    for place, name, content in (
        ("client2", HTTP_REPORT, said[: said.index("  12 requests")]),
        ("server2", TCP_REPORT, ""),
        ("server2", UDP_REPORT, "Server listening on 2122 (test #1)\n[  5]   0.00-1.0"),
    ):
        (tmp_path / place).mkdir(exist_ok=True)
        (tmp_path / place / name).write_text(content)
    found = {(each.metric, each.host): each.value for each in traffic.extract(ALL, tmp_path).values}
    for metric in METRICS:
        one, other = ("client", "client2") if metric.name == "background_http_rate" else ("server", "server2")
        assert found[metric.name, one] is not None
        assert found[metric.name, other] is None and found[metric.name, ""] is None


@pytest.mark.parametrize(
    ("text", "said"),
    [
        (
            "iperf3: error - unable to start listener\n",
            "server/background-udp-received.txt: not the output of iperf3 -s: 'iperf3: error",
        ),
        ("Server listening on 2122\n[  5]   0.00-1.00   sec  fast\n", "not an interval: .*fast"),
        ("Server listening on 2122\n[  5]   0.00-1.00   sec  1.2 MBytes  1.2 Mbits/sec  0.1 ms  0/8 (0%)\n", "not an interval"),
        ("Server listening on 2122\n[  5]   0.00-1.00   sec  1.2 MBytes  nan Kbits/sec  0.1 ms  0/8 (0%)\n", "nan kbit/s"),
    ],
)
def test_a_report_that_is_none_is_an_error_with_its_text(text: str, said: str, tmp_path: Path) -> None:
    (tmp_path / "server").mkdir()
    (tmp_path / "server" / UDP_REPORT).write_text(text)
    with pytest.raises(ValueError, match=said):
        traffic.extract(TrafficParams(udp=1), tmp_path)


@given(
    st.sampled_from([HTTP_REPORT, TCP_REPORT, UDP_REPORT]),
    st.integers(0, 10_000),
    st.integers(0, 10_000),
    st.binary(max_size=9),
)
def test_a_damaged_report_makes_numbers_or_an_error_that_extraction_knows(
    tmp_path_factory: pytest.TempPathFactory, name: str, cut: int, at: int, put: bytes
) -> None:
    whole = (GOLDEN / "run" / ("client" if name == HTTP_REPORT else "server") / name).read_bytes()[: cut + 1]
    at %= len(whole)
    place = tmp_path_factory.mktemp("damaged") / "place"
    place.mkdir()
    (place / name).write_bytes(whole[:at] + put + whole[at + len(put) :])
    level = {HTTP_REPORT: "http", TCP_REPORT: "tcp", UDP_REPORT: "udp"}[name]
    try:
        values = traffic.extract(TrafficParams.model_validate({level: 1}), place.parent).values
    except UNREADABLE:
        return
    assert all(each.value is None or math.isfinite(each.value) for each in values)
