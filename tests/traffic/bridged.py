"""Two hosts at a bridge whose ports are captured, with the probe's stations on both: a scene in namespaces of its own.

``python bridged.py FOLDER PROBE WHAT`` is started under unshare; WHAT is ``plain``, ``trace`` (the kernel's own tracefs records
too), ``sleep`` (the server sleeps between read and write), ``queue`` (a token bucket before the server's driver) or ``busy`` (a
program of higher priority keeps the server's CPU busy most of the time).
"""

from __future__ import annotations

import json
import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Sequence
from pathlib import Path

REQUESTS = 24
RING_BYTES = 2**24
"""Of each CPU: room for all events while other work keeps the probe from reading."""
CLIENT, SERVER, PORT = "10.99.7.1", "10.99.7.2", 8080
SLEEP_S = 0.02
BODY_BYTES = 1200
BUSY_S, IDLE_S = 0.004, 0.001
"""Of the server's CPU, in turn. A request comes when the next piece has begun, as one follows the last by half of one."""
TRACED = {
    "net/net_dev_queue": 'name == "{}"',
    "net/net_dev_start_xmit": 'name == "{}"',
    "net/netif_receive_skb": 'name == "{}"',
}
NAME = "tb-server"
"""Of the server's thread, by which its calls are found: thread ids differ between PID namespaces."""
INSTANCE = "twinbed-test"


def sh(line: str) -> None:
    subprocess.run(["sh", "-ec", line], check=True, stdout=subprocess.DEVNULL)


def say(word: str) -> None:
    sys.stdout.write(f"{word}\n")
    sys.stdout.flush()


def network() -> None:
    sh("mount -t tmpfs none /run/netns 2>/dev/null || { mkdir -p /run/netns && mount -t tmpfs none /run/netns; }")
    sh("ip link set lo up; sysctl -qw net.ipv6.conf.all.disable_ipv6=1; ip link add br0 type bridge; ip link set br0 up")
    macs = {"c": "02:00:00:00:07:01", "s": "02:00:00:00:07:02"}
    for host, address in (("c", CLIENT), ("s", SERVER)):
        inside = f"ip -n {host}"
        sh(f"ip netns add {host}; ip link add p{host} type veth peer name {host}0 netns {host}")
        sh(f"{inside} link set {host}0 address {macs[host]} up; {inside} addr add {address}/24 dev {host}0")
        sh(f"ip link set p{host} master br0 up; {inside} link set lo up")
    # No ARP, so that all packets are the connections'.
    sh(f"ip -n c neigh replace {SERVER} dev c0 lladdr {macs['s']} nud permanent")
    sh(f"ip -n s neigh replace {CLIENT} dev s0 lladdr {macs['c']} nud permanent")


def ask(pause_s: float) -> None:
    for _ in range(REQUESTS):
        time.sleep(pause_s)
        with socket.create_connection((SERVER, PORT)) as asking:
            asking.sendall(b"GET / HTTP/1.0\r\n\r\n")
            while asking.recv(1 << 16):
                pass


def serve(pause_s: float) -> None:
    """One request after the other, until it is told to end."""
    Path("/proc/self/comm").write_text(NAME)
    with socket.create_server((SERVER, PORT)) as listening:
        say("ready")
        while True:
            asked, _ = listening.accept()
            with asked:
                asked.recv(1 << 16)
                if pause_s:
                    time.sleep(pause_s)
                head = b"HTTP/1.0 200 OK\r\nContent-Length: %d\r\n\r\n" % BODY_BYTES
                asked.sendall(head + bytes(BODY_BYTES))


def occupy() -> None:
    """Most of a CPU, before all programs of lower priority."""
    os.sched_setscheduler(0, os.SCHED_FIFO, os.sched_param(2))
    say("ready")
    while True:
        end = time.monotonic() + BUSY_S
        while time.monotonic() < end:
            pass
        time.sleep(IDLE_S)


def start(argv: Sequence[str], ready: str = "ready") -> subprocess.Popen[str]:
    started = subprocess.Popen(argv, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    assert started.stdout is not None
    for line in started.stdout:
        if ready in line:
            return started
    raise RuntimeError(f"{argv}: ended without a word")


def main(folder: Path, probe: str, what: str) -> None:
    network()
    own = [sys.executable, __file__, str(folder), probe]
    at = {host: ["ip", "netns", "exec", host] for host in "cs"}
    pin = ["taskset", "-c"]
    if what == "queue":
        # A token for one answer, and one more every 50 ms: a busy machine makes a request in less.
        sh("ip netns exec s tc qdisc add dev s0 root tbf rate 250kbit burst 1600 limit 100kb")
    running = []
    for port, host in (("pc", "client"), ("ps", "server")):
        capture = f"{folder}/{host}.pcap"
        words = [
            "tcpdump",
            "-i",
            port,
            "-U",
            "--immediate-mode",
            "-w",
            capture,
            "--time-stamp-precision=nano",
            "-s",
            "200",
            "-Z",
            "root",
        ]
        running.append(start(words, "listening on"))
    for host, name, peer in (("c", "client", SERVER), ("s", "server", CLIENT)):
        (folder / name).mkdir()
        out = ["--out", f"{folder}/{name}/kernel.stations", "--bytes", str(2**26), "--ring", str(RING_BYTES), "--share", "1"]
        running.append(start([*at[host], probe, "stations", *out, "--peer", peer]))
    cpu = str(min(os.sched_getaffinity(0)))
    # Before all other work, so that the server waits for the busy program alone.
    on_busy_cpu = ["chrt", "--fifo", "1", *pin, cpu] if what == "busy" else []
    server = start([*at["s"], *on_busy_cpu, *own, "serve", str(SLEEP_S if what == "sleep" else 0)])
    if what == "busy":
        running.append(start([*pin, cpu, *own, "occupy"]))
    traced = Tracing() if what == "trace" else None
    other = str(max(os.sched_getaffinity(0)))
    asking = [*pin, other, *own, "ask", str(BUSY_S / 2)] if what == "busy" else [*own, "ask", "0"]
    subprocess.run([*at["c"], *asking], check=True)
    time.sleep(0.1)  # the last packets, which belong to no request
    if traced:
        (folder / "trace").write_text(traced.end())
    real_less_monotonic_ns = time.clock_gettime_ns(time.CLOCK_REALTIME) - time.clock_gettime_ns(time.CLOCK_MONOTONIC)
    for each in [server, *reversed(running)]:
        each.send_signal(signal.SIGTERM)
        each.wait()
    say(json.dumps(real_less_monotonic_ns))


class Tracing:
    """The same tracepoints as the kernel's own text, in a private instance of tracefs."""

    def __init__(self) -> None:
        self._folder = Path("/run/netns/tracing")
        self._folder.mkdir()
        sh(f"mount -t tracefs none {self._folder}")
        self._instance = self._folder / "instances" / f"{INSTANCE}-{os.getpid()}"
        self._instance.mkdir()
        (self._instance / "trace_clock").write_text("mono")
        (self._instance / "buffer_size_kb").write_text("4096")
        for event, condition in TRACED.items():
            self._event(event, condition.format("s0"))
        self._event("raw_syscalls/sys_exit", f'comm == "{NAME}"')
        (self._instance / "tracing_on").write_text("1")

    def _event(self, event: str, condition: str) -> None:
        folder = self._instance / "events" / event
        (folder / "filter").write_text(condition)
        (folder / "enable").write_text("1")

    def end(self) -> str:
        text = (self._instance / "trace").read_text()
        self._instance.rmdir()
        return text


if __name__ == "__main__":
    where, program, what, *more = sys.argv[1:]
    match what:
        case "serve":
            serve(float(more[0]))
        case "ask":
            ask(float(more[0]))
        case "occupy":
            occupy()
        case _:
            main(Path(where), program, what)
