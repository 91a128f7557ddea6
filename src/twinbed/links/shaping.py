"""Shaping of packets that leave by a device. HTB or TBF makes a rate; under it netem makes delay, jitter and loss, or a queue
has a given length.

The output of `tc` is read back. The kernel holds a rate in whole bytes a second, and tc cuts it to four or more digits when it
prints it. A burst is held as time, cut by tc to whole
microseconds when printed, and for HTB also when set. netem holds times in ticks of 64 ns and shares as 32-bit fractions.
"""

from __future__ import annotations

import re
from typing import TypedDict

from twinbed.contracts.bed import Applied
from twinbed.model.json import loads
from twinbed.model.topology import Link

QUEUE_LATENCY = "50ms"
"""How long packets may wait in TBF's queue. HTB's leaf keeps the device's own queue of 1,000 packets."""
_UNITS = {"": 1, "K": 10**3, "M": 10**6, "G": 10**9, "T": 10**12}
_BYTES = {"b": (1, 0), "Kb": (1024, 16), "Mb": (1024**2, 1024)}
"""Unit that tc prints after a size -> its bytes, and by how many bytes tc may have rounded a size to a multiple."""
_TIME_CUT_S = {"htb": 2e-6, "tbf": 1.1e-6}
"""Time that may be missing from a burst. HTB: two cuts to a microsecond. TBF: one cut, and one to the kernel's tick of 64
ns."""
_SHARE_CUT = 1e-6
"""Rounding of shares, which tc reads and prints as 32-bit fractions and floats."""


class _Delay(TypedDict, total=False):
    delay: float
    jitter: float


class _Loss(TypedDict, total=False):
    loss: float


_Options = TypedDict("_Options", {"rate": int, "burst": int, "limit": int, "delay": _Delay, "loss-random": _Loss}, total=False)


class Qdisc(TypedDict, total=False):
    """The part of a queueing discipline's JSON from tc that is read here; with counters if they were asked for."""

    kind: str
    root: bool
    handle: str
    options: _Options
    bytes: int
    packets: int
    drops: int
    backlog: int


def plan(device: str, link: Link) -> str:
    """Plan a link as batch text of `tc`; empty where nothing is done to packets."""
    text, parent = "", "root"
    if link.rate is not None:
        burst = link.burst_bytes
        if link.shaper == "tbf":
            text = f"qdisc add dev {device} root handle 1: tbf rate {link.rate}bit burst {burst}b latency {QUEUE_LATENCY}\n"
        else:
            text = (
                f"qdisc add dev {device} root handle 1: htb default 1\n"
                f"class add dev {device} parent 1: classid 1:1 htb rate {link.rate}bit ceil {link.rate}bit"
                f" burst {burst}b cburst {burst}b quantum 60000\n"
            )
        parent = "parent 1:1"
    if link.emulates:
        delay = f" delay {us(link.delay)}us" + (f" {us(link.jitter)}us" if link.jitter else "")
        loss = f" loss random {link.loss * 100:.9g}%" if link.loss is not None else ""
        how = f"netem limit {link.queue_packets}{delay if link.delay is not None else ''}{loss}"
        return f"{text}qdisc add dev {device} {parent} handle 2: {how}\n"
    if link.queue is not None:
        return f"{text}qdisc add dev {device} {parent} handle 2: pfifo limit {link.queue}\n"
    return text


def questions(device: str) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Return the two commands whose output ``applied`` reads: qdiscs as JSON, classes as text (tc has no JSON for HTB's)."""
    return ("tc", "-j", "qdisc", "show", "dev", device), ("tc", "class", "show", "dev", device)


def applied(device: str, link: Link, qdiscs: bytes, classes: str) -> list[Applied]:
    """Read back a device's link. Raises ValueError for other output."""
    source = " ".join(questions(device)[0])
    try:
        entries: list[Qdisc] = loads(qdiscs or b"[]")
        nothing: Qdisc = {}
        root = next((entry for entry in entries if entry.get("root")), nothing)
        second = next((entry for entry in entries if entry.get("handle") == "2:"), nothing)
        return [*_applied_rate(device, link, root, classes), *_applied_leaf(device, link, second, source)]
    except (AttributeError, KeyError, TypeError, ValueError) as error:
        raise ValueError(f"`{source}` did not print qdiscs: {error!r}: {qdiscs[:200]!r}") from None


def _applied_rate(device: str, link: Link, root: Qdisc, classes: str) -> list[Applied]:
    asked_qdisc, asked_class = (" ".join(question) for question in questions(device))
    if link.rate is None or link.burst_bytes is None:
        wanted = "netem" if link.emulates else ("pfifo" if link.queue is not None else None)
        return [Applied(device, "shaper", wanted, root.get("kind"), asked_qdisc)]
    result = [Applied(device, "shaper", link.shaper, root.get("kind"), asked_qdisc)]
    carried = link.rate // 8 * 8
    rates: dict[str, int | None]
    bursts: dict[str, tuple[int | None, int]]
    if link.shaper == "tbf":
        options: _Options = root.get("options", {})
        rates = {"rate": options["rate"] * 8 if "rate" in options else None}
        bursts = {"burst": (options.get("burst"), 0)}
        source, exact = asked_qdisc, carried
    else:
        match = re.search(r"class htb 1:1 .*?rate (\S+) ceil (\S+) burst (\S+) cburst (\S+)", classes)
        rates = {name: _bits(match[at]) if match else None for name, at in (("rate", 1), ("ceil", 2))}
        bursts = {name: _size(match[at]) if match else (None, 0) for name, at in (("burst", 3), ("cburst", 4))}
        source, exact = asked_class, _as_printed(carried)
    tolerance = (link.rate - exact) / link.rate
    result += [Applied(device, name, link.rate, value, source, tolerance) for name, value in rates.items()]
    for name, (value, rounded) in bursts.items():
        cut = _TIME_CUT_S[link.shaper] * link.rate / 8 + 1 + rounded
        result.append(Applied(device, name, link.burst_bytes, value, source, tolerance=cut / link.burst_bytes))
    return result


def _applied_leaf(device: str, link: Link, leaf: Qdisc, source: str) -> list[Applied]:
    """Read back netem, or a queue alone."""
    options: _Options = leaf.get("options", {})
    if not link.emulates:
        if link.queue is None:
            return []
        return [
            Applied(device, "queue_kind", "pfifo", leaf.get("kind"), source),
            Applied(device, "queue", link.queue, options.get("limit"), source),
        ]
    delays: _Delay = options.get("delay", {})
    losses: _Loss = options.get("loss-random", {})
    return [
        Applied(device, "emulator", "netem", leaf.get("kind"), source),
        Applied(device, "queue", link.queue_packets, options.get("limit"), source),
        Applied(device, "delay", link.delay or 0, delays.get("delay", 0), source, _cut(link.delay)),
        Applied(device, "jitter", link.jitter or 0, delays.get("jitter", 0), source, _cut(link.jitter)),
        Applied(device, "loss", link.loss or 0, losses.get("loss", 0), source, _SHARE_CUT),
    ]


def _cut(seconds: float | None) -> float:
    """Return the relative share that may be missing from a time: a tick, and rounding to a microsecond or six digits."""
    return 2e-6 / seconds + 1e-6 if seconds else 0.0


def us(seconds: float | None) -> str:
    """Write a time in microseconds: tc has no shorter unit for netem."""
    return f"{(seconds or 0.0) * 1e6:.9g}"


def _as_printed(rate: int) -> int:
    """Return a rate as tc prints it: in the next larger unit while that is exact, or while there are more than six digits."""
    unit = 1
    while rate >= 1000 and (rate % 1000 == 0 or rate >= 10**6) and unit < _UNITS["T"]:
        rate //= 1000
        unit *= 1000
    return rate * unit


def _bits(text: str) -> int:
    match = re.fullmatch(r"(\d+)([KMGT]?)bit", text)
    if match is None:
        raise ValueError(f"tc did not print a rate: {text!r}")
    return int(match[1]) * _UNITS[match[2]]


def _size(text: str) -> tuple[int, int]:
    """Return a size in bytes, and by how many bytes tc may have rounded it."""
    match = re.fullmatch(r"(\d+)(b|Kb|Mb)", text)
    if match is None:
        raise ValueError(f"tc did not print a size: {text!r}")
    unit, rounded = _BYTES[match[2]]
    return int(match[1]) * unit, rounded
