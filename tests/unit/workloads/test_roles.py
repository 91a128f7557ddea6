"""Roles of the workload ``command``: texts for own and other hosts, the order of start, wrong studies, and what is read."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import pytest

from twinbed import registry
from twinbed.links.layout import layout
from twinbed.model.event import Event
from twinbed.model.role_texts import filled_in, of_host, places, texts
from twinbed.model.template import TemplateError
from twinbed.model.topology import Topology, topology_of
from twinbed.study.document import StudyError
from twinbed.study.loading import load
from twinbed.study.study import Study
from twinbed.workloads.command.params import CommandParams

COMMAND = registry.PLUGINS.workloads["command"]
HOSTS = {"load": ["load"], "node": ["node1", "node2"]}
KNOWN = {"size": "1KiB", **places(HOSTS), **of_host("node2", 2)}
NODE = "    node: {hosts: 2, run: [n], ready: {listening: 7000}}\n"
LOAD = "    load: {run: [l], after: [node]}\n"
METRICS = "  metrics: {rps: {read: load.stdout, regex: 'rps=([0-9.]+)', unit: 1/s, rate: true}}\n"

ROLES = f"  roles:\n{NODE}{LOAD}"


def event(settings: str) -> str:
    return f"{ROLES}  events: [{{{settings}}}]\n"


def study(workload: str, more: str = "", metrics: str = METRICS) -> Study:
    text = f"study: mine\ntestbeds: {{container: {{driver: container}}}}\nworkload:\n  kind: command\n{workload}{metrics}{more}"
    return load(text, "my.yaml", registry.catalogue())


def params(**settings: object) -> CommandParams:
    roles = {
        "load": {"run": ["l", "{node1}"], "after": ["node"]},
        "node": {"hosts": 2, "run": ["n", "{name}"], "ready": {"listening": 7000}, "after": ["store"]},
        "store": {"run": ["s"], "ready": {"after": 1}},
    }
    metrics = {"rps": {"read": "load.stdout", "regex": "rps=([0-9.]+)", "unit": "1/s", "rate": True}}
    return CommandParams.model_validate({"roles": roles, "metrics": metrics, **settings})


@pytest.mark.parametrize(
    ("text", "arguments"),
    [
        ("{name}:{number}", ["node2:2"]),
        ("{address}", ["{address:node2}"]),
        ("{node1}", ["{address:node1}"]),
        ("{size.bytes}", ["1024"]),
        ("{each node: {name}=http://{address}:2380}", ["node1=http://{address:node1}:2380,node2=http://{address:node2}:2380"]),
        ("--all={each node by space: {name}}!", ["--all=node1 node2!"]),
        ("{each node by ;: {name}/{size.kib}}", ["node1/1;node2/1"]),
        ("{each node by argument: {number}:{address}}", ["1:{address:node1}", "2:{address:node2}"]),
        ("{{name}}", ["{name}"]),
    ],
)
def test_a_text_stands_for_own_and_other_hosts(text: str, arguments: list[str]) -> None:
    assert [*texts(text, KNOWN, HOSTS)] == arguments


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("{each nodes: {name}}", "{each nodes: ...}: nodes is no role"),
        ("x{each node by argument: {name}}", "by argument needs an argument of its own"),
        ("{each node: {nam}}", "{nam} is not known"),
        ("{node}", "{node} is not known"),
        ("{each node {name}}", "has a brace without its other"),
    ],
)
def test_a_wrong_text_is_told(text: str, reason: str) -> None:
    with pytest.raises(TemplateError, match=reason.replace("{", r"\{").replace("}", r"\}")):
        filled_in(text, KNOWN, HOSTS)


def test_hosts_get_addresses_in_order_and_every_link_is_an_end_of_a_pair() -> None:
    topology = params().hosts_on(Topology(bystanders=1))
    assert topology.names() == (("load", "node1"), ("load", "node2"), ("load", "store")), "what ends comes first"
    assert layout(topology).addresses == {
        "load": "10.77.0.1",
        "node1": "10.77.0.2",
        "node2": "10.77.0.3",
        "store": "10.77.0.4",
        "otherclient1": "10.77.1.1",
        "otherserver1": "10.77.1.2",
    }
    assert {nics[0].switch for nics in layout(topology).nics.values()} == {"switch0"}
    assert topology_of(topology.model_dump(mode="json"), strict=True) == topology, "a record gives it back"


def test_programs_start_in_the_order_of_readiness() -> None:
    plan = COMMAND.plan(params(), [])
    assert [(command.host, command.round) for command in plan.servers] == [("node1", 1), ("node2", 1), ("store", 0)]
    assert [(command.host, command.argv, command.stdout) for command in plan.clients] == [
        ("load", ("l", "{address:node1}"), "role-load.txt")
    ]
    assert all(command.ready is not None for command in plan.servers)


@pytest.mark.parametrize(
    ("workload", "problem"),
    [
        ("", "workload: needs either client, perhaps with server, or roles"),
        (f"  client: {{run: [a]}}\n{ROLES}", "workload: needs either client, perhaps with server, or roles"),
        (f"  roles:\n{LOAD}", "workload.roles: has 1 host; allowed: from 2 to 80 hosts together"),
        (f"  roles:\n{NODE}", "workload.roles: no program ends, so the run would not"),
        (ROLES.replace("[node]", "[nodes]"), "7:29: workload.roles.load.after: nodes is no role; allowed: node, load"),
        (ROLES.replace("[node]", "[load]"), "load is never ready: it runs to its end"),
        (ROLES.replace("run: [n]", "run: [n], after: [node]"), "workload.roles: wait for each other: node"),
        (ROLES.replace("[n]", "[n, 1, '{nam}']"), "6:34: workload.roles.node.run[2]: {nam} is not known"),
        (ROLES.replace("node", "machine"), "workload.roles.machine: is a name that twinbed uses itself"),
        (f"  settings: {{node1: 1}}\n{ROLES}", "workload.settings.node1: {node1} has a meaning of its own"),
        (event("kill: node3, after: 1s"), "workload.events[0].kill: node3 is no host; allowed: load, node1, node2"),
        (event("kill: node1"), "workload.events[0]: does not say when"),
        (event("after: 1s"), "workload.events[0]: needs exactly one of kill, stop, continue, link_down, link_up"),
        (event("kill: node1, after: 1s, nth: 3"), "pattern and nth need output: HOST"),
        (event("kill: node1, output: lod"), "workload.events[0].output: lod is no host"),
        (event("kill: node1, output: load, pattern: '('"), "workload.events[0].pattern: '(' is no pattern"),
        (event("kill: '{matched}', output: load, pattern: a"), "workload.events[0].pattern: names no host"),
    ],
)
def test_a_wrong_study_is_told_with_its_place(workload: str, problem: str) -> None:
    with pytest.raises(StudyError) as error:
        study(workload)
    assert problem in "\n".join(map(str, error.value.problems))


def test_metrics_and_topologies_that_roles_cannot_have_are_told() -> None:
    with pytest.raises(StudyError, match=r"workload\.metrics\.rps\.read: there is no lod; allowed: node\.stdout"):
        study(ROLES, metrics=METRICS.replace("load", "lod"))
    with pytest.raises(StudyError, match=r"workload\.roles: hosts of roles are on one switch: leave kind, pairs"):
        study(ROLES, "topology: {pairs: 2}\n")


def test_a_name_in_a_text_for_each_host_may_be_a_factor() -> None:
    text = f"  roles:\n{NODE}{LOAD.replace('[l]', '[l, ' + chr(34) + '{each node: {address}/{size}}' + chr(34) + ']')}"
    cells = study(text, "factors: {size: [1KiB, 2KiB]}\n").cells
    assert [COMMAND.plan(cell.workload.params, []).clients[0].argv[1] for cell in cells] == [
        f"{{address:node1}}/{size},{{address:node2}}/{size}" for size in ("1KiB", "2KiB")
    ]
    assert [cell.topology.role_hosts for cell in cells] == [("load", "node1", "node2")] * 2


def test_an_event_says_what_and_when() -> None:
    event = Event.model_validate({"continue": "node1", "output": "load", "pattern": "ok", "nth": 3, "after": "2s"})
    assert (event.action, event.host) == ("continue", "node1")
    assert str(event) == "continue node1, 2 s after line 3 of load with 'ok'"
    assert Event.model_validate(event.model_dump(mode="json")) == event


def artifacts(folder: Path, texts: Mapping[str, str]) -> Path:
    for name, text in texts.items():
        (folder / name).parent.mkdir(exist_ok=True)
        (folder / name).write_text(text)
    return folder


def test_values_of_one_host_are_the_runs_and_those_of_several_each_hosts(tmp_path: Path) -> None:
    metrics = {
        "rps": {"read": "load.stdout", "regex": "rps=([0-9.]+)", "unit": "1/s", "rate": True},
        "served": {"read": "node.stdout", "regex": "served ([0-9]+)", "together": "sum"},
        "slowest": {"read": "node.file:times", "values": True, "take": "max", "unit": "ms"},
        "usual": {"read": "node.file:times", "values": True, "take": "min", "unit": "ms"},
    }
    there = {
        "load/role-load.txt": "rps=5\n",
        **{f"node{at}/role-node.txt": f"served {at}\n" for at in (1, 2)},
        **{f"node{at}/times": f"{at}\n1\n" for at in (1, 2)},
    }
    extracted = COMMAND.parse(params(metrics=metrics), artifacts(tmp_path, there))
    assert {(value.metric, value.host): value.value for value in extracted.values} == {
        ("rps", ""): 5.0,
        ("served", "node1"): 1.0,
        ("served", "node2"): 2.0,
        ("served", ""): 3.0,
        ("slowest", "node1"): 0.001,
        ("slowest", "node2"): 0.002,
        ("usual", "node1"): 0.001,
        ("usual", "node2"): 0.001,
    }
    hosts = extracted.tables["requests"]["host"].to_pylist()
    assert hosts == ["node1", "node1", "node2", "node2"], "a request is a row, whatever metrics read it"
