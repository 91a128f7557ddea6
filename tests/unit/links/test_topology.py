"""What of a link is made where, how long its queue must be, and what a study file is told of settings that clash."""

from __future__ import annotations

import pytest

from twinbed import design
from twinbed.links import shaping
from twinbed.model.topology import Link, Place, Topology
from twinbed.registry import catalogue
from twinbed.study.document import StudyError
from twinbed.study.loading import load

EVERYTHING = {"rate": 10**8, "burst": 80_000, "delay": 0.01, "jitter": 0.002, "loss": 0.01, "queue": 500}
PLACES: tuple[Place, ...] = ("switch", "hosts", "routers")


@pytest.mark.parametrize("emulated_at", PLACES)
def test_each_setting_is_made_at_one_place(emulated_at: Place) -> None:
    link = Link.model_validate({**EVERYTHING, "emulated_at": emulated_at})
    parts = {place: link.at(place) for place in PLACES}
    for setting in ("delay", "jitter", "loss"):
        having = [place for place, part in parts.items() if getattr(part, setting) is not None]
        assert having == [emulated_at], setting
    for setting in ("rate", "burst"):
        assert [place for place, part in parts.items() if getattr(part, setting) is not None] == ["switch"], setting
    assert parts["switch"].queue == 500, "the shaper's queue stays at the shaper"
    assert [place for place, part in parts.items() if place != "switch" and shaping.plan("eth0", part)] == (
        [] if emulated_at == "switch" else [emulated_at]
    )


@pytest.mark.parametrize("place", ["hosts", "routers"])
def test_a_link_that_is_only_shaped_leaves_hosts_and_routers_alone(place: Place) -> None:
    assert shaping.plan("eth0", Link(rate=10**8, queue=500, emulated_at=place).at(place)) == ""


@pytest.mark.parametrize(
    ("settings", "packets"),
    [
        ({}, None),
        ({"queue": 7}, 7),
        ({"rate": 10**9}, None),
        ({"loss": 0.01}, 1000),
        ({"delay": 0.001, "rate": 10**6}, 1000),
        # 1 Gbit/s for 60 ms is 7.5 MB, or 5,000 packets of 1500 bytes on their way; twice that may wait.
        ({"delay": 0.06, "rate": 10**9}, 10_000),
        ({"delay": 0.06, "rate": 10**9, "queue": 7}, 7),
        # Without a rate, 10 Gbit/s is taken: 12.5 MB in 10 ms.
        ({"delay": 0.01}, 16_667),
        ({"delay": 0.06, "rate": 10**9, "mtu": 750}, 20_000),
    ],
)
def test_the_queue_holds_what_is_on_its_way_twice(settings: dict[str, object], packets: int | None) -> None:
    assert Link.model_validate(settings).queue_packets == packets


@pytest.mark.parametrize(
    ("settings", "burst"),
    [({}, None), ({"rate": 10**6}, 66_560), ({"rate": 10**10}, 1_250_000), ({"rate": 10, "burst": 99}, 99)],
)
def test_the_burst_in_force(settings: dict[str, object], burst: int | None) -> None:
    assert Link.model_validate(settings).burst_bytes == burst


def test_routers_are_named_from_the_clients_side() -> None:
    assert Topology(routers=1).router_names() == ("router",)
    assert Topology(routers=3).router_names() == ("router1", "router2", "router3")
    assert Topology().router_names() == ()


STUDY = """
study: links
testbeds: {{bed: {{driver: container}}}}
workload: {{kind: http, duration: 1s}}
topology: {topology}
{factors}
replicates: 1
"""


def message(topology: str) -> str:
    with pytest.raises(StudyError) as error:
        load(STUDY.format(topology=topology, factors=""), "links.yaml", catalogue())
    return str(error.value)


@pytest.mark.parametrize(
    ("topology", "says"),
    [
        ("{link: {jitter: 1ms}}", "jitter varies the delay both ways: set a delay at least as long"),
        ("{link: {delay: 1ms, jitter: 2ms}}", "jitter varies the delay both ways"),
        (
            "{link: {rate: 500bit, burst: 66560}}",
            "a burst of 66560 bytes at 500 bit/s takes longer than the 274 s that tc can count: set a rate of",
        ),
        ("{link: {rate: 1943bit, burst: 66560}}", "set a rate of at least 1944bit, or a smaller burst"),
        ("{link: {rate: 1mbit, burst: 40MiB}}", "a burst of 41943040 bytes at 1000000 bit/s takes longer than the 274 s"),
        (
            "{link: {rate: 1mbit, shaper: tbf, burst: 1513}}",
            "a burst of at least 1514 bytes for an mtu of 1500, or shaper: htb",
        ),
        ("{link: {delay: 1ms, emulated_at: routers}}", "emulated_at: routers needs at least one router"),
        ("{trunk: vxlan, routers: 1}", "a trunk joins two switches of one network"),
        ("{pairs: 2, client_machines: 2}", "a trunk joins each to the servers' machine: set one, such as trunk: plain"),
        ("{kind: star, pairs: 2, client_machines: 2}", "a trunk joins each to the servers' machine"),
        ("{pairs: 2, trunk: plain, client_machines: 3}", "3 machines for 2 clients: each needs at least one"),
        ("{trunk: plain, client_machines: 2}", "2 machines for 1 client: each needs at least one"),
        ("{trunk: plain, client_machines: 0}", "client_machines"),
        ("{link: {loss: 120%}}", "loss"),
        ("{link: {rate: fast}}", "rate"),
        ("{link: {emulated_at: swich}}", "switch"),
        ("{routers: 17}", "routers"),
    ],
)
def test_what_cannot_be_is_said_with_its_line(topology: str, says: str) -> None:
    said = message(topology)
    assert says in said
    assert "links.yaml:5:" in said, said


def test_settings_of_a_link_are_factors_and_null_is_a_level() -> None:
    factors = "factors: {topology.link.delay: [null, 0ms, 10ms], topology.link.rate: [null, 100mbit]}"
    topology = "{routers: 1, link: {emulated_at: routers}}"
    runs = design.runs(load(STUDY.format(topology=topology, factors=factors), "links.yaml", catalogue()))
    found = {(run.topology.link.delay, run.topology.link.rate) for run in runs}
    assert found == {(delay, rate) for delay in (None, 0.0, 0.01) for rate in (None, 10**8)}
    assert len({run.cell for run in runs}) == 6


def test_machines_of_clients_are_a_factor_of_every_driver() -> None:
    text = STUDY.format(topology="{pairs: 4, trunk: vxlan}", factors="factors: {client_machines: [1, 2, 4]}")
    for driver in ("container", "fake"):
        study = text.replace("driver: container", f"driver: {driver}")
        runs = design.runs(load(study, "links.yaml", catalogue()))
        assert sorted(run.topology.client_machines for run in runs) == [1, 2, 4]


@pytest.mark.parametrize(("rate", "burst"), [(10**9, 125_000), (10**6, 66_560), (1944, 66_560), (1943, 66_308), (500, 16_988)])
def test_a_default_burst_is_one_that_tc_can_count(rate: int, burst: int) -> None:
    """1 ms, at least 65 KiB, at most 274 s at the rate in whole bytes: tc prints the last two as they are here."""
    assert Link(rate=rate).burst_bytes == burst
