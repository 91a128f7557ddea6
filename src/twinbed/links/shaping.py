"""The rate of a link: HTB or TBF on the switch's end, towards the host.  With both ends of a path so shaped, each direction
passes exactly one shaper.

Read back from `tc`: rates to three digits (tc rounds what it prints), bursts to what a microsecond carries (tc's unit of time).
"""

from __future__ import annotations

import json
import re
from typing import Any

from twinbed.model.plugin import Applied
from twinbed.model.topology import Link

QUEUE_LATENCY = "50ms"
"""TBF's queue: what may wait for its turn. HTB's leaf keeps the device's own queue of 1,000 packets."""
_UNITS = {"": 1, "K": 1e3, "M": 1e6, "G": 1e9, "T": 1e12}
_BYTES = {"b": 1, "Kb": 1024, "Mb": 1024**2, "Gb": 1024**3}


def plan(device: str, link: Link) -> str:
    """`tc` batch text; empty where the link is not shaped."""
    if link.rate is None:
        return ""
    burst = link.burst_bytes
    if link.shaper == "tbf":
        return f"qdisc add dev {device} root handle 1: tbf rate {link.rate}bit burst {burst}b latency {QUEUE_LATENCY}\n"
    return (
        f"qdisc add dev {device} root handle 1: htb default 1\n"
        f"class add dev {device} parent 1: classid 1:1 htb rate {link.rate}bit ceil {link.rate}bit"
        f" burst {burst}b cburst {burst}b quantum 60000\n"
    )


def questions(device: str) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """The two commands whose output ``applied`` reads: qdiscs as JSON, classes as text (tc has no JSON for HTB's)."""
    return ("tc", "-j", "qdisc", "show", "dev", device), ("tc", "class", "show", "dev", device)


def applied(device: str, link: Link, qdiscs: bytes, classes: str) -> list[Applied]:
    """What is on the device. Raises ValueError when tc said something else."""
    asked_qdisc, asked_class = (" ".join(question) for question in questions(device))
    root: dict[str, Any] = next((entry for entry in json.loads(qdiscs or b"[]") if entry.get("root")), {})
    if link.rate is None:
        return [Applied(device, "shaper", None, root.get("kind"), asked_qdisc)]
    result = [Applied(device, "shaper", link.shaper, root.get("kind"), asked_qdisc)]
    burst_granularity = link.rate / 8e6 / (link.burst_bytes or 1)
    rate: float | None
    if link.shaper == "tbf":
        options = root.get("options", {})
        rate = options["rate"] * 8 if "rate" in options else None
        bursts = {"burst": options.get("burst")}
        source = asked_qdisc
    else:
        found = re.search(r"class htb 1:1 .*?rate (\S+) ceil (\S+) burst (\S+) cburst (\S+)", classes)
        rate = _bits(found[1]) if found else None
        bursts = {"burst": _size(found[3]) if found else None, "cburst": _size(found[4]) if found else None}
        source = asked_class
    result.append(Applied(device, "rate", link.rate, rate, source, tolerance=1e-3))
    result += [
        Applied(device, name, link.burst_bytes, value, source, tolerance=burst_granularity) for name, value in bursts.items()
    ]
    return result


def _bits(text: str) -> int:
    found = re.fullmatch(r"(\d+)([KMGT]?)bit", text)
    if found is None:
        raise ValueError(f"tc printed a rate that is none: {text!r}")
    return round(int(found[1]) * _UNITS[found[2]])


def _size(text: str) -> int:
    found = re.fullmatch(r"(\d+)(b|Kb|Mb|Gb)", text)
    if found is None:
        raise ValueError(f"tc printed a size that is none: {text!r}")
    return int(found[1]) * _BYTES[found[2]]
