"""The instrument ``sockets`` on real kernels: it says what ss says, and names what was made to hold a sender up."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest

from twinbed import design
from twinbed.contracts.extracted import Extracted
from twinbed.contracts.site import Site
from twinbed.instruments.sockets import SocketsParams, sockets
from twinbed.lab.execution import Outcome, execute
from twinbed.model.caution import Kind
from twinbed.readers.sockets.samples import read
from twinbed.registry import PLUGINS, catalogue
from twinbed.study.loading import load

pytestmark = [pytest.mark.privileged, pytest.mark.skipif(os.geteuid() != 0, reason="makes namespaces")]

PORT = 5001
SCENE = """
import json, os, socket, subprocess, sys, threading, time
FILE, PROBE, OPTIONS = json.loads(sys.argv[1])
def shell(command):
    return subprocess.run(command, shell=True, check=True, stdout=subprocess.PIPE, text=True).stdout
shell("ip link set lo up")
def pair(port, rcvbuf=None):
    listener = socket.socket()
    listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    if rcvbuf:
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, rcvbuf)
    listener.bind(("127.0.0.1", port))
    listener.listen()
    sender = socket.create_connection(("127.0.0.1", port))
    receiver, _ = listener.accept()
    listener.close()
    return sender, receiver
def drain(receiver, pause_s=0.0, most=1 << 20):
    def loop():
        while receiver.recv(most):
            time.sleep(pause_s)
    threading.Thread(target=loop, daemon=True).start()
def send(sender, seconds, size=1 << 16, pause_s=0.0):
    end = time.monotonic() + seconds
    sender.settimeout(seconds + 10)
    while time.monotonic() < end:
        sender.sendall(bytes(size))
        time.sleep(pause_s)
probe = subprocess.Popen([PROBE, "sockets", "--out", FILE, *OPTIONS], stdout=subprocess.PIPE)
assert probe.stdout.readline() == b"ready\\n"
said = None
{what}
probe.terminate()
assert probe.wait() == 0
print(json.dumps(said))
"""
"""Alone in a network namespace: a probe samples what the scene does."""
OPTIONS = {"--interval": "0.01", "--bytes": str(2**25), "--samples": "1000000", "--peer": "127.0.0.1"}


def scene(folder: Path, probe: Path, what: str, more: Sequence[str] = (), **options: str) -> Any:
    """What it said; the samples are those of the host ``client``."""
    (folder / "client").mkdir()
    given = OPTIONS | {f"--{name}": value for name, value in options.items()}
    words = [*(word for option in given.items() for word in option), *more]
    argument = json.dumps([str(folder / "client" / "sockets.tcp"), str(probe), words])
    argv = [
        "unshare",
        "--net",
        "--pid",
        "--fork",
        "--kill-child",
        "--mount-proc",
        sys.executable,
        "-c",
        SCENE.replace("{what}", what),
        argument,
    ]
    return json.loads(subprocess.run(argv, stdout=subprocess.PIPE, check=True, text=True, timeout=120).stdout)


def sender_of(found: Extracted) -> list[dict[str, Any]]:
    return [row for row in found.tables["sockets"].to_pylist() if row["remote_port"] == PORT]


def values(found: Extracted, host: str = "client") -> dict[str, Any]:
    return {value.metric: value.value for value in found.values if value.host == host}


# Reno fills the short queue until it drops.
AT_REST = f"""
shell("ip link set lo mtu 1500; tc qdisc add dev lo root tbf rate 100mbit burst 20kb limit 40kb")
sender, receiver = pair({PORT})
sender.setsockopt(socket.IPPROTO_TCP, socket.TCP_CONGESTION, b"reno")
drain(receiver)
sender.sendall(bytes(3_000_000))
receiver.sendall(bytes(50_000))
sender.recv(50_000, socket.MSG_WAITALL)
def busy(text):
    return "unacked" in text or "notsent" in text or any(line.split()[0] != "0" for line in text.splitlines())
while busy(shell("ss -tinOH state established")):
    pass
time.sleep(2.5)
said = shell("ss -tinOH state established")
"""


def test_a_socket_at_rest_is_as_ss_has_it(tmp_path: Path, probe: Path) -> None:
    text = scene(tmp_path, probe, AT_REST)
    rows = sockets.extract(SocketsParams(), tmp_path).tables["sockets"].to_pylist()
    ends = [line for line in text.splitlines() if f":{PORT}" in line]
    assert len(ends) == 2
    compared = set()
    for line in ends:
        local, remote = (int(port) for port in re.findall(r"127\.0\.0\.1:(\d+)", line)[:2])
        last = [row for row in rows if (row["local_port"], row["remote_port"]) == (local, remote)][-1]
        assert last["state"] == "established"
        assert last["congestion"] in line.split()
        compared |= _compare(line, last)
    assert compared >= {"rtt", "cwnd", "ssthresh", "retrans", "bytes_retrans", "busy", "minrtt", "delivery_rate", "snd_wnd"}


COUNTS = {
    "cwnd": "cwnd",
    "ssthresh": "ssthresh",
    "mss": "snd_mss_bytes",
    "advmss": "advmss_bytes",
    "pmtu": "pmtu_bytes",
    "rcv_space": "rcv_space_bytes",
    "reordering": "reordering",
    "reord_seen": "reord_seen",
    "dsack_dups": "dsack_dups",
    "rcv_ooopack": "rcv_ooopack",
    "snd_wnd": "snd_wnd_bytes",
    **{name: name for name in ("bytes_sent", "bytes_retrans", "bytes_acked", "bytes_received", "segs_out", "segs_in")},
    **{name: name for name in ("data_segs_out", "data_segs_in", "delivered")},
}
"""Words of ss -> columns."""
ABSENT = {"mss", "advmss", "pmtu", "cwnd", "rcv_space"}
"""What ss prints always; it leaves out others that are 0."""


def _compare(line: str, row: Mapping[str, Any]) -> set[str]:
    """The words that were compared: all that ss prints of columns, and columns without a word are 0 or null."""
    words = dict(word.split(":", 1) for word in line.split() if ":" in word)
    rates = dict(re.findall(r"(pacing_rate|delivery_rate) (\d+)bps", line))
    compared = set()
    for word, column in COUNTS.items():
        if word in words:
            assert row[column] == int(words[word]), word
            compared.add(word)
        elif word != "reordering":
            assert word not in ABSENT and not row[column], word
    assert row["total_retrans"] == int(words.get("retrans", "0/0").split("/")[1])
    compared |= {"retrans"} if "retrans" in words else set()
    for word, column in (("rtt", "srtt_s"), ("minrtt", "min_rtt_s"), ("rto", "rto_s")):
        # In ms, to a µs.
        assert row[column] == pytest.approx(float(words[word].split("/")[0]) / 1e3, abs=6e-7), word
        compared.add(word)
    assert row["rttvar_s"] == pytest.approx(float(words["rtt"].split("/")[1]) / 1e3, abs=6e-7)
    for word, column in (("busy", "busy_s"), ("rwnd_limited", "rwnd_limited_s"), ("sndbuf_limited", "sndbuf_limited_s")):
        shown = float(words[word].partition("ms")[0]) / 1e3 if word in words else 0.0
        assert row[column] == pytest.approx(shown, abs=1.1e-3), word
        compared |= {word} if word in words else set()
    for name, rate in rates.items():
        assert row[name] == int(rate), name
        compared.add(name)
    assert row["app_limited"] is ("app_limited" in line.split())
    return compared


LIMITED = {
    "rwnd_limited_share": f"""
sender, receiver = pair({PORT}, rcvbuf=4096)
drain(receiver, pause_s=0.005, most=2048)
send(sender, 4)
""",
    "network_limited_share": f"""
shell("tc qdisc add dev lo root tbf rate 20mbit burst 100kb limit 200kb")
sender, receiver = pair({PORT})
drain(receiver)
send(sender, 6)
""",
}


@pytest.mark.parametrize("reason", LIMITED)
def test_what_holds_a_sender_up_is_named(reason: str, tmp_path: Path, probe: Path) -> None:
    scene(tmp_path, probe, LIMITED[reason])
    found = sockets.extract(SocketsParams(), tmp_path)
    shares = {name: value for name, value in values(found).items() if name in (*LIMITED, "sndbuf_limited_share")}
    assert max(shares, key=lambda name: shares[name]) == reason, shares
    assert shares[reason] > 0.5 and sum(shares.values()) == pytest.approx(1)


def test_an_application_that_pauses_is_what_limits(tmp_path: Path, probe: Path) -> None:
    what = f"sender, receiver = pair({PORT})\ndrain(receiver)\nsend(sender, 2, size=1000, pause_s=0.4)\n"
    scene(tmp_path, probe, what)
    assert values(sockets.extract(SocketsParams(), tmp_path))["application_limited_share"] > 0.5


def test_others_connections_are_left_out(tmp_path: Path, probe: Path) -> None:
    """By their ports; and those of which the other end is no host of the workload's, which have nothing to do with it."""
    what = f"""
others = [pair(port) for port in (2121, 22)]
ours = pair({PORT})
time.sleep(2.5)
"""
    scene(tmp_path, probe, what, ("--without", "22", "--without", "2120-2122"))
    found = sockets.extract(SocketsParams(), tmp_path)
    rows = found.tables["sockets"].to_pylist()
    assert {PORT} == {port for row in rows for port in (row["local_port"], row["remote_port"])} & {PORT, 22, 2121}
    assert (values(found)["connections_opened"], values(found)["connections_sampled"]) == (2, 2)
    assert not found.cautions


def test_hosts_that_are_not_the_workloads_are_left_out(tmp_path: Path, probe: Path) -> None:
    scene(tmp_path, probe, f"ours = pair({PORT})\ntime.sleep(1)\n", peer="10.77.0.2")
    found = sockets.extract(SocketsParams(), tmp_path)
    assert found.tables["sockets"].num_rows == 0
    assert values(found)["connections_opened"] == 0


def test_connections_too_short_to_be_sampled_are_a_caution(tmp_path: Path, probe: Path) -> None:
    what = f"for _ in range(400):\n    for end in pair({PORT}):\n        end.close()\n"
    scene(tmp_path, probe, what, interval="1")
    found = sockets.extract(SocketsParams(), tmp_path)
    assert values(found)["connections_opened"] == 800
    assert values(found)["connections_sampled_share"] < 0.9
    assert [caution.kind for caution in found.cautions] == [Kind.UNSAMPLED]


@pytest.mark.parametrize("limit", [{"bytes": "100000"}, {"samples": "200"}], ids=["bytes", "samples"])
def test_limits_are_kept_and_samples_become_rarer(limit: Mapping[str, str], tmp_path: Path, probe: Path) -> None:
    scene(tmp_path, probe, f"ours = pair({PORT})\ntime.sleep(8)\n", interval="0.001", **limit)
    file = tmp_path / "client" / "sockets.tcp"
    samples = read(file)
    of_each = [int((samples.socket == number).sum()) for number in range(2)]
    # The last record, the end, has always room.
    assert file.stat().st_size < int(limit.get("bytes", OPTIONS["--bytes"])) + 1000
    assert max(of_each) <= int(limit.get("samples", OPTIONS["--samples"]))
    assert samples.intervals_s[0] == 0.001 and len(samples.intervals_s) > 1
    assert all(later == 2 * earlier for earlier, later in zip(samples.intervals_s, samples.intervals_s[1:], strict=False))
    assert samples.time_s.max() - samples.time_s.min() > 1, "to the end, not only until half of the room was taken"


STUDY = """
study: sockets
testbeds: {bed: {driver: container}}
topology: {kind: pairs, pairs: 1, link: {rate: 100mbit}}
workload: {kind: iperf3, streams: 2, duration: 6s}
instruments: [sockets]
replicates: 1
"""


def test_streams_of_a_run_are_limited_by_their_link(site: Callable[..., Site], leaves_nothing: None) -> None:
    run = design.runs(load(STUDY, "sockets.yaml", catalogue()))[0]
    place = site()
    execute(run, PLUGINS, place, Outcome(), lambda _: None)
    found = sockets.extract(SocketsParams(), place.artifacts)
    of_client, of_server = values(found), values(found, "server")
    assert of_client["connections_sampled"] == of_server["connections_sampled"] == 3, "two streams, and iperf3's own"
    assert not found.cautions
    assert of_client["network_limited_share"] > 0.5
    assert of_client["application_limited_share"] < 0.9
    assert of_client["cwnd_mean"] > 10 and of_client["srtt_mean"] > 0
    last = {row["socket"]: row for row in found.tables["sockets"].to_pylist() if row["host"] == "server"}
    report = json.loads(next(place.artifacts.glob("client/*.json")).read_text())
    sent, received = (report["end"][f"sum_{way}"]["bytes"] for way in ("sent", "received"))
    # What came after the last samples is missing. What waits in the kernel when iperf3 ends is not in its count of received
    # bytes, but in that of sent ones; iperf3's own messages are more than both.
    assert 0.5 * received < sum(row["bytes_received"] for row in last.values()) < sent + 10_000
    assert of_client["delivery_rate_mean"] > 0
