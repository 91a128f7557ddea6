"""The user's own programs on real testbeds: a client and server written for this test, and what may go wrong with them."""

from __future__ import annotations

import hashlib
import json
import zipfile
from collections.abc import Mapping
from pathlib import Path

import pytest
from tests.command import twinbed

from twinbed import _core
from twinbed.readers.http import ab_numbers
from twinbed.registry import PLUGINS
from twinbed.results.extract.rows import extractions
from twinbed.results.folder import Folder
from twinbed.workloads.iperf3 import Iperf3Params, iperf3

SERVER = """\
#!/usr/bin/perl
use strict; use IO::Socket::INET; $| = 1;
my $listener = IO::Socket::INET->new(LocalPort => 7000, Listen => 5, ReuseAddr => 1) or die "cannot listen: $!\\n";
my $datagrams = IO::Socket::INET->new(LocalPort => 7001, Proto => "udp") or die;
print "serving on 7000\\n";
while (my $connection = $listener->accept) { while (<$connection>) { print $connection uc } }
"""
CLIENT = """\
#!/usr/bin/perl
use strict; use IO::Socket::INET; use Time::HiRes "time";
my ($server, $count, $bytes, $file) = @ARGV;
my $socket = IO::Socket::INET->new(PeerAddr => $server, PeerPort => 7000) or die "cannot connect: $!\\n";
open(my $times, ">", $file) or die; my $begun = time;
for (1 .. $count) {
  my $sent = time; print $socket "x" x $bytes, "\\n"; $socket->flush; my $answer = <$socket>;
  die "wrong answer\\n" unless $answer eq ("X" x $bytes) . "\\n";
  printf $times "%.3f\\n", 1e6 * (time - $sent);
}
my $took = time - $begun;
printf "%d echoes in %.6f s, %.3f per second\\n", $count, $took, $count / $took;
print STDERR "from $ENV{WHO}\\n";
"""
STUDY = """\
study: echo
testbeds: {TESTBEDS}
workload:
  kind: command
  files: {server.pl: /opt/server.pl, client.pl: /opt/client.pl}
  settings: {count: 50}
  server: {run: [/opt/server.pl], ready: READY}
  client:
    run: [/opt/client.pl, "{server}", "{count}", "{size.bytes}", "{artifacts}/times.txt"]
    env: {WHO: "{client}"}
    limit: 60s
  metrics:
    echoes_per_second: {read: client.stdout, regex: "([0-9.]+) per second", unit: 1/s, rate: true}
    took: {read: client.stdout, regex: "in ([0-9.]+) s", unit: s}
    echo_time: {read: client.file:times.txt, values: on, take: p50, unit: us}
  work: {name: echoes, value: "{count}"}
topology: {pairs: PAIRS}
factors: {size: SIZES}
replicates: 1
"""


def write(folder: Path, **places: str) -> Path:
    known = {"TESTBEDS": "container: {driver: container}", "READY": "{listening: 7000}", "PAIRS": "1", "SIZES": "[1B]"}
    text = STUDY
    for name, value in {**known, **places}.items():
        text = text.replace(name, value)
    for name, content in (("server.pl", SERVER), ("client.pl", CLIENT)):
        (folder / name).write_text(content)
        (folder / name).chmod(0o755)
    (folder / "echo.yaml").write_text(text)
    return folder / "echo.yaml"


def made(folder: Path, **places: str) -> list[Mapping[str, object]]:
    """Run the study; return the records of its runs."""
    done = twinbed("run", write(folder, **places), "--no-report", "-o", folder / "results", cwd=folder)
    records = [json.loads(file.read_text()) for file in sorted((folder / "results" / "runs").glob("*/run.json"))]
    assert done.returncode == (0 if all(record["status"] == "complete" for record in records) else 1), done.stderr
    return records


def values(folder: Path) -> dict[tuple[str, str], float]:
    """Read the run's values by the record alone, as later commands do."""
    results = Folder(folder / "results")
    (name,) = (file.parent.name for file in (folder / "results" / "runs").glob("*/run.json"))
    record = results.record(name)
    extraction = extractions(record, PLUGINS)[0]
    found = extraction.read(results.runs / name / "artifacts")
    return {(value.metric, value.host): value.value for value in found.values if value.value is not None}


def test_a_client_and_a_server_of_the_users_own_on_containers(tmp_path: Path, leaves_nothing: None) -> None:
    (record,) = made(tmp_path)
    assert record["status"] == "complete", record["reason"]
    artifacts = next((tmp_path / "results" / "runs").glob("*")) / "artifacts"
    count, took, rate = (artifacts / "client" / "client.txt").read_text().split()[0::3][:3][0], *_of_report(artifacts)
    of_run = values(tmp_path)
    assert count == "50" and of_run["echoes", ""] == 50
    assert of_run["took", ""] == took and of_run["echoes_per_second", ""] == rate
    times = sorted(float(line) for line in (artifacts / "client" / "times.txt").read_text().split())
    assert len(times) == 50 and of_run["echo_time", ""] == pytest.approx((times[24] + times[25]) / 2 * 1e-6)
    assert {file.name for file in (tmp_path / "results" / "own").glob("*/*")} == {"client.pl", "server.pl"}
    assert twinbed("archive", tmp_path / "results", "-o", tmp_path / "echo.zip").returncode == 0
    with zipfile.ZipFile(tmp_path / "echo.zip") as packed:
        (name,) = (each for each in packed.namelist() if each.endswith("/client.pl"))
        assert packed.read(name).decode() == CLIENT and name.split("/")[1] == hashlib.sha256(CLIENT.encode()).hexdigest()[:16]
    assert (artifacts / "client" / "client.txt.err").read_text().startswith("from 10.")


def _of_report(artifacts: Path) -> tuple[float, float]:
    words = (artifacts / "client" / "client.txt").read_text().split()
    return float(words[3]), float(words[5])


def test_several_pairs_are_put_together(tmp_path: Path, leaves_nothing: None) -> None:
    (record,) = made(tmp_path, PAIRS="2", READY='{output: "^serving on [0-9]+$"}')
    assert record["status"] == "complete", record["reason"]
    of_run = values(tmp_path)
    assert of_run["echoes_per_second", ""] == of_run["echoes_per_second", "client1"] + of_run["echoes_per_second", "client2"]
    assert of_run["echoes", ""] == 100 and ("took", "") not in of_run and of_run["took", "client2"] > 0


def test_it_runs_on_a_guest_too_and_levels_reach_the_program(tmp_path: Path, leaves_nothing: None) -> None:
    records = made(tmp_path, TESTBEDS="virtio: {driver: qemu, nic: virtio-net-pci}", SIZES="[1B, 1KiB]")
    assert [record["status"] for record in records] == ["complete", "complete"], [record["reason"] for record in records]
    files = [*(tmp_path / "results" / "runs").glob("*/artifacts/client/times.txt")]
    assert [len(file.read_text().split()) for file in files] == [50, 50]


@pytest.mark.parametrize("ready", ["{listening: 7001, protocol: udp}", "{after: 1s}"])
def test_other_signs_of_readiness(ready: str, tmp_path: Path) -> None:
    done = twinbed("try", write(tmp_path, READY=ready), cwd=tmp_path)
    assert done.returncode == 0, done.stdout + done.stderr


WRONG = {
    "a program that never gets ready": (
        "server.pl",
        "#!/usr/bin/perl\nsleep 1000;\n",
        "serve",
        "did not listen on TCP port 7000 within",
    ),
    "a server that ends at once": (
        "server.pl",
        '#!/usr/bin/perl\ndie "no licence\\n";\n',
        "serve",
        "before it was ready\n    no licence",
    ),
    "a client that fails": ("client.pl", '#!/usr/bin/perl\ndie "no route\\n";\n', "workload", "no route"),
    "a client that never ends": ("client.pl", "#!/usr/bin/perl\nsleep 1000;\n", "workload", "not done after 2 s"),
    "a client without output": (
        "client.pl",
        "#!/usr/bin/perl\n",
        "collect",
        "took: client/client.txt: 'in ([0-9.]+) s' matches nowhere",
    ),
    "a client with binary output": (
        "client.pl",
        '#!/usr/bin/perl\nprint "\\0" x 100;\n',
        "collect",
        "is no text: byte 1 of 100 is NUL",
    ),
    "a client with endless output": (
        "client.pl",
        "#!/usr/bin/perl\nmy $x = 'x' x 1e6; print $x for 1 .. 1000;\n",
        "workload",
        "printed more than 67,108,864 bytes: let it write to a file among the artifacts",
    ),
    "a program that is none": ("client.pl", "no program\n", "workload", "/opt/client.pl"),
}


@pytest.mark.parametrize("what", WRONG)
def test_what_goes_wrong_is_one_clear_error_and_leaves_nothing(what: str, tmp_path: Path, leaves_nothing: None) -> None:
    name, content, phase, reason = WRONG[what]
    study = write(tmp_path)
    (tmp_path / name).write_text(content)
    text = (
        study.read_text()
        .replace("ready: {", "limit: 2s, ready: {")
        .replace("limit: 60s", f"limit: {'2s' if 'never' in what else '60s'}")
    )
    study.write_text(text)
    done = twinbed("run", study, "--no-report", "-o", tmp_path / "results", cwd=tmp_path)
    assert done.returncode == 1, done.stderr
    (file,) = (tmp_path / "results" / "runs").glob("*/run.json")
    record = json.loads(file.read_text())
    assert (record["status"], record["failed_phase"]) == ("failed", phase), record["reason"]
    assert reason in record["reason"]


def test_other_exit_codes_may_be_good_ends(tmp_path: Path) -> None:
    study = write(tmp_path)
    (tmp_path / "client.pl").write_text(CLIENT + "exit 3;\n")
    assert twinbed("try", study, cwd=tmp_path).returncode == 1
    study.write_text(study.read_text().replace("limit: 60s", "limit: 60s\n    exit: [0, 3]"))
    done = twinbed("try", study, cwd=tmp_path)
    assert done.returncode == 0, done.stdout + done.stderr


def test_trying_shows_where_each_metric_was_read_and_keeps_nothing(tmp_path: Path, leaves_nothing: None) -> None:
    study = write(tmp_path, TESTBEDS="e1000: {driver: qemu, nic: e1000}", PAIRS="3", SIZES="[10B, 1MiB]")
    done = twinbed("try", study, cwd=tmp_path)
    assert done.returncode == 0, done.stdout + done.stderr
    lines = done.stdout.splitlines()
    assert lines[0].startswith("echoes_per_second  ") and "client/client.txt: line 1, column " in lines[0]
    assert "client/times.txt: line 1, column 1: " in lines[2] and lines[2].endswith("' and 49 more")
    assert lines[-1] == f"Next: twinbed plan {study}"
    assert {file.name for file in tmp_path.iterdir()} == {"client.pl", "server.pl", "echo.yaml"}


def test_trying_shows_how_far_a_pattern_matches(tmp_path: Path) -> None:
    study = write(tmp_path)
    study.write_text(
        study.read_text().replace("([0-9.]+) per second", "rate ([0-9.]+) per second").replace("in ([", "echoes in: ([")
    )
    done = twinbed("try", study, cwd=tmp_path)
    assert done.returncode == 1
    assert "its beginning 'echoes in' ends at line 1, column 13, before '0." in done.stdout
    assert "The run failed: 2 metrics could not be read." in done.stdout and f"then: twinbed try {study}" in done.stdout


HTTP = """\
study: both
testbeds: {container: {driver: container}}
workload: WORKLOAD
replicates: 1
"""
AB = """
  kind: command
  settings: {requests: 300}
  server: {run: [nginx, -g, "daemon off;"], ready: {listening: 80}}
  client: {run: [ab, -q, -n, "{requests}", "http://{server}/"]}
  metrics: {all: {format: ab-text}, own: {regex: "^Requests per second: +([0-9.]+)", unit: 1/s}}"""


def test_a_real_run_of_ab_is_read_as_the_built_in_workload_reads_it(tmp_path: Path) -> None:
    (tmp_path / "own.yaml").write_text(HTTP.replace("WORKLOAD", AB))
    done = twinbed("run", "own.yaml", "--no-report", "-o", tmp_path / "results", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    of_run = values(tmp_path)
    text = next((tmp_path / "results" / "runs").glob("*/artifacts/client/client.txt")).read_bytes()
    built_in = {name: number for name, number in ab_numbers(_core.ab(text)) if number is not None}
    assert built_in["requests"] == 300 and {name: of_run[name, ""] for name in built_in if (name, "") in of_run} == {
        name: number for name, number in built_in.items() if (name, "") in of_run
    }
    assert of_run["own", ""] == built_in["requests_per_second"] and len(of_run) > 20


IPERF3 = """
  kind: command
  settings: {seconds: 2}
  server: {run: [iperf3, -s, -p, 5201, -J, -i, 1], ready: {listening: 5201}}
  client: {run: [iperf3, -c, "{server}", -p, 5201, -J, --get-server-output, -i, 1, -t, "{seconds}"]}
  metrics:
    all: {format: iperf3-json}
    received: {json: "server_output_json.intervals[?sum.omitted==`false`].sum.bytes", take: sum, unit: bytes}
    sender_cpu: {json: end.cpu_utilization_percent.host_total, unit: "%"}"""


def test_a_real_run_of_iperf3_is_read_as_the_built_in_workload_reads_it(tmp_path: Path) -> None:
    (tmp_path / "own.yaml").write_text(HTTP.replace("WORKLOAD", IPERF3))
    done = twinbed("run", "own.yaml", "--no-report", "-o", tmp_path / "results", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    of_run = values(tmp_path)
    (report,) = (tmp_path / "results" / "runs").glob("*/artifacts/client/client.txt")
    report.rename(report.with_name("iperf3.json"))
    found = iperf3.parse(Iperf3Params(duration=2), report.parent.parent)
    built_in = {value.metric: value.value for value in found.values}
    assert of_run["received", ""] == built_in["received_bytes"] and of_run["sender_cpu", ""] == built_in["sender_cpu_share"]
    # The format computes rates from bytes and seconds, where the built-in workload takes those that iperf3 printed, and the
    # mean of times in seconds, where that takes the mean of microseconds: their last bits may differ.
    for name in ("goodput_sd", "tcp_rtt_mean"):
        assert of_run.pop((name, "")) == pytest.approx(built_in[name], rel=1e-12)
    both = {name for name in built_in if (name, "") in of_run}
    assert {name: of_run[name, ""] for name in both} == {name: built_in[name] for name in both} and "goodput" in both


def test_a_program_that_no_image_has_is_refused_before_anything_runs(tmp_path: Path) -> None:
    study = write(tmp_path)
    study.write_text(study.read_text().replace("run: [/opt/client.pl", "run: [no-such-client"))
    done = twinbed("run", study, "-o", tmp_path / "results", cwd=tmp_path)
    assert done.returncode == 3
    assert "no-such-client: the image has no such program" in done.stderr and "name the Debian package" in done.stderr
    assert not (tmp_path / "results").exists()
