"""What tcpreplay and the captures of what arrived say."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import TypedDict

from twinbed.contracts.extracted import Extracted
from twinbed.metrics.metric import Value
from twinbed.metrics.replay import UNITS
from twinbed.model.caution import Caution, Kind
from twinbed.model.json import loads
from twinbed.readers.clients import total
from twinbed.readers.replay import pcap
from twinbed.readers.replay.sides import EXPERIMENTAL
from twinbed.workloads.replay.plan import ARRIVED, REPORT, SIDES

CLIENT, SERVER = "client", "server"
_SENT = re.compile(r"^Actual: (\d+) packets \(\d+ bytes\) sent in ([\d.]+) seconds", re.MULTILINE)
_FAILED = re.compile(r"^\s*Failed packets:\s+(\d+)$", re.MULTILINE)
SKEW_LIMIT_S = 0.001
"""Between the two sides' first frames; captures of a local network answer within less."""
_MARKS = 1
"""The frame before the packets of each side."""

Numbers = dict[str, float | None]


def read(artifacts: Path) -> Extracted:
    """Raises FileNotFoundError or ValueError with the file that is not as it should be."""
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
        each = [own[name] for own in numbers.values()]
        yield Value(name, _together(name, each), UNITS[name])


def _together(name: str, numbers: Sequence[float | None]) -> float | None:
    if len(numbers) == 1:
        return numbers[0]
    if name == "arrived_share":
        return None if None in numbers else sum(number for number in numbers if number is not None) / len(numbers)
    if name in ("replay_duration", "replay_timing_error", "replay_start_skew"):
        return None if None in numbers else max(number for number in numbers if number is not None)
    return total(numbers)


def _pair(client: Path, server: Path) -> Numbers:
    """What the client sent arrives at the server, and the other way round."""
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
        "replay_timing_error": None if None in errors else max((each for each in errors if each is not None), default=None),
        "replay_start_skew": _skew(client),
        "left_out_packets": sum(_about(client)["left_out"].values()),
    }


def _side(sender: Path, receiver: Path) -> Numbers:
    text = (sender / REPORT).read_text(errors="replace")
    sent, failed = _SENT.search(text), _FAILED.search(text)
    if sent is None or failed is None:
        raise ValueError(f"{sender.name}/{REPORT}: no line `Actual: N packets ... sent in S seconds`, or none of failed ones")
    due = _about(sender)["offsets_ns"]
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
    """Between the marks of both sides, its own as it was sent and the other's as it came; None where one is not there."""
    marks = {frame.data[6:12]: frame.time_ns for frame in _frames(host / ARRIVED) if _is_mark(frame)}
    return (max(marks.values()) - min(marks.values())) / 1e9 if len(marks) == 2 else None


def _error(due_ns: Sequence[int], times_ns: Sequence[int]) -> float | None:
    """Of packets that all arrived; None without any."""
    import numpy as np

    if not due_ns:
        return None
    due, came = np.array(due_ns), np.array(times_ns)
    return float(np.quantile(np.abs((came - came[0]) - (due - due[0])), 0.95)) / 1e9


class _About(TypedDict):
    """What the plan put beside the capture."""

    offsets_ns: Sequence[int]
    left_out: Mapping[str, int]
    notes: Mapping[str, int]


def _about(host: Path) -> _About:
    about: _About = loads((host / SIDES).read_bytes())
    return about


def _cautions(hosts: Mapping[str, Path], clients: Sequence[str]) -> Iterator[Caution]:
    for client in clients:
        about = _about(hosts[client])
        skew = _skew(hosts[client])
        if skew is not None and skew > SKEW_LIMIT_S:
            apart = f"{client}: {skew * 1e3:.3g} ms between its first frame and its server's"
            yield Caution(Kind.SKEWED_START, f"{apart}: answers may come before what they answer")
        parts = [f"{count} left out: {why}" for why, count in about["left_out"].items() if why != "beyond a limit"]
        parts += [f"{count} {why}" for why, count in about["notes"].items()]
        if parts:
            yield Caution(Kind.REPLAYED_OTHERWISE, f"{client}: {'; '.join(parts)}")
