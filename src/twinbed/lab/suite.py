"""The promises of every plugin, which `twinbed test-plugin` and the tests of this repository check alike.

``promises`` need no testbed. ``promises_of_run`` makes a run with a workload or an instrument, and ``promises_of_hosts`` uses
hosts that a driver made. A promise is a sentence and what is wrong about it; empty if it is kept.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, TypeAlias

from pydantic import BaseModel

from twinbed import design
from twinbed.contracts.bed import Bed, differences
from twinbed.contracts.command import Command
from twinbed.contracts.extracted import UNREADABLE, Extracted
from twinbed.contracts.format import Format, FormatError
from twinbed.contracts.place import MACHINE, Target
from twinbed.contracts.plugins import AnyAnalysis, AnyDriver, AnyInstrument, AnyWorkload, Plugins
from twinbed.contracts.site import Site
from twinbed.contracts.workload import Described
from twinbed.hosts.error import HostError, LimitExceeded, ProgramFailed
from twinbed.imports.text.source import File
from twinbed.lab.execution import Outcome, RunFailed, execute
from twinbed.metrics.metric import Metric, Value
from twinbed.study.catalogue import Catalogue
from twinbed.study.loading import load
from twinbed.study.run import Run

Promise: TypeAlias = tuple[str, str]
PAIRS = [("client1", "server1", "10.77.0.2"), ("client2", "server2", "10.77.1.2")]
TARGETS = [
    Target(MACHINE, {"p.client": "client", "p.server": "server"}, captures=True),
    Target("client", {"eth0": "client"}, servers={"server": "10.77.0.2"}),
    Target("server", {"eth0": "server"}, own_kernel=True, clients={"client": "10.77.0.1"}),
]
"""The places of an instrument."""
PORTS = {"server": [80]}
SHELLS = {"sh", "bash", "dash", "zsh", "busybox"}
_HEADS = (b"", b"\0" * 64, bytes(range(256)), b"no tool writes this\n" * 3)
"""First bytes that are of no format."""


def promises(kind: str, plugin: object, folder: Path) -> Iterator[Promise]:
    """Check what needs no testbed, of a plugin of a kind (``contracts.installed``); ``folder`` is empty and may be written."""
    check: Mapping[str, Callable[[Any, Path], Iterator[Promise]]] = {
        "drivers": _of_driver,
        "workloads": _of_workload,
        "instruments": _of_instrument,
        "formats": _of_format,
        "analyses": _of_analysis,
    }
    try:
        yield from check[kind](plugin, folder)
    except Exception as error:  # noqa: BLE001 - whatever a plugin raises is its author's to read
        yield "it raises nothing unexpected", f"{type(error).__name__}: {error}"


def typical(plugin: AnyWorkload) -> Any:
    """Return settings of a first study."""
    return plugin.params.model_validate(plugin.params.typical)


def planned(plugin: AnyWorkload) -> Sequence[Command]:
    plan = plugin.plan(typical(plugin), PAIRS)
    return [*plan.prepare, *plan.servers, *plan.warm_up, *plan.clients]


def _of_driver(plugin: AnyDriver, folder: Path) -> Iterator[Promise]:
    yield from _settings(plugin.params)
    yield "it has a summary", "" if plugin.summary else "summary is empty"


def _of_workload(plugin: AnyWorkload, folder: Path) -> Iterator[Promise]:
    yield from _settings(plugin.params)
    params = typical(plugin)
    described = plugin.described(params)
    yield from _metrics(described.metrics)
    yield "its work and rate are metrics, and one is a headline", _work(described)
    commands = planned(plugin)
    hosts = {name for client, server, _ in PAIRS for name in (client, server)}
    wrong = [broken for command in commands for broken in _command(command, hosts)]
    yield "it plans argument lists for hosts of the pairs", "; ".join(wrong) or ("" if commands else "it plans nothing")
    same = plugin.plan(params, PAIRS) == plugin.plan(params, PAIRS)
    yield "planning has no effects and no chance", "" if same else "two plans of the same settings differ"
    plan = plugin.plan(params, PAIRS)
    yield "servers say when they are ready", "; ".join(filter(None, map(_ready, plan.servers)))
    asking, served = {client for client, _, _ in PAIRS}, {server.host for server in plan.servers}
    programs = {client.host for client in plan.clients}
    yield "each client host has a client", "" if asking <= programs <= asking | served else f"clients are on {sorted(programs)}"
    yield _missing(lambda: plugin.parse(params, folder))


def _of_instrument(plugin: AnyInstrument, folder: Path) -> Iterator[Promise]:
    yield from _settings(plugin.params)
    yield from _metrics(plugin.metrics)
    params = plugin.params()
    stay = [(target, command) for target in TARGETS for command in plugin.plan(params, target)]
    examine = [(target, command) for target in TARGETS for command in plugin.examine(params, target, PORTS)]
    wrong = [broken for target, command in (*stay, *examine) for broken in _command(command, {target.name}, shells=True)]
    wrong += [] if stay or examine else ["it plans nothing"]
    yield "its programs are argument lists for their place", "; ".join(wrong)
    wrong = [*filter(None, (_ready(command) for _, command in stay))]
    wrong += [f"{command.argv[0]} examines, and would stay" for _, command in examine if command.ready is not None]
    yield "programs that stay say when they are ready", "; ".join(wrong)
    outputs = [(command.host, command.stdout or command.argv) for _, command in (*stay, *examine)]
    twice = sorted({str(output) for output in outputs if outputs.count(output) > 1})
    yield "no two write to the same artifact", ", ".join(twice)
    yield _missing(lambda: plugin.extract(params, folder))


def _of_format(plugin: Format, folder: Path) -> Iterator[Promise]:
    yield "it has a summary", "" if plugin.summary else "summary is empty"
    yield from _metrics(plugin.metrics)
    names = {metric.name for metric in plugin.metrics} | {""}
    wrong = [name for name in (plugin.work, plugin.rate) if name not in names]
    yield "its work and rate are metrics", ", ".join(wrong)
    taken = [repr(head[:20]) for head in _HEADS if plugin.recognises(head)]
    yield "it recognises no other text", ", ".join(taken)
    yield "it refuses other files by FormatError", "; ".join(filter(None, (_refuses(plugin, head, folder) for head in _HEADS)))


def _refuses(plugin: Format, content: bytes, folder: Path) -> str:
    path = folder / "other"
    path.write_bytes(content)
    try:
        plugin.read(File(path, "other"), {})
    except FormatError:
        return ""
    return f"{content[:20]!r} is read"


def _of_analysis(plugin: AnyAnalysis, folder: Path) -> Iterator[Promise]:
    yield from _settings(plugin.params)
    yield "its class has a docstring, which is the help", "" if type(plugin).__doc__ else "it has none"


def _settings(params: type[BaseModel]) -> Iterator[Promise]:
    asked, given = {"frozen": True, "extra": "forbid"}, params.model_config
    wrong = [f"{name} is not {value!r}" for name, value in asked.items() if given.get(name) != value]
    yield "settings never change, and an unknown one is an error", ", ".join(wrong)
    bare = [name for name, field in params.model_fields.items() if not field.description]
    yield "each setting is described", ", ".join(bare)


def _metrics(metrics: Sequence[Metric]) -> Iterator[Promise]:
    names = [metric.name for metric in metrics]
    wrong = [f"{name} is declared twice" for name in sorted({name for name in names if names.count(name) > 1})]
    wrong += [f"{metric.name} has no description or unit" for metric in metrics if not (metric.description and metric.unit)]
    yield "metrics are declared once, with unit and description", "; ".join(wrong)


def _work(described: Described) -> str:
    names = {metric.name for metric in described.metrics}
    wrong = [f"{name} is no metric" for name in filter(None, (described.work, described.rate)) if name not in names]
    return "; ".join(wrong) or ("" if any(metric.headline for metric in described.metrics) else "no metric is a headline")


def _command(command: Command, hosts: set[str], *, shells: bool = False) -> Iterator[str]:
    if command.host not in hosts:
        yield f"{command.argv[0]} is for {command.host}"
    if not all(isinstance(argument, str) for argument in command.argv):
        yield f"{command.argv}: an argument is no text"
    if not shells and Path(command.argv[0]).name in SHELLS:
        yield f"{command.argv[0]} is a shell"
    if command.limit_s <= 0:
        yield f"{command.argv[0]} has no time"


def _ready(command: Command) -> str:
    signs = [] if command.ready is None else [command.ready.listening, command.ready.says, command.ready.after_s]
    number = len(signs) - signs.count(None)
    return "" if number == 1 else f"{command.argv[0]} has {number} signs, not one"


def _missing(read: Callable[[], object]) -> Promise:
    what = "missing artifacts are an error that extraction knows"
    try:
        read()
    except UNREADABLE:
        return what, ""
    return what, "it reads a folder without artifacts"


def ran(study: str, plugins: Plugins, catalogue: Catalogue, site: Site) -> Run:
    """Make a run of a study's text. Raises RunFailed."""
    run = design.runs(load(study, "contract.yaml", catalogue))[0]
    execute(run, plugins, site, Outcome(), lambda _: None)
    return run


def a_study(workload: Mapping[str, object], instrument: str = "", driver: str = "container") -> str:
    """Return the text of a study of one run."""
    return json.dumps(
        {
            "study": "contract",
            "testbeds": {"bed": {"driver": driver}},
            "workload": workload,
            "instruments": [instrument] if instrument else [],
            "replicates": 1,
        }
    )


def promises_of_values(metrics: Sequence[Metric], extracted: Extracted) -> Iterator[Promise]:
    """Check the values that a workload or an instrument read of a run."""
    declared = {metric.name: metric.unit for metric in metrics}
    wrong = [f"{value.metric} in {value.unit}" for value in extracted.values if declared.get(value.metric) != value.unit]
    yield "its values are of declared metrics, in their units", ", ".join(dict.fromkeys(wrong))
    places = [(value.metric, value.host, value.direction) for value in extracted.values]
    yield "each value is given once", ", ".join(sorted({str(place) for place in places if places.count(place) > 1}))
    yield "it measures something", "" if any(value.value for value in extracted.values) else "every value is 0 or missing"


def promises_of_work(described: Described, values: Sequence[Value]) -> Iterator[Promise]:
    """Check that a workload reports the work of all its clients."""
    work = [value.value for value in values if (value.metric, value.host, value.direction) == (described.work, "", "")]
    done = not described.work or (len(work) == 1 and (work[0] or 0) > 0)
    yield "it reports the work of all clients", "" if done else f"{described.work} is {work}"


def promises_of_run(
    kind: str, plugin: AnyWorkload | AnyInstrument, plugins: Plugins, catalogue: Catalogue, site: Site
) -> Iterator[Promise]:
    """Make a run on containers with a workload, or with an instrument and the workload ``http``, and check what it read."""
    if kind == "workloads":
        short = {"duration": "1s"} if "duration" in plugin.params.model_fields else {}
        text = a_study({"kind": plugin.name, **plugin.params.typical, **short})
    else:
        text = a_study({"kind": "http", "duration": "60s", "max_requests": 40}, plugin.name)
    try:
        run = ran(text, plugins, catalogue, site)
        if kind == "workloads":
            workload = plugins.workloads[plugin.name]
            extracted, described = workload.parse(run.workload.params, site.artifacts), workload.described(run.workload.params)
        else:
            instrument = plugins.instruments[plugin.name]
            extracted = instrument.extract(run.instruments[plugin.name].params, site.artifacts)
            described = Described(instrument.metrics, "", "")
    except (RunFailed, *UNREADABLE) as error:
        yield "a run on containers", str(error)
        return
    yield "a run on containers", ""
    yield from promises_of_values(described.metrics, extracted)
    yield from promises_of_work(described, extracted.values)


def promises_of_hosts(bed: Bed) -> Iterator[Promise]:
    """Use the client and the server that a driver made."""
    client, server = bed.hosts["client"], bed.hosts["server"]
    answer = client.run(["echo", "hello", "there"]).stdout
    yield "a program's output comes back", "" if answer == b"hello there\n" else repr(answer)
    raised = _raised(ProgramFailed, lambda: client.run(["false"]), "client: false: exit code 1")
    code = client.run(["false"], check=False).code
    yield "a program that fails is an error, or its exit code", raised or ("" if code == 1 else f"code {code}")
    yield "a missing program is named", _raised(HostError, lambda: client.run(["no-such-program"]), "no-such-program")
    echoed = server.run(["cat"], stdin=b"x" * 300_000).stdout
    yield "a program's input arrives whole", "" if echoed == b"x" * 300_000 else f"{len(echoed)} bytes"
    content = bytes(range(256)) * 4096
    server.write(f"{server.artifacts}/data", content)
    yield "files are written and read", "" if server.read(f"{server.artifacts}/data") == content else "other bytes"
    yield "a missing file is named", _raised(HostError, lambda: server.read("/nowhere/at/all"), "/nowhere/at/all")
    sleeper = client.start(["sleep", "30"])
    sleeper.started()
    used = sleeper.usage()
    sleeper.signal(15)
    number = sleeper.wait(30.0).signal
    yield "a program that stays ends by its signal", "" if number == 15 else f"signal {number}"
    yield "its CPU time is known, or is not given", "" if used is None or used.cpu_s < 5.0 else f"{used.cpu_s} s"
    late = _raised(LimitExceeded, lambda: client.run(["sleep", "30"], limit_s=0.2), "client: sleep 30: not done after 0.2 s")
    yield "a program beyond its limit is named", late
    yield "settings are read back, and agree", differences(bed.applied) or ("" if bed.applied else "nothing was read back")
    places = set(bed.passport) | {MACHINE}
    right = places == {MACHINE, "client", "server"} and all(bed.passport.values())
    yield "each host has facts in the passport", "" if right else f"{sorted(places)}"


def _raised(kind: type[Exception], call: Callable[[], object], text: str) -> str:
    try:
        call()
    except kind as error:
        return "" if text in str(error) else f"the error is {error}"
    return "no error"
