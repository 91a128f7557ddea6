"""Delay, jitter and loss by a program of twinbed's: what was asked is done, read back and measured, and what is not is found.

irtt measures delays and losses, as in every link check; the kernel's counters of the devices say what was dropped.
"""

from __future__ import annotations

import contextlib
import json
import os
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

import pytest

from twinbed import design, linkcheck
from twinbed.contracts.bed import Bed
from twinbed.contracts.site import Site
from twinbed.hosts.agent import AgentHost
from twinbed.hosts.error import HostError
from twinbed.links import delay_line
from twinbed.links.abilities import abilities, every, needed
from twinbed.links.delay_line import DelayLine
from twinbed.model.caution import Kind
from twinbed.model.linkcheck import Verdict
from twinbed.model.topology import Link, Topology
from twinbed.registry import PLUGINS, catalogue
from twinbed.study.loading import load
from twinbed.study.run import Run

pytestmark = [pytest.mark.privileged, pytest.mark.skipif(os.geteuid() != 0, reason="makes namespaces")]

Place = Callable[..., Site]
STUDY = """
study: far
testbeds: {{bed: {{driver: container}}}}
workload: {{kind: http, duration: 1s, max_requests: 5}}
topology: {topology}
instruments: []
replicates: 1
"""


def a_run(topology: str) -> Run:
    return design.runs(load(STUDY.format(topology=topology), "far.yaml", catalogue()))[0]


@contextlib.contextmanager
def up(run: Run, site: Site) -> Iterator[Bed]:
    driver = PLUGINS.drivers[run.testbed.kind]
    with driver.up(run.testbed.params, run.topology, site) as bed:
        yield bed


@pytest.mark.parametrize(
    ("asked", "really", "out"),
    [
        ({"delay": 0.03, "jitter": 0.01, "loss": 0.05}, {}, set()),
        # With a loss packets are sent for two seconds, all of which no pause of a busy machine takes.
        ({"delay": 0.03, "loss": 0.01}, {"delay": 0.06}, {"delay"}),
        ({"delay": 0.03, "loss": 0.01}, {"delay": 0.02}, {"delay"}),
        ({"loss": 0.001}, {"loss": 0.05}, {"loss"}),
        (
            # So far apart that no pause of a busy machine looks like it: within the 0.4 s in which packets are sent, one makes
            # the quartiles of their delays no farther apart than 0.2 s, and it lasts no two seconds.
            {"delay": 0.9, "jitter": 0.29, "loss": 0.2},
            {"delay": 0.01, "jitter": None, "loss": None},
            {"delay", "jitter", "loss"},
        ),
    ],
    ids=["as asked", "twice", "less", "lossy", "none of it"],
)
def test_the_link_check_measures_what_the_line_does(
    asked: dict[str, float],
    really: dict[str, float | None],
    out: set[str],
    site: Place,
    monkeypatch: pytest.MonkeyPatch,
    leaves_nothing: None,
) -> None:
    link = ", ".join(f"{name}: {value}{'s' if name != 'loss' else ''}" for name, value in asked.items())
    run, place = a_run(f"{{link: {{{link}, emulator: delay-line}}}}"), site()
    original = delay_line.start

    def start(machine: AgentHost, link: Link, ports: Sequence[str]) -> DelayLine:
        return original(machine, link.model_copy(update=really), ports)

    if really:
        monkeypatch.setattr(delay_line, "start", start)
    with up(run, place) as bed:
        assert all(item.agrees for item in bed.applied)
        check = linkcheck.measure(run, bed, place)
    assert check is not None
    wrong = {figure.quantity for figure in check.figures if figure.verdict is Verdict.OUT}
    # Where other work holds all CPUs, every answer may come too late: the check says that it counted none, and finds nothing.
    uncounted = {figure.quantity for figure in check.figures if figure.note.startswith("no packet")}
    assert out - uncounted <= wrong <= out, f"{check.reason} {check.figures}"


def test_what_was_set_is_read_back_and_what_it_did_is_told(site: Place, leaves_nothing: None) -> None:
    run, place = a_run("{link: {rate: 50mbit, delay: 5ms, jitter: 1ms, loss: 1%, queue: 700, emulator: delay-line}}"), site()
    with up(run, place) as bed:
        found = {(item.subject, item.setting): item.found for item in bed.applied}
        of_port = {
            setting: found["p.client", setting] for setting in ("emulator", "delay", "jitter", "loss", "queue", "redirect")
        }
        assert of_port == {
            "emulator": "delay-line",
            "delay": 0.005,
            "jitter": 0.001,
            "loss": 0.01,
            "queue": 700,
            "redirect": ["f.client"],
        }
        assert found["n.client", "master"] == "switch0" and found["p.client", "shaper"] == "htb"
        assert bed.passport["machine"]["emulator"] == "delay-line"
        assert not bed.troubles()
        (caution,) = bed.at_end()
        assert caution.kind is Kind.DELAY_LINE and "late by up to" in caution.detail
    set_, ended = map(json.loads, (place.place("machine") / delay_line.FILE).read_text().splitlines())
    assert set_["lines"] == [["f.client", "p.client"], ["f.server", "p.server"]]
    assert [line["to"] for line in ended] == ["p.client", "p.server"]


def test_segments_that_a_nic_would_cut_pass_as_they_are(site: Place, leaves_nothing: None) -> None:
    """As they do on a veth pair: 40 MB are far fewer frames than packets of 1,500 bytes."""
    run, place = a_run("{link: {delay: 1ms, emulator: delay-line}}"), site()
    with up(run, place) as bed:
        server = bed.hosts["server"].start(["iperf3", "-s", "-1", "--forceflush"])
        server.says(b"listening", 30.0)
        sent = bed.hosts["client"].run(["iperf3", "-c", bed.addresses["server"], "-n", "40M", "-J"], limit_s=60.0)
        server.wait(30.0)
        bed.at_end()
    assert json.loads(sent.stdout)["end"]["sum_received"]["bytes"] > 30e6
    ended = json.loads((place.place("machine") / delay_line.FILE).read_text().splitlines()[-1])
    (to_server,) = (line for line in ended if line["to"] == "p.server")
    assert to_server["missed"] == 0 and 40e6 / 65536 * 0.9 < to_server["arrived"] < 40e6 / 1448 / 2


def test_a_line_that_ends_fails_the_run(site: Place, leaves_nothing: None) -> None:
    run, place = a_run("{link: {delay: 1ms, emulator: delay-line}}"), site()
    find = 'for it in /proc/[0-9]*; do grep -qsz "^delay$" $it/cmdline && kill -9 ${it#/proc/}; done; true'
    with up(run, place) as bed:
        bed.hosts["machine"].run(["sh", "-c", find])
        with pytest.raises(HostError, match="machine: the delay line failed"):
            bed.at_end()
        assert bed.troubles() == ["machine: the delay line ended: it printed nothing"]


@pytest.mark.parametrize(
    "topology",
    [
        "{trunk: plain, link: {delay: 1ms, emulator: delay-line}}",
        "{pairs: 2, switch: openvswitch-netdev, vlan: 7, link: {delay: 1ms, emulator: delay-line}}",
    ],
)
def test_every_machine_and_port_has_its_line(topology: str, site: Place, leaves_nothing: None) -> None:
    run, place = a_run(topology), site()
    with up(run, place) as bed:
        assert all(item.agrees for item in bed.applied)
        ports = {item.subject for item in bed.applied if item.setting == "emulator"}
        assert ports == {f"p.{host}" for pair in run.topology.names() for host in pair}
        for client, server in run.topology.names():
            bed.hosts[client].run(
                ["sh", "-c", f"echo | timeout 20 bash -c 'exec 3<>/dev/tcp/{bed.addresses[server]}/1' 2>&1 | grep refused"]
            )


def test_without_netem_a_study_that_asks_for_a_delay_gets_a_line(probe: Path, site: Place, leaves_nothing: None) -> None:
    by_name = {ability.what: ability for ability in every()}
    (netem,) = abilities(probe, [by_name["netem"]])
    asked = Topology(link=Link(delay=0.001))
    checks = abilities(probe, needed(asked), required=True)
    assert all(check.works for check in checks) and "netem or delay line" in [check.what for check in checks]
    with up(a_run("{link: {delay: 1ms}}"), site()) as bed:
        assert bed.passport["machine"]["emulator"] == ("netem" if netem.works else "delay-line")
