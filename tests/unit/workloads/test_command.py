"""The workload ``command``: study files that are wrong, plans, and what is read of artifacts."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path

import pytest

from twinbed import registry
from twinbed.contracts.extracted import Extracted
from twinbed.model.caution import Kind
from twinbed.results import schema
from twinbed.results.extract.pace import pace
from twinbed.study.document import StudyError
from twinbed.study.loading import load
from twinbed.study.run import Choice
from twinbed.study.study import Study
from twinbed.workloads.command.params import CommandParams
from twinbed.workloads.http import HttpParams, http
from twinbed.workloads.iperf3 import Iperf3Params, iperf3

GOLDEN = Path(__file__).parents[2] / "golden"
COMMAND = registry.PLUGINS.workloads["command"]
PAIR = [("client", "server", "10.77.0.2")]
HEAD = "study: mine\ntestbeds: {container: {driver: container}}\n"
METRICS = "  metrics: {rps: {regex: 'rps=([0-9.]+)', unit: 1/s, rate: true}}\n"


def study(workload: str, more: str = "", folder: Path = Path()) -> Study:
    text = f"{HEAD}workload:\n  kind: command\n{workload}{more}"
    return load(text, str(folder / "my.yaml"), registry.catalogue())


def problems(workload: str, more: str = "", folder: Path = Path()) -> list[str]:
    with pytest.raises(StudyError) as error:
        study(workload, more, folder)
    return [str(problem).removeprefix(f"{folder / 'my.yaml'}:") for problem in error.value.problems]


def params(**settings: object) -> CommandParams:
    given = {"client": {"run": ["client", "{server}"]}, "metrics": {"rps": {"regex": "rps=([0-9.]+)", "unit": "1/s"}}}
    return CommandParams.model_validate({**given, **settings})


@pytest.mark.parametrize(
    ("line", "problem"),
    [
        (
            "  client: {run: [a, '{paylod}']}\n  settings: {payload: 1}\n",
            "5:21: workload.client.run[1]: {paylod} is not known; allowed: {server}, {client}, {pair}, {artifacts}, {payload};"
            " did you mean 'payload'?",
        ),
        (
            "  client: {run: [a, '{payload.ms}']}\n  settings: {payload: 1KiB}\n",
            "5:21: workload.client.run[1]: {payload.ms}: payload is a size (1KiB); allowed: {payload}, {payload.bytes},"
            " {payload.kib}, {payload.mib}",
        ),
        (
            "  client: {run: 'redis-benchmark -h {server} --csv'}\n",
            "5:17: workload.client.run: 'redis-benchmark -h {server} --csv' is a shell string, and a command is a list of"
            ' arguments; write ["redis-benchmark", "-h", "{server}", "--csv"]',
        ),
        ("  client: {run: [true]}\n", '5:18: workload.client.run[0]: true is no text; write "true" with its quotes'),
        ("  client: {run: []}\n", "5:17: workload.client.run: a list is not allowed: Value should have at least 1 item"),
        ("  client: {run: [a], limit: 0}\n", "5:29: workload.client.limit: 0 is not allowed; allowed: greater than 0"),
        ("  client: {run: [a]}\n  packages: [Redis]\n", "6:14: workload.packages[0]: 'Redis' is not allowed"),
        (
            "  client: {run: [a]}\n  settings: {server: 1}\n",
            "6:22: workload.settings.server: {server} has a meaning of its own",
        ),
        ("  client: {run: [a]}\n  work: rsp\n", "6:9: workload.work: rsp is no metric; allowed: a metric (rps), or"),
        ("  client: {run: [a]}\n  work: {name: requests, value: many}\n", "6:33: workload.work.value: 'many' is no number"),
        (
            "  client: {run: [a]}\n  server: {run: [b], ready: {listening: 80, after: 2s}}\n",
            "6:29: workload.server.ready: needs exactly one of listening: PORT, output: PATTERN, after: TIME",
        ),
        ("  client: {run: [a]}\n  server: {run: [b]}\n", "6:11: workload.server.ready: is required: the sign that it is ready"),
        ("  client: {run: [a]}\n  files: {nowhere.py: /opt/x}\n", "workload: files: nowhere.py: No such file or directory"),
        ("  client: {run: [a]}\n  files: {../../etc/passwd: /opt/x}\n", "workload: files: ../../etc/passwd:"),
        ("  client: {run: [a]}\n  files: {a: /proc/x}\n", "6:14: workload.files.a.to: /proc/x cannot be written"),
        ("  client: {run: [a]}\n  files: {a: /opt/../x}\n", "6:14: workload.files.a.to: /opt/../x cannot be written"),
    ],
)
def test_a_wrong_study_says_where(line: str, problem: str, tmp_path: Path) -> None:
    found = problems(line + METRICS, folder=tmp_path)
    assert len(found) == 1 and problem in found[0]


@pytest.mark.parametrize(
    ("metric", "problem"),
    [
        ("{regex: 'p99=[0-9]+'}", "6:24: workload.metrics.m.regex: 'p99=[0-9]+' has 0 groups, and one is read: put the number"),
        ("{unit: ms}", "6:16: workload.metrics.m: does not say how its number is found; allowed: one of regex, csv, json,"),
        ("{regex: (a), json: a}", "6:16: workload.metrics.m: has regex and json; allowed: one of"),
        (
            "{regex: (a), unit: msec}",
            "6:35: workload.metrics.m.unit: 'msec' is not known; allowed: 34 names; did you mean 'ms'?",
        ),
        ("{regex: (a), read: server.stdout}", "6:35: workload.metrics.m.read: there is no server"),
        ("{regex: (a), read: client.file:../x}", "6:35: workload.metrics.m.read: 'client.file:../x' is no text of a program"),
        ("{regex: (a), better: higher}", "6:29: workload.metrics.m.better: is not a setting; allowed: "),
        ("{json: 'a['}", "6:23: workload.metrics.m.json: 'a[' is no path of jmespath.org"),
        ("{format: wrkk}", "6:25: workload.metrics.m.format: 'wrkk' is not a format that `twinbed import` knows"),
        ("{format: wrk, metric: rps}", "6:38: workload.metrics.m.metric: 'rps' is no metric of wrk"),
    ],
)
def test_a_wrong_metric_says_where(metric: str, problem: str) -> None:
    found = problems(f"  client: {{run: [a]}}\n  metrics: {{m: {metric}}}\n")
    assert len(found) == 1 and problem in found[0]


def test_settings_are_factors_by_their_short_names() -> None:
    text = "  client: {run: [a, '{payload.bytes}', '{requests}']}\n  settings: {requests: 100}\n"
    mine = study(text + METRICS, "factors: {payload: [64B, 1KiB]}\n")
    assert mine.factors["payload"] == ("64B", "1KiB") and len(mine.cells) == 2
    plans = [COMMAND.plan(cell.workload.params, PAIR).clients[0].argv for cell in mine.cells]
    assert plans == [("a", "64", "100"), ("a", "1024", "100")]
    assert mine.cells[0].run(replicate=0, block=0, position=0).id != mine.cells[1].run(replicate=0, block=0, position=0).id
    by_path = study(text + METRICS, "factors: {workload.settings.payload: [64B, 1KiB]}\n")
    assert [cell.workload.params for cell in by_path.cells] == [cell.workload.params for cell in mine.cells]


@pytest.mark.parametrize(
    ("factors", "problem"),
    [
        ("{payload: [64B, 10ms]}", "factors.payload: '10ms' is a duration, and '64B' is a size; allowed: levels of one kind"),
        ("{requests: [1, 2], payload: [1B]}", "workload.settings.requests: is also the factor 'requests'"),
        ("{paylod: [64B]}", "factors.paylod: is not a setting of this study"),
        ("{payload: [64B], workload.settings.payload: [1B]}", "is the same setting as the factor 'payload'"),
    ],
)
def test_wrong_factors(factors: str, problem: str) -> None:
    text = "  client: {run: [a, '{payload.bytes}', '{requests}']}\n  settings: {requests: 100}\n"
    assert problem in "\n".join(problems(text + METRICS, f"factors: {factors}\n"))


def test_plans() -> None:
    server = {
        "run": ["redis-server", "--port", 6379],
        "ready": {"listening": 6379},
        "prepare": [["mkdir", "/run/{pair}"]],
        "limit": "90s",
    }
    client = {
        "run": ["bench", "-h", "{server}", "--from", "{client}", "-d", "{payload.bytes}", "-o", "{artifacts}/t", "{{x}}"],
        "env": {"N": "{requests}"},
        "limit": "7s",
        "exit": [0, 1],
        "warm_up": ["bench", "{server}"],
    }
    made = params(server=server, client=client, settings={"payload": "1KiB", "requests": 5})
    plan = COMMAND.plan(made, [("client1", "server1", "10.0.0.2"), ("client2", "server2", "10.0.0.4")])
    assert [(command.host, command.argv) for command in plan.prepare] == [
        ("server1", ("mkdir", "/run/1")),
        ("server2", ("mkdir", "/run/2")),
    ]
    assert {command.limit_s for command in (*plan.prepare, *plan.servers)} == {90.0}
    assert plan.servers[0].argv == ("redis-server", "--port", "6379")
    assert plan.servers[0].ready is not None and plan.servers[0].ready.listening == 6379
    first = plan.clients[0]
    expected = "bench -h 10.0.0.2 --from {address:client1} -d 1024 -o {artifacts}/t {x}"
    assert (" ".join(first.argv), first.env, first.limit_s, first.exits) == (expected, {"N": "5"}, 7.0, (0, 1))
    assert plan.warm_up[1].argv == ("bench", "10.0.0.4") and plan.warm_up[1].stdout != first.stdout
    assert [(each.protocol, each.port) for each in COMMAND.services(made)] == [("tcp", 6379)]


def test_own_files_are_in_the_identity_by_content(tmp_path: Path) -> None:
    file = tmp_path / "client.sh"
    file.write_text("#!/bin/sh\n")
    file.chmod(0o755)
    text = "  client: {run: [/opt/c]}\n  files: {client.sh: /opt/c}\n" + METRICS

    def run_id() -> str:
        return study(text, folder=tmp_path).cells[0].run(replicate=0, block=0, position=0).id

    first, again = run_id(), run_id()
    plan = COMMAND.plan(study(text, folder=tmp_path).cells[0].workload.params, PAIR)
    assert plan.files == [("client", "/opt/c", b"#!/bin/sh\n"), ("server", "/opt/c", b"#!/bin/sh\n")]
    assert plan.executable == {"/opt/c"} and first == again
    file.chmod(0o644)
    assert run_id() != first
    file.chmod(0o755)
    file.write_text("#!/bin/sh\nexit 1\n")
    assert run_id() != first
    file.unlink()
    file.symlink_to("/etc/passwd")
    assert "client.sh" in "\n".join(problems(text, folder=tmp_path))


def test_a_record_is_read_without_the_study_and_its_files(tmp_path: Path) -> None:
    (tmp_path / "client.sh").write_text("x")
    text = "  client: {run: [/opt/c]}\n  files: {client.sh: /opt/c}\n  work: {name: requests, value: 10}\n" + METRICS
    choice = study(text, folder=tmp_path).cells[0].workload
    (tmp_path / "client.sh").unlink()
    record = json.loads(json.dumps(choice.to_json()))
    again = CommandParams.model_validate({name: value for name, value in record.items() if name != "kind"})
    assert again.model_dump(mode="json", by_alias=True) == choice.params.model_dump(mode="json", by_alias=True)
    about = COMMAND.described(again)
    assert ([(metric.name, metric.unit) for metric in about.metrics], about.work, about.rate) == (
        [("rps", "1/s"), ("requests", "1")],
        "requests",
        "rps",
    )
    with pytest.raises(ValueError, match="run the study file"):
        COMMAND.plan(again, PAIR)


def artifacts(folder: Path, texts: Mapping[str, str | bytes]) -> Path:
    for name, text in texts.items():
        file = folder / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_bytes(text if isinstance(text, bytes) else text.encode())
    return folder


def numbers(extracted: Extracted, host: str = "") -> dict[str, float | None]:
    return {value.metric: value.value for value in extracted.values if value.host == host}


def test_one_pair_has_the_runs_values_and_several_are_put_together(tmp_path: Path) -> None:
    metrics = {
        "rps": {"regex": "rps=([0-9.]+)", "unit": "1/s", "rate": True},
        "p99": {"regex": "p99=([0-9.]+)", "unit": "ms"},
        "slowest": {"regex": "p99=([0-9.]+)", "unit": "ms", "together": "max"},
        "load": {"read": "server.stderr", "regex": "load=([0-9.]+)", "together": "mean"},
    }
    server = {"run": ["s"], "ready": {"after": "1s"}}
    made = params(metrics=metrics, server=server, work={"name": "requests", "value": "{n}"}, settings={"n": 50})
    one = artifacts(tmp_path / "one", {"client/client.txt": "rps=10 p99=2", "server/server.txt.err": "load=1"})
    assert numbers(COMMAND.parse(made, one)) == {"rps": 10, "p99": 0.002, "slowest": 0.002, "load": 1, "requests": 50}
    two = artifacts(
        tmp_path / "two",
        {
            "client1/client.txt": "rps=10 p99=2",
            "client2/client.txt": "rps=30 p99=4",
            "server1/server.txt.err": "load=1",
            "server2/server.txt.err": "load=2",
        },
    )
    extracted = COMMAND.parse(made, two)
    assert numbers(extracted) == {"rps": 40, "slowest": 0.004, "load": 1.5, "requests": 100}
    assert numbers(extracted, "client2") == {"rps": 30, "p99": 0.004, "slowest": 0.004, "requests": 50}
    assert numbers(extracted, "server2") == {"load": 2}


@pytest.mark.parametrize(
    ("texts", "reason"),
    [
        (
            {"client/client.txt": "rps=fast"},
            "rps: client/client.txt: 'rps=([0-9.]+)' matches nowhere; its beginning 'rps=' ends at",
        ),
        (
            {"client/client.txt": ""},
            "rps: client/client.txt: 'rps=([0-9.]+)' matches nowhere; not even its beginning does: 0 lines",
        ),
        ({"client/client.txt": "rps=1\nrps=2\n"}, "matches 2 times, first at line 1, column 1: 'rps=1', then at line 2"),
        ({"client/client.txt": "rps=1..2"}, "line 1, column 1: 'rps=1..2' is no number"),
        ({"client/client.txt": b"ELF\0\0rps=1"}, "client/client.txt: is no text: byte 4 of 10 is NUL"),
        ({"server/server.txt": "x"}, "no client.txt"),
    ],
)
def test_what_cannot_be_read_fails_the_run(texts: Mapping[str, str | bytes], reason: str, tmp_path: Path) -> None:
    assert reason in COMMAND.unreadable(params(), artifacts(tmp_path, texts))


def test_a_file_that_the_client_did_not_write(tmp_path: Path) -> None:
    made = params(metrics={"t": {"read": "client.file:times.txt", "values": True, "unit": "us"}})
    folder = artifacts(tmp_path, {"client/client.txt": "done", "client/other.txt": "1"})
    reason = COMMAND.unreadable(made, folder)
    assert reason == ("t: client/times.txt: client wrote no such file into {artifacts}; there are: client.txt, other.txt")
    (folder / "client" / "times.txt").symlink_to("/etc/passwd")
    assert "symbolic link" in COMMAND.unreadable(made, folder)
    (folder / "client" / "times.txt").unlink()
    extracted = COMMAND.parse(made, artifacts(folder, {"client/times.txt": "100\n300\n"}))
    assert numbers(extracted) == {"t": pytest.approx(200e-6)}
    assert extracted.tables["requests"]["total_s"].to_pylist() == [1e-4, 3e-4]


def test_evidence_has_what_could_be_read_and_what_could_not(tmp_path: Path) -> None:
    metrics = {"rps": {"regex": "rps=([0-9.]+)"}, "p99": {"regex": "p99=([0-9.]+)", "unit": "ms"}}
    found = COMMAND.evidence(params(metrics=metrics), artifacts(tmp_path, {"client/client.txt": "a\nrps=10 p9=2\n"}))
    assert [(each.metric, each.value, each.file) for each in found] == [
        ("rps", 10.0, "client/client.txt"),
        ("p99", None, "client/client.txt"),
    ]
    assert found[0].text == "line 2, column 1: 'rps=10 p9=2'" and "matches nowhere" in found[1].text


OF_AB = {
    "requests": {"regex": "^Complete requests: +([0-9]+)"},
    "requests_per_second": {"regex": r"^Requests per second: +([0-9.]+) \[#/sec\]", "unit": "1/s", "rate": True},
    "time_taken": {"regex": "^Time taken for tests: +([0-9.]+) seconds", "unit": "s"},
    "transferred_bytes": {"regex": "^Total transferred: +([0-9]+) bytes", "unit": "bytes"},
    "document_bytes": {"regex": "^Document Length: +([0-9]+) bytes", "unit": "bytes"},
    "total_time_max": {"regex": "^Total: .* ([0-9]+)$", "unit": "ms"},
    "total_time_mean": {"regex": "^Total: +[0-9]+ +([0-9]+)", "unit": "ms"},
    # Not p99: of few requests ab looks past the last one, which the workload http corrects.
    "total_time_p50": {
        "read": "client.file:ab.csv",
        "csv": {"row": {"Percentage served": 50}, "column": "Time in ms"},
        "unit": "ms",
    },
}


def ab_reports() -> list[Path]:
    return sorted(file.parent for file in (GOLDEN / "http").glob("*/client/ab.txt"))


@pytest.mark.parametrize("report", ab_reports(), ids=lambda folder: folder.parent.name)
def test_ab_is_read_as_the_workload_http_reads_it(report: Path, tmp_path: Path) -> None:
    """Values are equal to the last bit, wherever the built-in workload has one."""
    text = (report / "ab.txt").read_bytes()
    size = next((int(line.split()[2]) for line in text.decode().splitlines() if line.startswith("Document Length")), 0)
    built_in = numbers(http.parse(HttpParams(payload=size or 1), report.parent))
    names = [name for name in OF_AB if built_in.get(name) is not None]
    made = params(metrics={name: OF_AB[name] for name in names}) if names else None
    if made is not None:
        folder = artifacts(tmp_path, {"client/client.txt": text, "client/ab.csv": (report / "ab.csv").read_bytes()})
        assert numbers(COMMAND.parse(made, folder)) == {name: built_in[name] for name in names}
    by_format = params(metrics={"all": {"format": "ab-text"}})
    if names:
        as_format = numbers(COMMAND.parse(by_format, artifacts(tmp_path, {"client/client.txt": text})))
        assert {name: as_format[name] for name in ("requests", "requests_per_second", "goodput")} == {
            name: built_in[name] for name in ("requests", "requests_per_second", "goodput")
        }


OF_IPERF3 = {
    "received_bytes": {"json": "server_output_json.intervals[?sum.omitted==`false`].sum.bytes", "take": "sum", "unit": "bytes"},
    "sent_bytes": {"json": "intervals[?sum.omitted==`false`].sum.bytes", "take": "sum", "unit": "bytes"},
    "sender_cpu_share": {"json": "end.cpu_utilization_percent.host_total", "unit": "%"},
    "receiver_cpu_share": {"json": "end.cpu_utilization_percent.remote_total", "unit": "%"},
}


def iperf3_reports() -> list[Path]:
    return sorted(file.parent for file in (GOLDEN / "iperf3").glob("*/client/iperf3.json"))


@pytest.mark.parametrize("report", iperf3_reports(), ids=lambda folder: folder.parent.name)
def test_iperf3_is_read_as_the_workload_iperf3_reads_it(report: Path, tmp_path: Path) -> None:
    text = (report / "iperf3.json").read_bytes()
    start = json.loads(text)["start"].get("test_start", {})
    settings = {"protocol": start.get("protocol", "TCP").lower(), "duration": start.get("duration") or 1}
    built_in = numbers(iperf3.parse(Iperf3Params.model_validate(settings), report.parent))
    names = [name for name in OF_IPERF3 if built_in.get(name) is not None]
    assert names or "error" in json.loads(text)
    if names:
        folder = artifacts(tmp_path, {"client/client.txt": text})
        read = numbers(COMMAND.parse(params(metrics={name: OF_IPERF3[name] for name in names}), folder))
        assert read == {name: built_in[name] for name in names}


def test_there_are_reports_to_compare() -> None:
    assert len(ab_reports()) > 1 and len(iperf3_reports()) > 1


def test_a_stall_among_single_requests_is_found(tmp_path: Path) -> None:
    made = params(metrics={"t": {"read": "client.file:times.txt", "values": True, "unit": "ms"}})
    times = [1.0] * 500 + [2500.0] + [1.0] * 500
    texts = {"client/client.txt": "", "client/times.txt": "\n".join(map(str, times))}
    tables = COMMAND.parse(made, artifacts(tmp_path, texts)).tables
    schema.check("requests", tables["requests"].append_column("run", [["r"] * len(times)]))
    values, cautions = pace("r", tables.items())
    found = {value.metric: value.value for value, _ in values}
    assert found["stalls"] == 1 and found["stalled_share"] == pytest.approx(2.5 / 3.5, rel=1e-3)
    assert [caution.kind for caution in cautions] == [Kind.STALL]


@pytest.mark.parametrize(
    ("work", "unit"),
    [
        ("requests", "request"),
        ("queries", "query"),
        ("echoes", "echo"),
        ("batches", "batch"),
        ("messages", "message"),
        ("data", "data"),
    ],
)
def test_effects_are_per_unit_of_work(work: str, unit: str) -> None:
    choice = Choice("command", params(work={"name": work, "value": 5}))
    assert registry.metrics(choice, ["packets"])[f"packets_per_{unit}"] == f"1/{unit}"
