"""Lay out ladders: which packets are drawn, which are folded, and the one axis of time that all ladders share.

Time runs down.  The axis is linear wherever packets have room.  Where packets of one ladder are closer than a line of text,
time is stretched, alike in all ladders: packets at the same height were sent after the same time.  Time never runs backwards.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Sequence, Set
from dataclasses import dataclass

from twinbed.analyses.anatomy.ladders import Ladder
from twinbed.analyses.anatomy.sampled import Packet, Request
from twinbed.analyses.anatomy.steps import Seen
from twinbed.show.quantities import number, unit_scale

MOST_ROWS = 28
"""Packets of a ladder that are drawn one by one; beyond that, runs of payload are folded."""
LEAST_FOLDED = 4
"""Packets that are worth folding."""
SILENCE = 0.2
"""A run is not folded over a silence of more than this share of its time."""
LINE, BAND = 13.0, 56.0
"""Room of a packet, and of a folded run, downwards."""
HEIGHT = 380.0
"""The height of an axis that is linear everywhere."""
TICK = 34.0
"""Room between ticks at least."""
MOST_TICKS = 1000
"""Multiples of one round number that are tried."""
WORDS = {
    "syn": "SYN",
    "accept": "kernel",
    "syn_back": "SYN-ACK",
    "handshake": "handshake",
    "ask": "asks",
    "request": "request",
    "path": "ways",
    "server": "works",
    "answer": "answers",
    "first_byte": "first byte",
    "transfer": "transfer",
    "finish": "finishes",
}
"""Step -> its name in a word, for bands."""
_RUN = frozenset("PpAa")
_RUN_WITH_REPEATS = _RUN | frozenset("Xx")


@dataclass(frozen=True, slots=True)
class Rung:
    """One packet, or several that are drawn as one band."""

    packets: tuple[Packet, ...]

    @property
    def is_band(self) -> bool:
        return len(self.packets) > 1

    @property
    def begin_ns(self) -> int:
        return self.packets[0].sent_ns

    @property
    def end_ns(self) -> int:
        """Return when the last packet was sent."""
        return self.packets[-1].sent_ns

    @property
    def room(self) -> float:
        return BAND if self.is_band else LINE


def rungs(request: Request, most: int = MOST_ROWS) -> tuple[Rung, ...]:
    """Return at most about ``most`` rungs, from the top down. Runs of payload are folded first, then runs with repeats. Packets
    that begin or end a run, a long silence or a step are always drawn."""
    packets = request.packets
    if len(packets) <= most:
        return tuple(Rung((packet,)) for packet in packets)
    alone = _stations(request)
    folded = _folded(packets, _RUN, alone)
    return folded if len(folded) <= most else _folded(packets, _RUN_WITH_REPEATS, alone)


def _stations(request: Request) -> set[int]:
    """Return the places of packets that begin or end a step, by when they were sent or arrived."""
    places = set[int]()
    for ns in {ns for span in request.spans for ns in (span.begin_ns, span.end_ns)}:
        places.update([at for at, packet in enumerate(request.packets) if packet.sent_ns == ns][:1])
        places.update([at for at, packet in enumerate(request.packets) if packet.arrived_ns == ns][-1:])
    return places


def _folded(packets: Sequence[Packet], kinds: Set[str], alone: Set[int]) -> tuple[Rung, ...]:
    folded, at = list[Rung](), 0
    while at < len(packets):
        end = at
        while end < len(packets) and packets[end].kind in kinds and end not in alone:
            end += 1
        for run in _unbroken(packets[at:end]):
            folded += _run(run)
        if end < len(packets):
            folded.append(Rung((packets[end],)))
        at = end + 1
    return tuple(folded)


def _run(run: tuple[Packet, ...]) -> list[Rung]:
    """Fold a run between its first and last payload, and the rest likewise; acknowledgments alone between first and last."""
    full = [at for at, packet in enumerate(run) if packet.payload_bytes]
    first, last = (full[0], full[-1]) if len(full) > 1 else (0, len(run) - 1)
    inner = run[first + 1 : last]
    if len(inner) < LEAST_FOLDED:
        return [Rung((packet,)) for packet in run]
    ends = [Rung((packet,)) for packet in run[: first + 1]], [Rung((run[last],))]
    return [*ends[0], Rung(inner), *ends[1], *(_run(run[last + 1 :]) if last + 1 < len(run) else [])]


def _unbroken(run: Sequence[Packet]) -> list[tuple[Packet, ...]]:
    """Cut a run at long silences."""
    if not run:
        return []
    longest = SILENCE * (run[-1].sent_ns - run[0].sent_ns)
    cuts = [at for at in range(1, len(run)) if run[at].sent_ns - run[at - 1].sent_ns > longest > 0]
    return [tuple(run[begin:end]) for begin, end in zip([0, *cuts], [*cuts, len(run)], strict=True)]


@dataclass(frozen=True, slots=True)
class Axis:
    """A map from nanoseconds since a request's first packet to the distance from the top; linear between the knots."""

    knots_ns: tuple[int, ...]
    knots_y: tuple[float, ...]
    is_stretched: bool

    def y(self, ns: float) -> float:
        at = min(max(bisect_right(self.knots_ns, ns) - 1, 0), len(self.knots_ns) - 2)
        (t, u), (y, z) = self.knots_ns[at : at + 2], self.knots_y[at : at + 2]
        return y + (z - y) * (ns - t) / (u - t)

    @property
    def height(self) -> float:
        return self.knots_y[-1]

    @property
    def end_ns(self) -> int:
        return self.knots_ns[-1]

    def ticks(self) -> list[tuple[int, float]]:
        """Return (nanoseconds, distance from the top): round numbers, coarse ones first, as many as have room."""
        marks = [(0, self.y(0))]
        step = 10 ** len(str(self.end_ns))
        while step >= 1:
            for size in (step, step // 2, step // 5):
                for ns in range(size, self.end_ns + 1, size) if size and self.end_ns / size <= MOST_TICKS else ():
                    y = self.y(ns)
                    if len(str(ns).rstrip("0")) <= 2 and all(abs(y - other) >= TICK for _, other in marks):
                        marks.append((ns, y))
            step //= 10
        return sorted(marks)


def axis(ladders: Sequence[tuple[Request, Sequence[Rung]]], height: float = HEIGHT) -> Axis:
    """Return the axis that these ladders share. It ends with the last packet or step of any."""
    last = max((_end_ns(request) for request, _ in ladders), default=0)
    first = min((rung.begin_ns for _, of_one in ladders for rung in of_one), default=0)
    last = max(last, first + 1)
    slope = height / (last - first)
    events = sorted((rung.begin_ns, which, at) for which, (_, of_one) in enumerate(ladders) for at, rung in enumerate(of_one))
    knots: list[tuple[int, float]] = [(first, 0.0)]
    below: dict[int, float] = {}
    is_stretched = False
    for ns, which, at in events:
        before_ns, before = knots[-1]
        linear = before + slope * (ns - before_ns)
        y = max(linear, below.get(which, 0.0)) if ns > before_ns else before
        is_stretched |= y > linear + 1e-9
        if ns > before_ns:
            knots.append((ns, y))
        # What is sent at one instant stands level: labels move, time does not.
        below[which] = max(below.get(which, 0.0), y) + ladders[which][1][at].room
    before_ns, before = knots[-1]
    foot = max(before + slope * (last - before_ns), max(below.values(), default=LINE) - LINE)
    knots.append((max(last, before_ns + 1), foot))
    return Axis(tuple(ns for ns, _ in knots), tuple(y for _, y in knots), is_stretched)


def _end_ns(request: Request) -> int:
    times = [packet.sent_ns for packet in request.packets]
    times += [packet.arrived_ns for packet in request.packets if packet.arrived_ns is not None]
    times += [span.end_ns for span in request.spans]
    return max(times)


def time_text(ns: int) -> str:
    """Return ``24.0 µs``, three digits."""
    if abs(ns) < 1000:
        return f"{ns} ns" if ns else "0"
    scale = unit_scale("s", [float(f"{ns * 1e-9:.3g}")])
    value = f"{ns * 1e-9 / scale.factor:#.3g}"
    return f"{value.removesuffix('.')} {scale.unit}"


def tick_text(ns: int) -> str:
    """Return a round number: ``500 µs``."""
    scale = unit_scale("s", [ns * 1e-9])
    return f"{round(ns * 1e-9 / scale.factor, 6):g} {scale.unit}" if ns else "0"


def caption(ladder: Ladder) -> str:
    """Return ``e1000: 3.3 ms, 12 packets; the medoid of 64 requests of 10 runs``"""
    packets = len(ladder.request.packets)
    wire = sum(packet.wire_packets for packet in ladder.request.packets)
    on_wire = f" ({wire:,} on the wire)" if wire > packets else ""
    cut = ", only the first are kept" if ladder.request.is_cut else ""
    runs = f" of {ladder.runs} runs" if ladder.runs > 1 else ""
    requests = f"the medoid of {ladder.of} requests{runs}" if ladder.of > 1 else "the only kept request"
    return f"{ladder.testbed}: {time_text(ladder.request.total_ns)}, {packets:,} packets{on_wire}{cut}; {requests}."


_WORDS = {"S": "SYN", "Y": "SYN again", "A": "ACK", "F": "FIN", "Z": "FIN again", "R": "RST"}


def label(packet: Packet) -> str:
    """Return ``SYN-ACK``, ``7,240 B (5 packets)``, ``500 B, FIN``."""
    kind = packet.kind.upper()
    if kind in _WORDS:
        return _WORDS[kind].replace("SYN", "SYN-ACK" if packet.kind.islower() else "SYN")
    text = f"{number(packet.payload_bytes)} B"
    if kind == "E":
        text += ", FIN"
    elif kind == "X":
        text += " again"
    return text + (f" ({packet.wire_packets} packets)" if packet.wire_packets > 1 else "")


def described(packet: Packet, seen: Seen) -> str:
    """Return the packet in a sentence."""
    side = "client" if packet.from_client else "server"
    text = f"{label(packet)} of the {side}"
    if seen is Seen.CLIENT:
        text += f", seen after {time_text(packet.sent_ns)}"
    elif packet.was_seen_sent:
        text += f", sent after {time_text(packet.sent_ns)}"
        if packet.arrived_ns is not None:
            text += f", arrived {time_text(max(0, packet.arrived_ns - packet.sent_ns))} later"
        else:
            text += ", lost"
    else:
        text += f", seen only where it arrived, after {time_text(packet.sent_ns)}"
    return text


@dataclass(frozen=True, slots=True)
class Counts:
    """The packets of one side in a band."""

    with_payload: int
    payload_bytes: int
    wire_packets: int
    """Packets on the wire, of those with payload."""
    repeats: int
    acknowledgments: int


def counts(packets: Sequence[Packet], *, from_client: bool) -> Counts:
    own = [packet for packet in packets if packet.from_client is from_client]
    full = [packet for packet in own if packet.payload_bytes]
    return Counts(
        len(full),
        sum(packet.payload_bytes for packet in full),
        sum(packet.wire_packets for packet in full),
        sum(packet.kind in "Xx" for packet in full),
        len(own) - len(full),
    )


def band_lines(packets: Sequence[Packet]) -> list[str]:
    """Return a line a side: ``← 720 packets, 1.043 MB, 61 ACKs``."""
    lines = []
    for from_client in (False, True):
        totals = counts(packets, from_client=from_client)
        parts = []
        if totals.with_payload:
            parts.append(
                f"{totals.with_payload} {'packets' if totals.with_payload > 1 else 'packet'}, {_bytes(totals.payload_bytes)}"
            )
            if totals.wire_packets > totals.with_payload:
                parts.append(f"{totals.wire_packets:,} on the wire")
            if totals.repeats:
                parts.append(f"{totals.repeats} again")
        if totals.acknowledgments:
            parts.append(f"{totals.acknowledgments} ACK{'s' if totals.acknowledgments > 1 else ''}")
        if parts:
            lines.append(f"{'→' if from_client else '←'} {', '.join(parts)}")
    return lines


def _bytes(count: int) -> str:
    scale = unit_scale("bytes", [count])
    return f"{float(f'{count / scale.factor:.4g}'):,g} {scale.unit}"
