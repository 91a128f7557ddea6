"""Studies that are carried out with a fault injected into the first run's workload."""

from __future__ import annotations

import dataclasses
import json
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor, wait
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import pytest

from twinbed import design
from twinbed.contracts.bed import Bed
from twinbed.contracts.host import Host
from twinbed.contracts.site import Installed
from twinbed.hosts import stage
from twinbed.hosts.error import HostError
from twinbed.image import Image
from twinbed.lab import execution
from twinbed.lab.study import Ending, Event, PhaseBegan, RunEnded, carry_out
from twinbed.model.run import Phase
from twinbed.registry import PLUGINS, Plugins, catalogue
from twinbed.results.folder import Folder
from twinbed.study.loading import load
from twinbed.workloads import http as http_plan

Harm = Callable[[Bed], None]
HARM_LIMIT_S = 120.0
"""How long a workload may take to come to where it is hurt, and a harm to be done."""
SEGMENTS = 500
"""How many TCP segments a client has sent of a transfer that is hurt."""
_STEP_S = 0.05


class Seen:
    """A driver whose testbeds can be got at while they are up."""

    def __init__(self, driver: Any, beds: list[Bed]) -> None:
        self._driver, self._beds = driver, beds
        self.name, self.params, self.summary = driver.name, driver.params, driver.summary
        self.in_process, self.in_lab = driver.in_process, driver.in_lab

    def check(self, params: Any) -> Any:
        return self._driver.check(params)

    @contextmanager
    def up(self, params: Any, topology: Any, site: Any) -> Iterator[Bed]:
        with self._driver.up(params, topology, site) as bed:
            self._beds.append(bed)
            yield bed


@dataclasses.dataclass(frozen=True)
class Carried:
    ending: Ending
    records: list[dict[str, Any]]
    """In the order of the runs."""
    results: Path


def carry(
    text: str,
    results: Path,
    image: Image,
    probe: Path,
    harm: Harm,
    *,
    plugins: Plugins = PLUGINS,
    testbed: str | None = None,
    short: bool = False,
) -> Carried:
    """Carry a study out; ``harm`` is done once, amid the workload of the first run (of ``testbed``, where it is given).

    A web server is stopped before the workload begins, and goes on after the harm: harm is done once the server has its first
    request, and no workload is over before. A transfer of iperf3 is hurt after its first segments.

    ``short``: the limits at which a run that is hurt ends are tens of seconds; what happens at them is the same at a few. They
    are a few for that run alone, from its workload on: all else may take its time.
    """
    beds: list[Bed] = []
    limits = pytest.MonkeyPatch()
    seen = dataclasses.replace(plugins, drivers={name: Seen(driver, beds) for name, driver in plugins.drivers.items()})
    study = load(text, "faults.yaml", catalogue())
    waiting, begun = [harm], []

    def listener(event: Event) -> None:
        if isinstance(event, RunEnded):
            limits.undo()
        if isinstance(event, PhaseBegan) and event.phase is Phase.COLLECT:
            # On a busy machine a harm that a guest carries out may last longer than the workload.
            wait(begun, HARM_LIMIT_S)
        if not isinstance(event, PhaseBegan) or not waiting or testbed not in (None, event.run.testbed_name):
            return
        if short and event.phase is Phase.UP:
            limits.setattr(http_plan, "ANSWER_LIMIT_S", 2)
            limits.setattr(http_plan, "GRACE_S", 3.0)
        if event.phase is Phase.WORKLOAD:
            if short:
                limits.setattr(execution, "GRACE_S", 6.0)
                limits.setattr(stage, "_STOP_LIMIT_S", 5.0)
            asked = event.run.workload.kind == "http"
            if asked:
                signal_server(beds[-1], "STOP")
            begun.append(pool.submit(_amid_requests if asked else _amid_transfer, waiting.pop(), beds[-1]))

    folder = Folder(results)
    with ThreadPoolExecutor(1) as pool:
        try:
            with folder.locked():
                ending = carry_out(study, design.runs(study), seen, folder, Installed(probe, image), listener)
        finally:
            limits.undo()
        for each in begun:
            each.result()
    records = [json.loads(path.read_text()) for path in (results / "runs").glob("*/run.json")]
    return Carried(ending, sorted(records, key=lambda record: record["position"]), results)


def _amid_requests(harm: Harm, bed: Bed) -> None:
    _until(lambda: _holds_a_request(bed), bed)
    with suppress(HostError):  # a host that is brought down does not answer
        harm(bed)
    with suppress(HostError):
        signal_server(bed, "CONT")


def _amid_transfer(harm: Harm, bed: Bed) -> None:
    client = first(bed, "client")
    before = counted(client, "Tcp", "OutSegs")
    _until(lambda: counted(client, "Tcp", "OutSegs") >= before + SEGMENTS, bed)
    with suppress(HostError):
        harm(bed)


def _until(holds: Callable[[], bool], bed: Bed) -> None:
    deadline = time.monotonic() + HARM_LIMIT_S
    while not holds():
        assert time.monotonic() < deadline, f"{bed.lab}: the workload does not come to where it is hurt"
        time.sleep(_STEP_S)


def signal_server(bed: Bed, name: str) -> None:
    """Send the web server of the first pair a signal."""
    first(bed, "server").run(["sh", "-c", f"kill -{name} $(cat {http_plan.PID_FILE})"], limit_s=5.0)


def first(bed: Bed, role: str) -> Host:
    """Return the host of a role in the first pair: ``client``, or ``client1`` of several."""
    return next(host for name, host in bed.hosts.items() if name.startswith(role))


def _holds_a_request(bed: Bed) -> bool:
    """Return whether bytes of an established connection wait for the server (proc_net_tcp: state 01, rx_queue)."""
    lines = first(bed, "server").read("/proc/net/tcp").decode().splitlines()[1:]
    return any(state == "01" and int(queues.partition(":")[2], 16) for state, queues in (line.split()[3:5] for line in lines))


def counted(host: Host, protocol: str, name: str) -> int:
    """Return a host's counter of the kernel's: ``Tcp OutSegs``, ``TcpExt TCPTimeouts``."""
    text = host.read("/proc/net/snmp") + host.read("/proc/net/netstat")
    heads, values = (line.split() for line in text.decode().splitlines() if line.startswith(f"{protocol}:"))
    return int(values[heads.index(name)])


def processes(*words: str) -> list[int]:
    """Processes in whose command line all the words are."""
    found = []
    for process in Path("/proc").glob("[0-9]*"):
        try:
            command = (process / "cmdline").read_bytes().replace(b"\0", b" ").decode(errors="replace")
        except OSError:
            continue
        if all(word in command for word in words):
            found.append(int(process.name))
    return found
