"""Background traffic beside real runs: it takes its part of what it shares with the workload, and of nothing else."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

from click.testing import CliRunner

from twinbed import design
from twinbed.cli.extraction import extracted
from twinbed.cli.plan import command as plan_command
from twinbed.cli.run import command as run_command
from twinbed.contracts.site import Site
from twinbed.lab.execution import Outcome, execute
from twinbed.registry import PLUGINS, catalogue
from twinbed.study.loading import load
from twinbed.study.run import Run

Values = dict[tuple[str, str], float | None]
"""(metric, host) -> value, of what has no direction."""


def one_run(more: str, duration: str = "6s") -> Run:
    """So long that a busy machine, which halts a program for two seconds, leaves it most of what it would carry."""
    text = f"""
study: busy
testbeds: {{bed: {{driver: container}}}}
workload: {{kind: iperf3, duration: {duration}}}
replicates: 1
{more}
"""
    (run,) = design.runs(load(text, "busy.yaml", catalogue()))
    return run


def measured(run: Run, site: Site) -> Values:
    """What the workload and all beside it measured. No load ended early."""
    outcome = Outcome()
    execute(run, PLUGINS, site, outcome, lambda _: None)
    assert [caution for caution in outcome.cautions if caution.kind.name == "BACKGROUND_ENDED"] == []
    workload = PLUGINS.workloads[run.workload.kind]
    values = list(workload.parse(run.workload.params, site.artifacts).values)
    for choice in run.accompanying():
        values += PLUGINS.accompanying[choice.kind].extract(choice.params, site.artifacts).values
    return {(value.metric, value.host): value.value for value in values if not value.direction}


def test_traffic_on_the_workloads_own_link_takes_its_part(tmp_path: Path, leaves_nothing: None) -> None:
    """Of 40 Mbit/s, 20 of UDP that does not give way leave TCP about 20; more while a busy machine keeps the UDP waiting."""
    (tmp_path / "busy.yaml").write_text("""
study: busy
testbeds: {bed: {driver: container}}
topology: {link: {rate: 40mbit}}
workload: {kind: iperf3, duration: 6s}
background: {stress: {where: machine}, traffic: {on: pairs}}
factors: {background.traffic.udp: [0, 20mbit]}
instruments: [packets]
replicates: 1
""")
    planned = CliRunner().invoke(plan_command, [str(tmp_path / "busy.yaml")])
    assert "background  stress, traffic\n" in planned.output
    results = tmp_path / "results"
    done = CliRunner().invoke(run_command, [str(tmp_path / "busy.yaml"), "-o", str(results)], standalone_mode=False)
    assert done.exception is None and not done.return_value, done.output
    store = extracted(results)
    levels = {record.id: record.levels["background.traffic.udp"] for record in store.records}
    found: dict[Any, Values] = {0: {}, "20mbit": {}}
    for row in store.table("metrics").to_pylist():
        if not row["direction"]:
            found[levels[row["run"]]][row["metric"], row["host"]] = row["value"]
    without, beside = found[0], found["20mbit"]
    assert (without["goodput", ""] or 0) > 20e6
    assert 0 < (beside["goodput", ""] or 0) < 28e6
    assert (beside["background_udp_goodput", "server"] or 0) > 10e6
    assert without["connections", ""] == beside["connections", ""] == 2, "iperf3's own two, and none of the load's"
    assert ("background_udp_goodput", "") not in without
    assert {name for name, _ in beside if name.startswith("background_")} == {"background_udp_goodput", "background_udp_loss"}
    folders = {levels[path.name]: path for path in (results / "runs").iterdir()}
    assert list(folders[0].rglob("background-*")) == []
    assert "<dt>Background</dt><dd>stress, traffic</dd>" in (results / "report.html").read_text()


def test_bystanders_take_part_of_a_stars_uplink_and_of_nothing_else(site: Callable[..., Site], leaves_nothing: None) -> None:
    """Links of 40 Mbit/s. An uplink of 40 is shared with 30 of bystanders' UDP; one of 400 is not felt."""
    found = {}
    for uplink in ("40mbit", "400mbit"):
        run = one_run(f"""
topology: {{kind: star, pairs: 1, bystanders: 2, uplink: {uplink}, link: {{rate: 40mbit}}}}
background: {{kind: traffic, udp: 15mbit, on: bystanders}}
instruments: [packets, counters]
""")
        place = site(uplink)
        found[uplink] = measured(run, place)
        places = {path.name for path in place.artifacts.iterdir()}
        assert {"client", "server", "otherclient1", "otherserver1", "otherclient2", "otherserver2"} < places
        assert {path.stem for path in place.artifacts.rglob("*.pcap")} == {"client", "server"}
        assert {path.parent.name for path in place.artifacts.rglob("counters.snap")} == {"machine", "client", "server"}
    narrow, wide = found["40mbit"], found["400mbit"]
    assert 0 < (narrow["goodput", ""] or 0) < 20e6
    assert (wide["goodput", ""] or 0) > 20e6
    assert (wide["background_udp_goodput", ""] or 0) > 10e6
    assert narrow["connections", ""] == wide["connections", ""] == 2


def test_bystanders_are_shaped_and_read_back_as_pairs_are(site: Callable[..., Site], leaves_nothing: None) -> None:
    outcome = Outcome()
    run = one_run("topology: {bystanders: 1, link: {rate: 40mbit, mtu: 1400}}\n", duration="1s")
    execute(run, PLUGINS, site(), outcome, lambda _: None)
    settings: dict[str, set[tuple[str, str]]] = {}
    for item in outcome.applied:
        assert item.agrees
        settings.setdefault(item.subject, set()).add((item.setting, str(item.found)))
    names = {
        host: {setting for setting, _ in settings[host]} for host in ("client", "otherclient1", "p.server", "p.otherserver1")
    }
    assert names["client"] == names["otherclient1"] and names["p.server"] == names["p.otherserver1"]
    assert {"shaper", "rate"} <= names["p.otherserver1"]
    assert "otherserver1" in outcome.passport


def test_all_kinds_at_once_run_beside_each_workload_without_a_clash(site: Callable[..., Site], leaves_nothing: None) -> None:
    """On the same hosts: the workload's iperf3 and the load's, the workload's nginx and the load's; stress-ng beside one."""
    stress = "stress: {cpu: 1, where: servers}, "
    for workload, more in (("{kind: iperf3, duration: 2s}", ""), ("{kind: http, tool: wrk, duration: 2s}", stress)):
        text = f"""
study: busy
testbeds: {{bed: {{driver: container}}}}
topology: {{pairs: 2, bystanders: 1, link: {{rate: 50mbit}}}}
workload: {workload}
background: {{{more}traffic: {{http: 2, tcp: 2, udp: 1mbit, on: pairs}}}}
replicates: 1
"""
        (run,) = design.runs(load(text, "busy.yaml", catalogue()))
        found = measured(run, site(run.workload.kind))
        # Not its rate, which is null where a busy server began its clock late.
        work = PLUGINS.workloads[run.workload.kind].work
        assert all((found[work, host] or 0) > 0 for host in ("", "client1", "client2"))
        assert all((found["background_http_rate", host] or 0) > 0 for host in ("", "client1", "client2"))
        for metric in ("background_tcp_goodput", "background_udp_goodput"):
            assert all((found[metric, host] or 0) > 0 for host in ("", "server1", "server2"))
        if more:
            assert all((found["background_cpu_rate", host] or 0) > 0 for host in ("server1", "server2"))
