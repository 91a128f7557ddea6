"""Workload ``replay``: both hosts of a pair send the packets of a capture again, each its own side, at the times of the
capture.

Runs ``tcpdump`` on both hosts to record what arrives, then ``tcpreplay`` 4.4 on both, started together.  The capture is split
and rewritten before the run (``readers/replay/sides``).

Limits: both programs start at the same moment, but before its first packet each loads and opens the interface, which takes 1 to
20 ms on containers and about 100 ms on emulated guests.  The metric ``replay_start_skew`` has the difference between the
sides. Above 1 ms a caution says that an answer may come before its question; a slower ``speed`` helps. Nothing answers.  A
packet is sent at its time whether or not the packet that it answers has arrived.  No TCP slows down or sends again on a slow
link, so packets above a link's rate are lost in its queue.  IPv4 over Ethernet; fragments and packets longer than 1500 bytes
are left out.  It runs only in labs: hosts over SSH are refused, since replayed packets belong only on a lab's network. Source:
tcpreplay(1) of 4.4.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Iterator, Mapping, Sequence
from functools import lru_cache
from pathlib import Path
from typing import TypedDict

from pydantic import Field, model_validator

from twinbed.contracts.command import Command
from twinbed.contracts.extracted import Extracted
from twinbed.contracts.params import Unfit, WorkloadParams
from twinbed.contracts.workload import Workload, WorkloadPlan
from twinbed.metrics.metric import Value
from twinbed.metrics.replay import METRICS, UNITS
from twinbed.model import named_file
from twinbed.model.caution import Caution, Kind
from twinbed.model.json import loads
from twinbed.model.services import Service
from twinbed.model.topology import Topology
from twinbed.model.units import Duration
from twinbed.readers import tcpdump
from twinbed.readers.clients import total
from twinbed.readers.replay import pcap, sample
from twinbed.readers.replay.sides import EXPERIMENTAL, Sides, mac, split

BEGIN_AND_END_S = 2.0
LARGEST_BYTES = 64 * 2**20
"""The largest capture: it is held in memory, and copied to both hosts."""


class ReplayParams(WorkloadParams):
    """Settings of the capture and the speed of its replay."""

    capture: str | None = Field(
        None,
        examples=["conversation.pcap"],
        description="pcap file of Ethernet, from the current folder; null: three built-in HTTP requests, one with an attack",
    )
    capture_sha256: str | None = Field(
        None,
        pattern="^[0-9a-f]{64}$",
        examples=["0000000000000000000000000000000000000000000000000000000000000000"],
        description="SHA-256 of the capture, which ties a run to its content; null: of the current file",
    )
    speed: float = Field(1.0, ge=0.01, le=100, description="factor by which the replay is faster than the capture")
    max_packets: int = Field(100_000, ge=1, le=1_000_000, description="most packets to replay, from the capture's beginning")
    duration: Duration = Field(
        60.0,
        gt=0,
        le=3600,
        description="longest part of the capture's time to replay, from its beginning; the speed changes how long that takes",
    )

    @model_validator(mode="after")
    def _with_hash(self) -> ReplayParams:
        if self.capture is not None and self.capture_sha256 is None:
            object.__setattr__(self, "capture_sha256", hashlib.sha256(_read(self.capture)).hexdigest())
        return self

    def content(self) -> bytes:
        """Return the capture. Raises ValueError where the file is missing or has changed."""
        if self.capture is None:
            return sample.capture()
        content = _read(self.capture)
        if hashlib.sha256(content).hexdigest() != self.capture_sha256:
            raise ValueError(f"{self.capture} has changed: its SHA-256 should be {self.capture_sha256}")
        return content

    @property
    def lab_only(self) -> str:
        return "replayed packets must not reach another network"

    def unfit(self, topology: Topology) -> Unfit | None:
        if topology.routers:
            message = "cannot be used: replayed packets carry hardware addresses that no router has"
            return Unfit("kind", message, "a topology without routers")
        return None

    def estimate_seconds(self) -> float:
        try:
            times = [frame.time_ns for frame in _frames_of(self.content())]
        except ValueError:  # planning the run reports it
            times = []
        span_s = (max(times) - min(times)) / 1e9 if times else self.duration
        return BEGIN_AND_END_S + min(span_s, self.duration) / self.speed


@lru_cache(maxsize=4)
def _frames_of(content: bytes) -> Sequence[pcap.Frame]:
    return pcap.read(content)


@lru_cache(maxsize=4)
def _read(file: str) -> bytes:
    """Return the file, if it is a capture: no other file of this machine is read, hashed or copied to hosts."""
    content = named_file.content(file, LARGEST_BYTES)
    try:
        pcap.order(content)
    except ValueError as error:
        raise ValueError(f"{file}: {error}") from None
    return content


CAPTURE = "/run/twinbed-replay.pcap"
DEVICE = "eth0"
"""The NIC of every host of a lab."""
REPORT, ARRIVED, SIDES = "tcpreplay.txt", "arrived.cap", "replay.json"
GRACE_S = 30.0
SNAPLEN = 96
BUFFER_BYTES = 16 * 2**20


@lru_cache(maxsize=4)
def _split(params: ReplayParams, client: str, server: str) -> Sides:
    return split(params.content(), client, server, params.max_packets, params.duration)


def workload_plan(params: ReplayParams, pairs: Sequence[tuple[str, str, str]]) -> WorkloadPlan:
    files, receivers, senders = [], [], []
    for client, server, address in pairs:
        asking = client_of(address)
        sides = _split(params, asking, address)
        for host, content, offsets, peer in (
            (client, sides.client, sides.client_offsets_ns, address),
            (server, sides.server, sides.server_offsets_ns, asking),
        ):
            side = {
                "offsets_ns": [round(offset / params.speed) for offset in offsets],
                "left_out": dict(sides.left_out),
                "notes": dict(sides.notes),
            }
            files += [(host, CAPTURE, content), (host, f"{{artifacts}}/{SIDES}", json.dumps(side).encode())]
            receivers.append(
                tcpdump.command(
                    DEVICE,
                    ARRIVED,
                    snaplen=SNAPLEN,
                    buffer_bytes=BUFFER_BYTES,
                    on=host,
                    expression=("ether", "src", mac(peer), "and", "ip", "or", "ether", "proto", f"0x{EXPERIMENTAL:x}"),
                )
            )
            argv = ("tcpreplay", "-i", DEVICE, "--preload-pcap", f"--multiplier={params.speed:g}", CAPTURE)
            limit_s = max(offsets, default=0) / 1e9 / params.speed + GRACE_S
            senders.append(Command(host, argv, REPORT, limit_s=limit_s, memory_bytes=4 * 2**20 + 2 * len(content)))
    # The warm-up brings the program into memory, so that both sides start as fast as possible.
    warm_up = [Command(sender.host, ("tcpreplay", "--version"), "warm-up.txt") for sender in senders]
    return WorkloadPlan(files=files, servers=receivers, warm_up=warm_up, clients=senders)


def client_of(server_address: str) -> str:
    """Return the address of a server's client: the one before it, as ``links.layout`` assigns them."""
    head, _, last = server_address.rpartition(".")
    return f"{head}.{int(last) - 1}"


CLIENT, SERVER = "client", "server"
_SENT = re.compile(r"^Actual: (\d+) packets \(\d+ bytes\) sent in ([\d.]+) seconds", re.MULTILINE)
_FAILED = re.compile(r"^\s*Failed packets:\s+(\d+)$", re.MULTILINE)
SKEW_LIMIT_S = 0.001
"""Time between the two sides' first frames that is worth a caution; hosts of a local network answer sooner."""
_MARKS = 1
"""Frames before the packets of each side."""

Numbers = dict[str, float | None]


def read(artifacts: Path) -> Extracted:
    """Read the artifacts. Raises FileNotFoundError or ValueError, which names the missing or wrong file."""
    reports = sorted(artifacts.glob(f"*/{REPORT}"))
    hosts = {file.parent.name: file.parent for file in reports}
    pairs = [(host, host.replace(CLIENT, SERVER, 1)) for host in hosts if host.startswith(CLIENT)]
    if not pairs or any(server not in hosts for _, server in pairs):
        raise FileNotFoundError(f"{artifacts} lacks {REPORT} of a client and of its server")
    numbers = {client: _pair(hosts[client], hosts[server]) for client, server in pairs}
    values = list(_values(numbers))
    return Extracted(values, {}, list(_cautions(hosts, [client for client, _ in pairs])))


def _values(numbers: Mapping[str, Numbers]) -> Iterator[Value]:
    if len(numbers) > 1:
        for host, own in numbers.items():
            yield from (Value(name, number, UNITS[name], host) for name, number in own.items())
    for name in UNITS:
        of_hosts = [own[name] for own in numbers.values()]
        yield Value(name, _together(name, of_hosts), UNITS[name])


def _together(name: str, numbers: Sequence[float | None]) -> float | None:
    if len(numbers) == 1:
        return numbers[0]
    if name == "arrived_share":
        return None if None in numbers else sum(number for number in numbers if number is not None) / len(numbers)
    if name in ("replay_duration", "replay_timing_error", "replay_start_skew"):
        return None if None in numbers else max(number for number in numbers if number is not None)
    return total(numbers)


def _pair(client: Path, server: Path) -> Numbers:
    """Return a pair's numbers: the client's packets as they arrive at the server, and the other way round."""
    sides = [_side(client, server), _side(server, client)]
    sent = total([side["sent"] for side in sides])
    arrived = total([side["arrived"] for side in sides])
    duration = max((side["seconds"] for side in sides if side["seconds"] is not None), default=None)
    errors = [side["error"] for side in sides if side["sent"]]
    return {
        "sent_packets": sent,
        "sent_packets_per_second": sent / duration if sent is not None and duration else None,
        "failed_packets": total([side["failed"] for side in sides]),
        "arrived_packets": arrived,
        "arrived_share": arrived / sent if arrived is not None and sent else None,
        "replay_duration": duration,
        "replay_timing_error": None if None in errors else max((error for error in errors if error is not None), default=None),
        "replay_start_skew": _skew(client),
        "left_out_packets": sum(_read_sides(client)["left_out"].values()),
    }


def _side(sender: Path, receiver: Path) -> Numbers:
    text = (sender / REPORT).read_text(errors="replace")
    sent, failed = _SENT.search(text), _FAILED.search(text)
    if sent is None or failed is None:
        raise ValueError(
            f"{sender.name}/{REPORT}: should have `Actual: N packets ... sent in S seconds` and `Failed packets: N`"
        )
    due = _read_sides(sender)["offsets_ns"]
    count = int(sent[1]) - _MARKS
    file = receiver / ARRIVED
    times = [frame.time_ns for frame in _frames(file) if not _is_mark(frame)]
    return {
        "sent": count,
        "failed": int(failed[1]),
        "seconds": float(sent[2]),
        "arrived": len(times),
        "error": _error(due, times) if len(times) == len(due) == count else None,
    }


def _frames(file: Path) -> Sequence[pcap.Frame]:
    try:
        return pcap.read(file.read_bytes())
    except ValueError as error:
        raise ValueError(f"{file.parent.name}/{file.name}: {error}") from error


def _is_mark(frame: pcap.Frame) -> bool:
    return frame.data[12:14] == EXPERIMENTAL.to_bytes(2, "big")


def _skew(host: Path) -> float | None:
    """Return the time between both sides' marks, the host's as sent and the other's as received; None where one is missing."""
    marks = {frame.data[6:12]: frame.time_ns for frame in _frames(host / ARRIVED) if _is_mark(frame)}
    return (max(marks.values()) - min(marks.values())) / 1e9 if len(marks) == 2 else None


def _error(due_ns: Sequence[int], times_ns: Sequence[int]) -> float | None:
    """Return the timing error of packets that all arrived; None without packets."""
    import numpy as np

    if not due_ns:
        return None
    due, came = np.array(due_ns), np.array(times_ns)
    return float(np.quantile(np.abs((came - came[0]) - (due - due[0])), 0.95)) / 1e9


class _SidesFile(TypedDict):
    """The file that the plan puts next to the capture."""

    offsets_ns: Sequence[int]
    left_out: Mapping[str, int]
    notes: Mapping[str, int]


def _read_sides(host: Path) -> _SidesFile:
    sides_file: _SidesFile = loads((host / SIDES).read_bytes())
    return sides_file


def _cautions(hosts: Mapping[str, Path], clients: Sequence[str]) -> Iterator[Caution]:
    for client in clients:
        sides_file = _read_sides(hosts[client])
        skew = _skew(hosts[client])
        if skew is not None and skew > SKEW_LIMIT_S:
            apart = f"{client}: {skew * 1e3:.3g} ms between its first frame and its server's"
            yield Caution(Kind.SKEWED_START, f"{apart}: answers may come before their questions")
        parts = [f"{count} left out: {why}" for why, count in sides_file["left_out"].items() if why != "beyond a limit"]
        parts += [f"{count} {why}" for why, count in sides_file["notes"].items()]
        if parts:
            yield Caution(Kind.REPLAYED_OTHERWISE, f"{client}: {'; '.join(parts)}")


class Replay(Workload[ReplayParams]):
    """The workload."""

    name = "replay"
    params = ReplayParams
    summary = "a capture that both sides send again with its timing (tcpreplay)"
    also = ("pcap", "tcpreplay", "capture", "playback")
    files = ("tcpreplay.*", "replay.json", "arrived.cap", "arrived.tcpdump", "arrived.tcpdump.err", "warm-up.*")
    raw = "single packets that arrived"
    metrics = METRICS
    work = "sent_packets"
    rate = "sent_packets_per_second"

    def plan(self, params: ReplayParams, pairs: Sequence[tuple[str, str, str]]) -> WorkloadPlan:
        return workload_plan(params, pairs)

    def services(self, params: ReplayParams) -> Sequence[Service]:
        return [Service(protocol, None) for protocol in ("tcp", "udp", "icmp")]

    def parse(self, params: ReplayParams, artifacts: Path) -> Extracted:
        return read(artifacts)


replay = Replay()
