"""Delay, jitter and loss at a switch's ports where the machine's kernel has no netem: by a program of twinbed's on the machine.

The port of a host's link is then not the switch's own. A veth pair stands between: the switch has its one end, and what arrives
at the other is carried on to the port by `twinbed-probe delay`, later. Frames from the host go the other way without it, by a
filter in the kernel. A rate is enforced at the port as ever, so that frames meet the delay first and then the shaper, as with
netem beneath HTB.

    host == port --(filter)--> far end == near end == switch
                 <--(delay)---
"""

from __future__ import annotations

import signal
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TypedDict

from twinbed.contracts.bed import Applied
from twinbed.hosts.agent import PROBE, AgentHost, Running
from twinbed.hosts.error import HostError
from twinbed.links import shaping
from twinbed.links.network import understood
from twinbed.model.caution import Caution, Kind
from twinbed.model.json import loads
from twinbed.model.topology import Link, Topology

FILE = "delay-line.jsonl"
_READY_LIMIT_S = 30.0
_NS = 1e9


class _Set(TypedDict):
    lines: Sequence[Sequence[str]]
    delay_ns: int
    jitter_ns: int
    loss: float
    limit: int


class _Late(TypedDict):
    median_ns: int | None
    p99_ns: int | None
    most_ns: int | None


_Line = TypedDict(
    "_Line", {"from": str, "to": str, "arrived": int, "sent": int, "lost": int, "missed": int, "late": _Late}, total=False
)


def resolved(machine: AgentHost, topology: Topology) -> Topology:
    """The topology with the emulator that this machine has, where the study leaves it open."""
    link = topology.link
    if link.emulator != "auto" or not link.at("switch").emulates:
        return topology
    emulator = "netem" if _has_netem(machine) else "delay-line"
    return topology.model_copy(update={"link": link.model_copy(update={"emulator": emulator})})


def _has_netem(machine: AgentHost) -> bool:
    """Whether its kernel makes one, on the loopback device, which carries nothing yet."""
    made = machine.run(["tc", "qdisc", "add", "dev", "lo", "root", "netem", "delay", "1ms"], check=False).code == 0
    if made:
        machine.run(["tc", "qdisc", "del", "dev", "lo", "root"])
    return made


def shaped(link: Link) -> Link:
    """What of a link is left for the port's queueing disciplines."""
    queue = link.queue_packets if link.rate is not None else None
    return link.model_copy(update={"delay": None, "jitter": None, "loss": None, "queue": queue})


def near(port: str) -> str:
    """The switch's end of the pair."""
    return f"n{port[1:]}"


def far(port: str) -> str:
    return f"f{port[1:]}"


def pair(port: str, mtu: int) -> str:
    """Batch text of `ip`. Nobody answers ARP there."""
    made = f"link add {near(port)} mtu {mtu} type veth peer name {far(port)} mtu {mtu}\nlink set {far(port)} arp off up\n"
    return f"{made}link set {near(port)} up\n"


def past(port: str) -> str:
    """Batch text of `tc`: what comes from the host goes on to the switch."""
    return (
        f"qdisc add dev {port} ingress\n"
        f"filter add dev {port} ingress protocol all u32 match u32 0 0 action mirred egress redirect dev {far(port)}\n"
    )


@dataclass(frozen=True)
class DelayLine:
    """The program that carries the frames of a machine's ports."""

    machine: AgentHost
    link: Link
    ports: Sequence[str]
    running: Running

    def trouble(self) -> str | None:
        return f"{self.machine.name}: the delay line ended: {_said(self.running)}" if self.running.ended else None

    def applied(self) -> list[Applied]:
        """What the program says that it does, and where frames go that pass it by."""
        link, source = self.link, f"{PROBE} delay"
        with understood(self.machine):
            found: _Set = loads(self.machine.read(self._file).splitlines()[0])
            result = []
            for port in self.ports:
                carried = [far(port), port] in found["lines"]
                result += [
                    Applied(port, "emulator", "delay-line", "delay-line" if carried else None, source),
                    Applied(port, "delay", link.delay or 0, found["delay_ns"] / _NS, source, _rounded(link.delay)),
                    Applied(port, "jitter", link.jitter or 0, found["jitter_ns"] / _NS, source, _rounded(link.jitter)),
                    Applied(port, "loss", link.loss or 0, found["loss"], source),
                    Applied(port, "queue", link.queue_packets, found["limit"], source),
                    self._redirected(port),
                ]
        return result

    def _redirected(self, port: str) -> Applied:
        ask = ("tc", "-j", "filter", "show", "dev", port, "ingress")
        shown = loads(self.machine.run(ask).stdout or b"[]")
        actions = [action for entry in shown for action in entry.get("options", {}).get("actions", [])]
        return Applied(port, "redirect", [far(port)], [action.get("to_dev") for action in actions], " ".join(ask))

    def end(self) -> list[Caution]:
        """Ends it, and says how late frames were. Raises HostError where it lost frames that it was not told to lose."""
        self.running.signal(signal.SIGTERM)
        if self.running.wait(_READY_LIMIT_S).code != 0:
            raise HostError(f"{self.machine.name}: the delay line failed: {_said(self.running)}")
        with understood(self.machine):
            lines: Sequence[_Line] = loads(self.machine.read(self._file).splitlines()[-1])
            if missed := {line["to"]: line["missed"] for line in lines if line["missed"]}:
                raise HostError(
                    f"{self.machine.name}: the delay line was too slow, and lost frames that it should not"
                    f" ({', '.join(f'{number:,} to {port}' for port, number in missed.items())}): lower the rate, leave a CPU"
                    " free on the machine, or use one whose kernel has netem"
                )
            late = [line["late"] for line in lines if line["sent"]]
            median, p99, most = (
                max((each[name] or 0 for each in late), default=0) / 1e3 for name in ("median_ns", "p99_ns", "most_ns")
            )
        return [
            Caution(
                Kind.DELAY_LINE,
                f"half of the frames late by up to {median:.0f} µs, 99 % by up to {p99:.0f} µs, the last by {most:.0f} µs",
            )
        ]

    @property
    def _file(self) -> str:
        return f"{self.machine.artifacts}/{FILE}"


def start(machine: AgentHost, link: Link, ports: Sequence[str]) -> DelayLine:
    """For ports that ``past`` was done to. Raises HostError where it does not start."""
    argv = [
        *(PROBE, "delay", "--out", f"{machine.artifacts}/{FILE}", "--limit", str(link.queue_packets)),
        *("--delay-us", shaping.us(link.delay), "--jitter-us", shaping.us(link.jitter), "--loss", repr(link.loss or 0.0)),
        *(word for port in ports for word in ("--line", f"{far(port)}:{port}")),
    ]
    running = machine.start(argv)
    running.says(b"ready\n", _READY_LIMIT_S)
    return DelayLine(machine, link, list(ports), running)


def _rounded(seconds: float | None) -> float:
    """The program counts in whole nanoseconds."""
    return 1e-9 / seconds if seconds else 0.0


def _said(running: Running) -> str:
    return bytes(running.stderr).decode(errors="replace").strip() or "it said nothing"
