"""Delay, jitter and loss at a switch's ports by a program on the machine, where the kernel has no netem.

The port of a host's link is then not on the switch. A veth pair is between them: one end is on the switch, and `twinbed-probe
delay` carries frames from the other end to the port, later. A filter in the kernel sends frames from the host past the program.
The port enforces the rate as usual, so frames meet the delay first and then the shaper, as with netem under HTB.

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
    """Return the topology with the emulator that this machine has, if the study leaves it open."""
    link = topology.link
    if link.emulator != "auto" or not link.at("switch").emulates:
        return topology
    emulator = "netem" if _has_netem(machine) else "delay-line"
    return topology.model_copy(update={"link": link.model_copy(update={"emulator": emulator})})


def _has_netem(machine: AgentHost) -> bool:
    """Try netem on the loopback device, which carries nothing yet."""
    made = machine.run(["tc", "qdisc", "add", "dev", "lo", "root", "netem", "delay", "1ms"], check=False).code == 0
    if made:
        machine.run(["tc", "qdisc", "del", "dev", "lo", "root"])
    return made


def shaped(link: Link) -> Link:
    """Return the part of a link that the port's queueing disciplines make."""
    queue = link.queue_packets if link.rate is not None else None
    return link.model_copy(update={"delay": None, "jitter": None, "loss": None, "queue": queue})


def near(port: str) -> str:
    """Return the switch's end of the pair."""
    return f"n{port[1:]}"


def far(port: str) -> str:
    return f"f{port[1:]}"


def pair(port: str, mtu: int) -> str:
    """Plan the pair, as batch text of `ip`. Nobody answers ARP there."""
    made = f"link add {near(port)} mtu {mtu} type veth peer name {far(port)} mtu {mtu}\nlink set {far(port)} arp off up\n"
    return f"{made}link set {near(port)} up\n"


def past(port: str) -> str:
    """Plan the way past the program, as batch text of `tc`: frames from the host go on to the switch."""
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
        return f"{self.machine.name}: the delay line ended: {_error_text(self.running)}" if self.running.ended else None

    def applied(self) -> list[Applied]:
        """Read back the program's settings, and the way of frames past it."""
        link, source = self.link, f"{PROBE} delay"
        with understood(self.machine):
            settings: _Set = loads(self.machine.read(self._file).splitlines()[0])
            result = []
            for port in self.ports:
                carried = [far(port), port] in settings["lines"]
                result += [
                    Applied(port, "emulator", "delay-line", "delay-line" if carried else None, source),
                    Applied(port, "delay", link.delay or 0, settings["delay_ns"] / _NS, source, _rounded(link.delay)),
                    Applied(port, "jitter", link.jitter or 0, settings["jitter_ns"] / _NS, source, _rounded(link.jitter)),
                    Applied(port, "loss", link.loss or 0, settings["loss"], source),
                    Applied(port, "queue", link.queue_packets, settings["limit"], source),
                    self._redirected(port),
                ]
        return result

    def _redirected(self, port: str) -> Applied:
        ask = ("tc", "-j", "filter", "show", "dev", port, "ingress")
        shown = loads(self.machine.run(ask).stdout or b"[]")
        actions = [action for entry in shown for action in entry.get("options", {}).get("actions", [])]
        return Applied(port, "redirect", [far(port)], [action.get("to_dev") for action in actions], " ".join(ask))

    def end(self) -> list[Caution]:
        """End the program, and report how late frames were. Raises HostError where it lost frames that it should not."""
        self.running.signal(signal.SIGTERM)
        if self.running.wait(_READY_LIMIT_S).code != 0:
            raise HostError(f"{self.machine.name}: the delay line failed: {_error_text(self.running)}")
        with understood(self.machine):
            lines: Sequence[_Line] = loads(self.machine.read(self._file).splitlines()[-1])
            if missed := {line["to"]: line["missed"] for line in lines if line["missed"]}:
                raise HostError(
                    f"{self.machine.name}: the delay line was too slow and lost frames"
                    f" ({', '.join(f'{number:,} to {port}' for port, number in missed.items())}): lower the rate, leave a CPU"
                    " free on the machine, or use a machine whose kernel has netem"
                )
            late = [line["late"] for line in lines if line["sent"]]
            median, p99, most = (
                max((line[name] or 0 for line in late), default=0) / 1e3 for name in ("median_ns", "p99_ns", "most_ns")
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
    """Start the program for ports that have the plan of ``past``. Raises HostError where it does not start."""
    argv = [
        *(PROBE, "delay", "--out", f"{machine.artifacts}/{FILE}", "--limit", str(link.queue_packets)),
        *("--delay-us", shaping.us(link.delay), "--jitter-us", shaping.us(link.jitter), "--loss", repr(link.loss or 0.0)),
        *(word for port in ports for word in ("--line", f"{far(port)}:{port}")),
    ]
    running = machine.start(argv)
    running.says(b"ready\n", _READY_LIMIT_S)
    return DelayLine(machine, link, list(ports), running)


def _rounded(seconds: float | None) -> float:
    """Return the relative rounding of a time to whole nanoseconds."""
    return 1e-9 / seconds if seconds else 0.0


def _error_text(running: Running) -> str:
    return bytes(running.stderr).decode(errors="replace").strip() or "it printed nothing"
