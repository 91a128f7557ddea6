"""The instrument ``syscalls`` on real hosts. What ab asks of the kernel is known from strace: the same program of the same
image, with the same arguments, against a server that answers alike.

Not all of it depends on ab alone. Whether nginx's header and body arrive at once, and so are one read or two, is the network's
doing, and with it how often ab waits. What does not is equal to the last call: sockets, writes, files opened, and every read of
a file. Of the reads of sockets the bytes are equal, and their number lies between two and three a request (data once or twice,
and the end).
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
from collections import Counter
from collections.abc import Callable
from pathlib import Path

import pytest

from twinbed import design
from twinbed.contracts.extracted import Extracted
from twinbed.contracts.site import Site
from twinbed.image import Image
from twinbed.instruments.syscalls import SyscallsParams, syscalls
from twinbed.lab.execution import Outcome, execute
from twinbed.registry import PLUGINS, catalogue
from twinbed.study.loading import load
from twinbed.workloads.http import http

pytestmark = [pytest.mark.privileged, pytest.mark.skipif(os.geteuid() != 0, reason="makes namespaces")]

REQUESTS = 50
STUDY = f"""
study: calls
testbeds: {{bed: {{driver: DRIVER}}}}
workload: {{kind: http, duration: 10s, max_requests: {REQUESTS}, payload: 500B}}
instruments: {{syscalls: {{mode: MODE}}}}
replicates: 1
"""
DETERMINED = ("socket", "write", "fcntl", "openat", "close", "mmap", "mprotect", "newfstatat", "set_robust_list")

SERVE_AND_TRACE = """
import socket, subprocess, sys, threading
rootfs, log, body, *argv = sys.argv[1:]
for command in (["ip", "link", "set", "lo", "up"], ["mount", "-t", "tmpfs", "none", f"{rootfs}/run"],
                ["mount", "--bind", "/dev", f"{rootfs}/dev"], ["mount", "-t", "proc", "proc", f"{rootfs}/proc"]):
    subprocess.run(command, check=True)
listening = socket.create_server(("127.0.0.1", 80))
answer = b"HTTP/1.1 200 OK\\r\\nServer: nginx\\r\\nContent-Length: %d\\r\\n\\r\\n" % int(body) + b"x" * int(body)

def serve():
    while True:
        connection, _ = listening.accept()
        with connection:
            connection.recv(4096)
            connection.sendall(answer)

threading.Thread(target=serve, daemon=True).start()
sys.exit(subprocess.run(["strace", "-f", "-y", "-o", log, "chroot", rootfs, *argv], stdout=subprocess.PIPE).returncode)
"""


def measured(site: Callable[..., Site], driver: str, mode: str, beside: str = "") -> tuple[Extracted, Extracted]:
    """What the instrument and ab itself say of a run. ``beside``: other instruments."""
    text = STUDY.replace("DRIVER", driver).replace("MODE}", f"MODE}}{beside}").replace("MODE", mode)
    run = design.runs(load(text, "calls.yaml", catalogue()))[0]
    place = site()
    execute(run, PLUGINS, place, Outcome(), lambda _: None)
    workload = http.parse(run.workload.params, place.artifacts)
    return syscalls.extract(SyscallsParams(mode=mode), place.artifacts), workload


def of_ab(extracted: Extracted) -> dict[str, dict[str, int]]:
    return {row["call"]: row for row in extracted.tables["system_calls"].to_pylist() if row["program"] == "ab"}


def straced(image: Image, folder: Path) -> list[str]:
    """The lines of strace of ab, from its execve on."""
    plan = http.plan(http.params(duration=10, max_requests=REQUESTS), [("client", "server", "127.0.0.1")])
    argv = [argument.replace("{artifacts}", "/run") for argument in plan.clients[0].argv]
    log = folder / "strace"
    script = [sys.executable, "-c", SERVE_AND_TRACE, str(image.rootfs), str(log), "500", *argv]
    subprocess.run(["unshare", "-nmpf", "--kill-child", *script], check=True, timeout=60)
    lines = log.read_text().splitlines()
    return lines[
        next(at for at, line in enumerate(lines) if re.search(r'execve\("\S*/ab"', line) and line.endswith(" = 0")) + 1 :
    ]


def test_calls_of_ab_are_those_that_strace_sees(
    site: Callable[..., Site], image: Image, tmp_path: Path, leaves_nothing: None
) -> None:
    lines = straced(image, tmp_path)
    calls = Counter(re.sub(r"^\d+ +", "", line).partition("(")[0] for line in lines)
    extracted, workload = measured(site, "container", "count")
    counted = of_ab(extracted)
    assert {call: counted[call]["calls"] for call in DETERMINED} == {call: calls[call] for call in DETERMINED}
    assert counted["socket"]["calls"] == REQUESTS + 1, "a connection a request, and one to ask for addresses"
    reads = [line for line in lines if re.search(r" read\(", line)]
    of_files = [int(line.rpartition(" = ")[2]) for line in reads if "<socket:" not in line and "<TCP" not in line]
    assert calls["read"] - len(of_files) == 2 * REQUESTS
    assert 2 * REQUESTS <= counted["read"]["calls"] - len(of_files) <= 3 * REQUESTS
    (received,) = {value.value for value in workload.values if value.metric == "transferred_bytes"}
    assert counted["read"]["bytes"] - sum(of_files) == received
    values = {(value.metric, value.host): value.value for value in extracted.values}
    # recvmsg: the answer of the kernel about its addresses.
    assert values["read_calls", "client"] == sum(counted[call]["calls"] for call in ("read", "pread64", "recvmsg"))
    assert values["system_calls_lost", "client"] == 0
    assert {row["program"] for row in extracted.tables["system_calls"].to_pylist()} == {"ab", "nginx"}
    assert {row["host"] for row in extracted.tables["system_calls"].to_pylist() if row["program"] == "nginx"} == {"server"}


def test_the_workloads_calls_are_the_same_beside_other_instruments(site: Callable[..., Site], leaves_nothing: None) -> None:
    (alone, _), (beside, _) = (measured(site, "container", "count", more) for more in ("", ", latency: {}, packets: {}"))
    for one in (alone, beside):
        assert {row["program"] for row in one.tables["system_calls"].to_pylist()} == {"ab", "nginx"}
    counted, expected = of_ab(beside), of_ab(alone)
    assert {call: counted[call]["calls"] for call in DETERMINED} == {call: expected[call]["calls"] for call in DETERMINED}
    values = [{(value.metric, value.host): value.value for value in one.values} for one in (alone, beside)]
    for host in ("client", "server"):
        without, cost = (each["instrument_calls", host] for each in values)
        assert without == 0 and cost is not None and cost > 0


GUEST = "mixed, client: {driver: qemu}, server: {driver: container}"


@pytest.mark.parametrize(("driver", "mode"), [("container", "trace"), (GUEST, "count"), (GUEST, "trace")])
def test_every_place_and_mode(site: Callable[..., Site], driver: str, mode: str, leaves_nothing: None) -> None:
    extracted, _ = measured(site, driver, mode)
    counted = of_ab(extracted)
    assert counted["socket"]["calls"] == REQUESTS + 1
    assert counted["read"]["bytes"] > 500 * REQUESTS
    assert [row["method"] for row in extracted.tables["system_call_probes"].to_pylist()] == ["bpf", "bpf"]
    assert not extracted.cautions
