"""Links that do not do what was asked of them, and say that they do: the link check finds each, before anything is measured."""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pytest

from twinbed import design, linkcheck
from twinbed.contracts.site import Installed, Site
from twinbed.hosts.agent import AgentHost, Running
from twinbed.image import Image
from twinbed.lab.execution import Outcome, RunFailed, execute
from twinbed.lab.study import Ending, Event, PhaseBegan, carry_out
from twinbed.links import network, shaping
from twinbed.model.caution import Kind
from twinbed.model.linkcheck import LinkCheck, Verdict
from twinbed.model.run import Phase
from twinbed.model.topology import Link
from twinbed.registry import PLUGINS, catalogue
from twinbed.results.folder import Folder
from twinbed.study.loading import load
from twinbed.study.run import Run

STUDY = """
study: links
testbeds: {{bed: {bed}}}
workload: {{kind: http, duration: 1s, max_requests: 5}}
topology: {{link: {link}}}
instruments: []
replicates: 2
"""
ROUTED = "{driver: mixed, client: {driver: container}, server: {driver: container}, router: {driver: qemu, cpus: none}}"


def a_run(link: str, bed: str = "{driver: container}") -> Run:
    return design.runs(load(STUDY.format(bed=bed, link=link), "links.yaml", catalogue()))[0]


class Kept:
    """Checks, in memory."""

    def __init__(self) -> None:
        self.found: LinkCheck | None = None

    def of(self, run: Run) -> LinkCheck | None:
        return self.found

    def keep(self, check: LinkCheck) -> None:
        self.found = check


def check_of(run: Run, site: Site) -> tuple[LinkCheck, RunFailed | None]:
    kept = Kept()
    failure = None
    try:
        execute(run, PLUGINS, site, Outcome(), lambda _: None, kept)
    except RunFailed as error:
        failure = error
    assert kept.found is not None, failure
    return kept.found, failure


def lies(monkeypatch: pytest.MonkeyPatch, of: str, old: str, new: str) -> None:
    """What is asked of tc for devices named ``of`` and so on is changed on the way, and the read-back sees nothing of it."""
    original = shaping.plan

    def plan(device: str, link: Link) -> str:
        text = original(device, link)
        assert not text or old in text, text
        return text.replace(old, new) if device.startswith(of) else text

    monkeypatch.setattr(shaping, "plan", plan)
    monkeypatch.setattr(network, "applied_shaping", lambda *_: [])


def test_hosts_on_which_iperf3_starts_slowly_are_measured(
    site: Callable[..., Site], monkeypatch: pytest.MonkeyPatch, leaves_nothing: None
) -> None:
    """As in emulated guests: the first client of a host begins after 2.7 s, each later one after 0.7 s."""
    original, started = AgentHost.start, set[str]()

    def start(self: AgentHost, argv: Sequence[str], **rest: Any) -> Running:
        if list(argv[:2]) == ["iperf3", "-c"]:
            delay = "0.7" if self.name in started else "2.7"
            started.add(self.name)
            argv = ["sh", "-c", 'sleep "$0"; exec "$@"', delay, *argv]
        return original(self, argv, **rest)

    monkeypatch.setattr(AgentHost, "start", start)
    check, failure = check_of(a_run("{rate: 100mbit}"), site())
    assert failure is None
    assert {figure.quantity for figure in check.figures if figure.measured is None} == set()
    assert Kind.LINK_NOT_MEASURED not in {caution.kind for caution in check.cautions}


def wrong(check: LinkCheck) -> set[str]:
    return {figure.quantity for figure in check.figures if figure.verdict is Verdict.OUT}


@pytest.mark.parametrize(
    ("link", "old", "new", "quantities"),
    [
        # A flow that a busy machine halts in its second half is beyond the rate for a while only: that is a burst. A bucket
        # that is too large fills while it halts, and what then passes at once makes the rest of the flow too fast as well.
        ("{rate: 100mbit}", "100000000bit", "200000000bit", {"rate", "burst"}),
        ("{rate: 100mbit, shaper: tbf}", "100000000bit", "200000000bit", {"rate", "burst"}),
        # So slow that a window of TCP's keeps packets waiting at the shaper for a tenth of a second.
        ("{rate: 10mbit}", "10000000bit", "5000000bit", {"rate"}),
        ("{rate: 100mbit}", "66560b", "1000000b", {"rate", "burst"}),
        ("{rate: 512kbit}", "512000bit", "1024000bit", {"rate", "burst"}),
    ],
    ids=["twice-htb", "twice-tbf", "half", "burst", "twice-slow"],
)
def test_a_shaper_that_lies_is_found(
    link: str,
    old: str,
    new: str,
    quantities: set[str],
    site: Callable[..., Site],
    monkeypatch: pytest.MonkeyPatch,
    leaves_nothing: None,
) -> None:
    lies(monkeypatch, "", old, new)
    check, failure = check_of(a_run(link), site())
    assert failure is not None
    assert failure.phase == Phase.LINK_CHECK
    assert wrong(check) and wrong(check) <= quantities
    assert all(f"{quantity} should be " in failure.reason for quantity in wrong(check))


def test_superpackets_that_pass_a_small_burst_are_found(site: Callable[..., Site], leaves_nothing: None) -> None:
    """Nothing lies here: HTB sends a joined packet of 64 KB as one as soon as it has any tokens."""
    check, failure = check_of(a_run("{rate: 100mbit, burst: 3000B}"), site())
    assert failure is not None
    assert wrong(check) == {"burst"}
    assert "switch tso and gso off" in failure.reason


def test_right_links_pass(site: Callable[..., Site], leaves_nothing: None) -> None:
    place = site()
    check, failure = check_of(a_run("{rate: 100mbit, shaper: tbf, burst: 3000B}", "{driver: container, offload: off}"), place)
    assert failure is None, failure
    assert wrong(check) == set()
    assert {figure.quantity for figure in check.figures} == {"rate", "burst"}
    rate = next(figure for figure in check.figures if figure.quantity == "rate")
    assert rate.measured is not None
    assert rate.measured < 102_500_000
    assert (place.artifacts / "machine" / "link-check.server.cap").stat().st_size > 1000, "the evidence is kept"


def test_a_link_that_is_too_slow_to_be_measured_is_no_failure(site: Callable[..., Site], leaves_nothing: None) -> None:
    check, failure = check_of(a_run("{rate: 10kbit}"), site())
    assert failure is None, failure
    assert {(figure.quantity, figure.measured, figure.verdict) for figure in check.figures} == {
        ("rate", None, Verdict.INCONCLUSIVE),
        ("burst", None, Verdict.INCONCLUSIVE),
    }
    assert [caution.kind for caution in check.cautions] == [Kind.LINK_NOT_MEASURED] * 2
    assert check.measured_pairs == []


def test_links_of_every_pair_are_measured(
    site: Callable[..., Site], monkeypatch: pytest.MonkeyPatch, leaves_nothing: None
) -> None:
    monkeypatch.setattr(linkcheck, "OTHERS_S", 40.0)  # however slow the machine
    lies(monkeypatch, "p.server3", "100000000bit", "200000000bit")
    check, failure = check_of(a_run("{rate: 100mbit}, pairs: 3"), site())
    assert failure is not None
    assert {figure.path for figure in check.figures if figure.verdict is Verdict.OUT} == {"client3 to server3"}
    assert (check.measured_pairs, check.pairs) == ([f"client{i} and server{i}" for i in (1, 2, 3)], 3)


def test_the_first_pair_is_measured_when_there_is_no_time_for_others(
    site: Callable[..., Site], monkeypatch: pytest.MonkeyPatch, leaves_nothing: None
) -> None:
    monkeypatch.setattr(linkcheck, "OTHERS_S", 0.0)
    check, failure = check_of(a_run("{rate: 100mbit}, pairs: 3"), site())
    assert failure is None, failure
    assert (check.measured_pairs, check.pairs) == (["client1 and server1"], 3)


def test_where_no_machine_has_ports_links_are_seen_on_the_hosts(site: Callable[..., Site], leaves_nothing: None) -> None:
    run, place = a_run("{rate: 50mbit}"), site()
    with PLUGINS.drivers["container"].up(run.testbed.params, run.topology, place) as bed:
        hosts = dataclasses.replace(bed, targets=[target for target in bed.targets if target.name in ("client", "server")])
        right = linkcheck.measure(run, hosts, place)
        assert right is not None
        assert right.reason is None
        half = run.topology.model_copy(update={"link": Link(rate=25_000_000)})
        leak = linkcheck.measure(dataclasses.replace(run, topology=half), hosts, place)
        assert leak is not None
        # As of any shaper that lies: where a busy machine halts the flow, it is beyond the rate for a while only.
        assert wrong(leak) and wrong(leak) <= {"rate", "burst"}
        assert linkcheck.measure(run, dataclasses.replace(bed, targets=[]), place) is None


def test_delay_jitter_and_loss_of_a_router(site: Callable[..., Site], leaves_nothing: None) -> None:
    """This machine's kernel may have no netem; a guest's has. One guest, in which netem is then changed behind our back."""
    place = site()
    run = a_run("{delay: 30ms, emulated_at: routers}, routers: 1", ROUTED)
    driver = PLUGINS.drivers[run.testbed.kind]
    with driver.up(run.testbed.params, run.topology, place) as bed:
        assert all(item.agrees for item in bed.applied)

        def found(asked: dict[str, Any], really: str) -> tuple[set[str], str]:
            lines = [f"qdisc del dev {nic} root\nqdisc add dev {nic} root {really}\n" for nic in ("eth0", "eth1")]
            bed.hosts["router"].run(["tc", "-batch", "-"], stdin="".join(lines).encode())
            link = Link(emulated_at="routers", **asked)
            topology = run.topology.model_copy(update={"link": link})
            check = linkcheck.measure(dataclasses.replace(run, topology=topology), bed, place)
            assert check is not None
            return wrong(check), f"{check.reason} {check.figures}"

        def held(asked: dict[str, Any], really: str, quantities: set[str]) -> None:
            out, why = found(asked, really)
            assert out == quantities, why

        everything = {"delay": 0.03, "jitter": 0.01, "loss": 0.05}
        held(everything, "netem limit 10000 delay 30ms 10ms loss random 5%", set())
        # With a loss packets are sent for two seconds, all of which no pause of a busy router takes.
        held({"delay": 0.03, "loss": 0.01}, "netem limit 10000 delay 60ms loss random 1%", {"delay"})
        held({"delay": 0.03, "loss": 0.01}, "netem limit 10000 delay 20ms loss random 1%", {"delay"})
        held({"loss": 0.001}, "netem limit 10000 loss random 5%", {"loss"})
        # A busy machine sends fewer probes: that one in five is lost, they show all the same. A router that stands still delays
        # those of 0.4 s neither by so much nor as differently. Of fewer than jitter takes, it cannot be told.
        out, why = found({"delay": 0.9, "jitter": 0.29, "loss": 0.2}, "pfifo limit 1000")
        assert out | {"jitter"} == {"delay", "jitter", "loss"}, why
        assert "jitter" in out or "packets came back" in why, why


@pytest.fixture
def carry(tmp_path: Path, probe: Path, image: Image) -> Callable[..., tuple[Ending, list[Event]]]:
    study = load(STUDY.format(bed="{driver: container}", link="{rate: 100mbit}"), "links.yaml", catalogue())

    def call(**options: Any) -> tuple[Ending, list[Event]]:
        folder, events = Folder(tmp_path / "results"), list[Event]()
        with folder.locked():
            runs = design.runs(study)
            return carry_out(study, runs, PLUGINS, folder, Installed(probe, image), events.append, **options), events

    return call


def phases(events: list[Event]) -> list[Phase]:
    return [event.phase for event in events if isinstance(event, PhaseBegan)]


def test_a_cell_is_measured_once_and_a_failure_holds_until_it_is_tried_again(
    carry: Callable[..., tuple[Ending, list[Event]]], tmp_path: Path, monkeypatch: pytest.MonkeyPatch, leaves_nothing: None
) -> None:
    with monkeypatch.context() as patch:
        lies(patch, "", "100000000bit", "200000000bit")
        ending, events = carry()
    assert (ending.complete, ending.failed) == (0, 2)
    assert phases(events) == [Phase.UP, Phase.CONFIGURE, Phase.LINK_CHECK], "the second run fails at once"
    results = tmp_path / "results"
    (kept,) = (results / "links").iterdir()
    reason = json.loads(kept.read_text())["reason"]
    records = [json.loads(file.read_text()) for file in results.glob("runs/*/run.json")]
    assert {record["failed_phase"] for record in records} == {"link-check"}
    assert all(record["reason"].startswith(reason) for record in records)

    assert carry()[0].made == 0

    ending, events = carry(retry_failed=True)
    assert (ending.complete, ending.failed) == (2, 0)
    assert phases(events).count(Phase.LINK_CHECK) == 1
    assert len(list((results / "failed").iterdir())) == 3, "two runs and the check"
    assert json.loads(kept.read_text())["reason"] is None
