"""Programs of several roles on real testbeds: the order of start, own and others' addresses, and events."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
from tests.command import twinbed

from twinbed.api import Results

pytestmark = pytest.mark.privileged
NODE = """\
#!/usr/bin/perl
use strict; use IO::Socket::INET; $| = 1;
my ($name, $members) = @ARGV;
my $socket = IO::Socket::INET->new(LocalPort => 7000, Proto => "udp") or die "cannot listen: $!\\n";
print "$name of $members\\n"; my $served = 0;
while (defined $socket->recv(my $asked, 100)) { $socket->send($name); print "served ", ++$served, "\\n" }
"""
LOAD = """\
#!/usr/bin/perl
use strict; use IO::Socket::INET; $| = 1;
my ($rounds, @nodes) = @ARGV; my $answers = 0; my @missed;
my @sockets = map { IO::Socket::INET->new(PeerAddr => $_, PeerPort => 7000, Proto => "udp") or die "$!\\n" } @nodes;
for my $round (1 .. $rounds) {
  for my $at (0 .. $#nodes) {
    next if ($missed[$at] // 0) > 3;
    my $name = "node" . ($at + 1); my $found = "late"; my $answer;
    eval {
      local $SIG{ALRM} = sub { die "late" }; alarm 2;
      $sockets[$at]->send($round); $found = defined $sockets[$at]->recv($answer, 100) ? $answer : "gone"; alarm 0;
    };
    $answers++ if $found eq $name;
    $missed[$at] = $found eq $name ? 0 : ($missed[$at] // 0) + 1;
    print "$round $name ", $found eq $name ? "ok" : $found, "\\n";
    select(undef, undef, undef, 0.002);
  }
}
print "answers $answers\\n";
"""
STUDY = """\
study: roles
testbeds: {bed: {driver: DRIVER}}
workload:
  kind: command
  files: {node.pl: /opt/node.pl, load.pl: /opt/load.pl}
  settings: {rounds: 300}
  roles:
    load: {run: [/opt/load.pl, "{rounds}", "{each node by argument: {address}}"], after: [node], limit: 300s}
    node: {hosts: 3, run: [/opt/node.pl, "{name}", "{each node: {name}={address}}"], ready: {listening: 7000, protocol: udp}}
  events:
EVENTS
  metrics:
    answers: {read: load.stdout, regex: "^answers ([0-9]+)", extensive: true}
    served: {read: node.stdout, regex: "served ([0-9]+)", take: last, together: sum}
  work: {name: rounds, value: "{rounds}"}
replicates: 1
"""
PLANTED = """\
    - {stop: node2, output: load, pattern: "node2 ok", nth: 10}
    - {continue: node2, output: load, pattern: "node2 late"}
    - {link_down: node3, output: load, pattern: "node3 ok", nth: 30}
    - {link_up: node3, output: load, pattern: "node3 late", nth: 2}
    - {kill: "{matched}", output: load, pattern: "^50 (node1)"}
"""


def written(folder: Path, events: str, driver: str = "container") -> Path:
    (folder / "roles.yaml").write_text(STUDY.replace("DRIVER", driver).replace("EVENTS\n", events))
    for name, content in (("node.pl", NODE), ("load.pl", LOAD)):
        (folder / name).write_text(content)
        (folder / name).chmod(0o755)
    return folder / "roles.yaml"


def made(folder: Path, events: str, driver: str = "container", *more: str) -> dict[str, Any]:
    """Run the study; return the record of its run."""
    done = twinbed("run", written(folder, events, driver), "--no-report", "-o", folder / "results", *more, cwd=folder)
    (file,) = (folder / "results" / "runs").glob("*/run.json")
    record: dict[str, Any] = json.loads(file.read_text())
    assert done.returncode == (0 if record["status"] == "complete" else 1), done.stderr
    return record


def lines(folder: Path, host: str, file: str) -> list[str]:
    (path,) = (folder / "results" / "runs").glob(f"*/artifacts/{host}/{file}")
    return path.read_text().splitlines()


@pytest.mark.parametrize("driver", ["container", "qemu"])
def test_each_event_is_carried_out_and_recorded(driver: str, tmp_path: Path, leaves_nothing: None) -> None:
    record = made(tmp_path, PLANTED, driver)
    assert record["status"] == "complete", record["reason"]
    found = lines(tmp_path, "load", "role-load.txt")
    of = {node: [line.split()[2] for line in found if f" {node} " in line] for node in ("node1", "node2", "node3")}
    first = next(at for at, answer in enumerate(of["node1"]) if answer != "ok")
    assert first >= 50 and "ok" not in of["node1"][first:], "killed once its 50th answer was seen"
    assert of["node2"].count("late") >= 1 and of["node2"][-1] == "ok", "stopped, and it continued"
    assert of["node3"].count("ok") > 30 and of["node3"].count("late") >= 2 and of["node3"][-1] == "ok"
    members = "node1=10.77.0.2,node2=10.77.0.3,node3=10.77.0.4"
    assert [lines(tmp_path, f"node{at}", "role-node.txt")[0] for at in (1, 2, 3)] == [
        f"node{at} of {members}" for at in (1, 2, 3)
    ]

    events: list[Mapping[str, Any]] = record["events"]
    assert {(event["action"], event["host"]) for event in events} == {
        ("stop", "node2"),
        ("continue", "node2"),
        ("link_down", "node3"),
        ("link_up", "node3"),
        ("kill", "node1"),
    }
    (client,) = record["clients"]
    assert all(0 < each["due_s"] <= each["begun_s"] < each["in_force_s"] for each in events)
    assert all(each["due_s"] < client["end_s"] for each in events)
    at = {event["action"]: event for event in events}
    assert at["stop"]["in_force_s"] < at["continue"]["due_s"] and at["link_down"]["in_force_s"] < at["link_up"]["due_s"]
    assert (at["stop"]["found"], at["link_down"]["found"], at["kill"]["found"]) == (
        "process state T",
        "p.node3 down",
        "ended by SIGKILL",
    )

    results = Results(tmp_path / "results")
    rows = results.table("run_events").to_pylist()
    assert [(row["action"], row["begun_s"]) for row in rows] == [(each["action"], each["begun_s"]) for each in events]
    values = {(row["metric"], row["host"]): row["value"] for row in results.table("metrics").to_pylist()}
    assert values["answers", ""] == sum(line.endswith(" ok") for line in found)
    served = [values["served", f"node{number}"] for number in (1, 2, 3)]
    assert values["served", ""] == sum(served) >= values["answers", ""]


def test_an_event_that_cannot_be_carried_out_fails_the_run(tmp_path: Path, leaves_nothing: None) -> None:
    record = made(
        tmp_path,
        """\
    - {kill: node1, output: load, pattern: "node1 ok", nth: 3}
    - {kill: node1, output: load, pattern: "node1 ok", nth: 3, after: 50ms}
    - {stop: node2, output: load, pattern: "never"}
    - {link_down: node3, after: 1h}
    - {stop: "{matched}", output: load, pattern: "^2 (.*) ok"}
    - {stop: "{matched}", output: load, pattern: "^3 node(2) ok"}
""",
    )
    assert (record["status"], record["failed_phase"]) == ("failed", "workload")
    reasons = record["reason"].split("; event ")
    assert [reason.removeprefix("event ").partition(": ")[2].partition(" (")[0] for reason in reasons] == [
        "/opt/node.pl on node1 had ended before",
        "load had printed 0 such lines of standard output when the programs that end had ended",
        "the programs that end had ended before",
        "'^3 node(2) ok' found '2', which is no host: load, node1, node2, node3",
    ] or record["reason"]


def test_instruments_and_the_link_check_know_the_hosts_of_roles(tmp_path: Path, leaves_nothing: None) -> None:
    settings = ("instruments=[packets, counters, latency]", "topology={link: {rate: 50mbit, delay: 2ms}}")
    record = made(
        tmp_path, "    - {kill: node3, after: 100ms}\n", "container", *(word for each in settings for word in ("-s", each))
    )
    assert record["status"] == "complete", record["reason"]
    (file,) = (tmp_path / "results" / "links").glob("*.json")
    check = json.loads(file.read_text())
    assert check["measured_pairs"][0] == "load and node1" and check["pairs"] == 3
    results = Results(tmp_path / "results")
    assert {row["link"] for row in results.table("connections").to_pylist()} == {"load", "node1", "node2", "node3"}
    assert {"load", "node1", "node2", "node3"} <= {row["host"] for row in results.table("counters").to_pylist()}
    places = {row["place"] for row in results.table("facts").to_pylist()}
    assert {"machine", "load", "node1", "node2", "node3"} <= places


def test_the_gap_after_the_leader_of_etcd_dies_is_the_one_that_the_client_logged(tmp_path: Path, leaves_nothing: None) -> None:
    settings = {"workload.settings.puts": 300, "workload.settings.kill_at": 150, "factors.testbed": "[container]"}
    changes = [word for key, value in settings.items() for word in ("-s", f"{key}={value}")]
    more = ("-s", "replicates=1", "-s", "instruments=[]", "-s", "topology={}", "--no-report")
    done = twinbed("run", "etcd", *more, *changes, "-o", tmp_path / "results", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    results = Results(tmp_path / "results")
    (event,) = results.table("run_events").to_pylist()
    (leader,) = [line.split()[1] for line in lines(tmp_path, "load", "role-load.txt") if line.startswith("leader ")]
    assert (event["action"], event["host"], event["found"]) == ("kill", leader, "ended by SIGKILL")

    puts = [row["total_s"] for row in results.table("requests").to_pylist()]
    longest = max(range(len(puts)), key=puts.__getitem__)
    assert len(puts) == 300 and longest >= 150, "no put before the kill took as long"
    logged = next(line for line in lines(tmp_path, "load", "role-load.txt") if line.startswith("longest time"))
    values = {row["metric"]: row["value"] for row in results.table("metrics").to_pylist() if not row["host"]}
    assert values["gap"] == puts[longest] == pytest.approx(float(logged.split()[-2]), rel=0.1)
    assert values["gap"] > 0.5, "etcd elects after an election timeout of 1 s; the last heartbeat was before"


def test_try_tells_each_event_and_what_was_read_back(tmp_path: Path, leaves_nothing: None) -> None:
    done = twinbed("try", written(tmp_path, '    - {kill: node1, output: load, pattern: "node1 ok"}\n'), cwd=tmp_path)
    assert done.returncode == 0, done.stdout
    told = next(line for line in done.stdout.splitlines() if line.startswith("kill node1: begun at "))
    assert told.endswith(" s (ended by SIGKILL)")
