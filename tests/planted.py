"""Captures of both ends of a path in which every time is known, because it was chosen: HTTP exchanges, packet by packet.

A ``Connection`` sends each packet at a given time, and it arrives after a given way, or not at all. Numbers and what is
acknowledged follow from what had arrived. ``plant`` draws connections of many kinds from a seed. It notes of each request when
it was at each station, what was sent again or came in another order, and which timer ended which wait.
"""

from __future__ import annotations

import random
import struct
from collections.abc import Sequence
from dataclasses import dataclass, field

from traffic.packet import checksum

FIN, SYN, RST, PSH, ACK = 1, 2, 4, 8, 16
START_NS = 1_700_000_000_123_456_789
US, MS = 1000, 1_000_000
CLIENT, SERVER = "client", "server"
MSS = 1448
LETTERS = bytes(65 + number % 25 for number in range(256))
"""What a random byte becomes in a body."""


@dataclass
class Planted:
    """One request: link and station -> when, and whether it has all."""

    stations: dict[tuple[str, str], int] = field(default_factory=dict)
    waits: list[tuple[str, str, str, int]] = field(default_factory=list)
    """(kind, whose, step, nanoseconds)"""
    opens: bool = False
    is_piped: bool = False
    """It left before the one before it was answered."""

    def durations_ns(self) -> dict[str, int]:
        at = self.stations
        end = max(at[CLIENT, "end"], at[CLIENT, "response_end"])
        opening = {"syn": 0, "accept": 0, "syn_back": 0, "ask": 0}
        if self.opens:
            opening = {
                "syn": at[SERVER, "syn"] - at[CLIENT, "syn"],
                "accept": at[SERVER, "syn_ack"] - at[SERVER, "syn"],
                "syn_back": at[CLIENT, "syn_ack"] - at[SERVER, "syn_ack"],
                "ask": at[CLIENT, "request"] - at[CLIENT, "syn_ack"],
            }
        return opening | {
            "request": at[SERVER, "request_end"] - at[CLIENT, "request"],
            "server": at[SERVER, "response"] - at[SERVER, "request_end"],
            "first_byte": at[CLIENT, "response"] - at[SERVER, "response"],
            "transfer": at[CLIENT, "response_end"] - at[CLIENT, "response"],
            "finish": end - at[CLIENT, "response_end"],
        }

    @property
    def begin_ns(self) -> int:
        return self.stations[CLIENT, "syn" if self.opens else "request"]


@dataclass
class Made:
    """Both captures, as (time, sender, frame), and what is in them."""

    frames: dict[str, list[tuple[int, str, bytes]]] = field(default_factory=lambda: {CLIENT: [], SERVER: []})
    requests: list[Planted] = field(default_factory=list)
    repeats: dict[str, int] = field(default_factory=lambda: {CLIENT: 0, SERVER: 0})
    lost: int = 0
    swapped: int = 0

    def pcap(self, link: str, *, of: Sequence[str] = (CLIENT, SERVER, "switch"), since_ns: int = 0) -> bytes:
        text = struct.pack("<IHHIIII", 0xA1B23C4D, 2, 4, 0, 0, 65535, 1)
        for ns, sender, frame in sorted(self.frames[link], key=lambda each: each[0]):
            if sender in of and ns >= since_ns:
                text += struct.pack("<IIII", ns // 10**9, ns % 10**9, len(frame), len(frame)) + frame
        return text


class Connection:
    """One connection of a client; ``now`` is where its story has got to."""

    def __init__(self, made: Made, draw: random.Random, number: int, now: int) -> None:
        self.made, self.draw, self.now = made, draw, now
        self.port = 20_000 + number
        self.is_ipv6, self.vlan = draw.random() < 0.3, draw.random() < 0.3
        # Some wrap after a few packets.
        self.first = {side: draw.choice([draw.randrange(2**32), 2**32 - draw.randrange(1, 3000)]) for side in (CLIENT, SERVER)}
        self.next = {CLIENT: 0, SERVER: 0}
        self.identification = {side: draw.randrange(1, 60_000) for side in (CLIENT, SERVER)}
        self.arrived: dict[str, list[tuple[int, int, int]]] = {CLIENT: [], SERVER: []}
        """At this side: (when, from, to) of the other's numbers."""
        self.progress: dict[str, list[int]] = {CLIENT: [], SERVER: []}
        """When this side sent numbers, or was told that some had arrived."""
        self.told = {CLIENT: 1, SERVER: 1}
        self.way = {side: 50 * US + draw.randrange(5 * US) for side in (CLIENT, SERVER)}
        """How long packets of this side are on their way, so that they keep their order unless they are told another."""

    def acknowledged(self, side: str, at: int) -> int:
        """Up to where ``side`` has all of the other's numbers."""
        up_to = 0
        for when, begin, end in sorted(self.arrived[side], key=lambda each: each[1]):
            if when <= at and begin <= up_to:
                up_to = max(up_to, end)
        return up_to

    def send(
        self,
        side: str,
        at: int,
        payload: bytes = b"",
        flags: int = ACK,
        *,
        lost: bool = False,
        way: int | None = None,
        again: int | None = None,
        cut: bool = False,
    ) -> int:
        """Gives when it arrives. ``again``: the number with which it was first sent; ``cut``: into segments, on the way."""
        other = SERVER if side == CLIENT else CLIENT
        numbers = len(payload) + bool(flags & SYN) + bool(flags & FIN)
        begin = self.next[side] if again is None else again
        arrival = at + (self.way[side] if way is None else way)
        acknowledges = self.acknowledged(side, at)
        self.made.frames[side].append((at, side, self.frame(side, begin, acknowledges, flags, payload)))
        pieces = range(0, len(payload), MSS) if cut else [0]
        self.identification[side] += 1
        if not lost:
            for step, place in enumerate(pieces):
                piece = payload[place : place + MSS] if cut else payload
                self.identification[side] -= step == 0
                frame = self.frame(side, begin + place, acknowledges, flags, piece)
                self.identification[side] += 1
                self.made.frames[other].append((arrival + step * US, side, frame))
            arrival += (len(pieces) - 1) * US
            if numbers:
                self.arrived[other].append((arrival, begin, begin + numbers))
            if flags & ACK and acknowledges > self.told[other]:
                self.told[other] = acknowledges
                self.progress[other].append(arrival)
        self.made.lost += lost
        self.made.repeats[side] += again is not None
        if numbers:
            self.progress[side].append(at)
            if again is None:
                self.next[side] += numbers
        return arrival

    def frame(self, side: str, sequence: int, acknowledges: int, flags: int, payload: bytes) -> bytes:
        other = SERVER if side == CLIENT else CLIENT
        ports = (self.port, 80) if side == CLIENT else (80, self.port)
        number = acknowledges + self.first[other] if flags & ACK else 0
        numbers = ((sequence + self.first[side]) % 2**32, number % 2**32)
        fixed = struct.pack("!HHIIBBH", *ports, *numbers, 5 << 4, flags | (PSH if payload else 0), 65_000)
        length = 20 + len(payload)
        ends = (1, 2) if side == CLIENT else (2, 1)
        if self.is_ipv6:
            addresses = b"".join(bytes([0xFD]) + bytes(14) + bytes([end]) for end in ends)
            header = struct.pack("!IHBB", 6 << 28, length, 6, 64) + addresses
        else:
            addresses = b"".join(bytes([10, 0, 0, end]) for end in ends)
            identification = self.identification[side] % 65_536
            fields = struct.pack("!BBHHHBB", 0x45, 0, 20 + length, identification, 0x4000, 64, 6)
            header = fields + struct.pack("!H", checksum(fields + addresses)) + addresses
        rest = bytes(2) + payload
        packet = header + fixed + struct.pack("!H", checksum(addresses + struct.pack("!HH", 6, length) + fixed + rest)) + rest
        kind = b"\x86\xdd" if self.is_ipv6 else b"\x08\x00"
        tag = b"\x81\x00\x00\x05" if self.vlan else b""
        return bytes(11) + bytes([ends[0]]) + tag + kind + packet

    def timer(self, request: Planted, kind: str, side: str, step: str, at: int) -> None:
        """A wait of ``side`` that a packet ends at ``at``: since it last got ahead."""
        request.waits.append((kind, side, step, at - max(when for when in self.progress[side] if when < at)))

    def later(self, least_us: int = 5, most_us: int = 9000) -> int:
        return self.draw.randrange(least_us * US, most_us * US)

    def open(self, request: Planted) -> None:
        request.opens = True
        at = request.stations
        at[CLIENT, "syn"] = self.now
        if lost := self.draw.random() < 0.2:
            self.send(CLIENT, self.now, flags=SYN, lost=True)
            self.now += 1000 * MS + self.draw.randrange(5 * MS)
            self.timer(request, "retransmission_timeout", CLIENT, "syn", self.now)
        at[SERVER, "syn"] = self.send(CLIENT, self.now, flags=SYN, again=0 if lost else None)
        self.now = at[SERVER, "syn_ack"] = at[SERVER, "syn"] + self.later()
        if lost := self.draw.random() < 0.1:
            self.send(SERVER, self.now, flags=SYN | ACK, lost=True)
            self.now += 1000 * MS + self.draw.randrange(5 * MS)
            self.timer(request, "retransmission_timeout", SERVER, "syn_back", self.now)
        self.now = at[CLIENT, "syn_ack"] = self.send(SERVER, self.now, flags=SYN | ACK, again=0 if lost else None)
        self.now += self.later(1, 20)
        self.send(CLIENT, self.now)
        self.now += self.later()

    def ask(self, request: Planted, *, body: bytes = b"", head: bytes = b"") -> None:
        """Sends a request, in one of the ways in which that may go."""
        at = request.stations
        text = head or (
            b"POST / HTTP/1.1\r\nContent-Length: %d\r\n\r\n" % len(body) if body else b"GET / HTTP/1.1\r\nHost: x\r\n\r\n"
        )
        at[CLIENT, "request"] = self.now
        if not body:
            begin = self.next[CLIENT]
            if self.draw.random() < 0.2:
                self.send(CLIENT, self.now, text, lost=True)
                for _ in range(self.draw.choice([1, 1, 2])):
                    self.now += 200 * MS + self.later()
                    self.timer(request, "retransmission_timeout", CLIENT, "request", self.now)
                    is_last = self.draw.random() < 0.7
                    at[SERVER, "request_end"] = arrival = self.send(CLIENT, self.now, text, again=begin, lost=not is_last)
                    if is_last:
                        break
                else:
                    self.now += 400 * MS
                    self.timer(request, "retransmission_timeout", CLIENT, "request", self.now)
                    at[SERVER, "request_end"] = arrival = self.send(CLIENT, self.now, text, again=begin)
            else:
                at[SERVER, "request_end"] = arrival = self.send(CLIENT, self.now, text)
        elif head:  # the client waits for 100 Continue
            self.now = self.send(CLIENT, self.now, text) + self.later()
            self.now = self.send(SERVER, self.now, b"HTTP/1.1 100 Continue\r\n\r\n") + self.later(5, 500)
            at[SERVER, "request_end"] = arrival = self.send(CLIENT, self.now, body)
        elif self.draw.random() < 0.5:  # Nagle: the body waits for the acknowledgment of the head, which is held back
            arrival = self.send(CLIENT, self.now, text)
            held_ns = 40 * MS + self.draw.randrange(3 * MS)
            request.waits.append(("nagle", SERVER, "request", held_ns))
            self.now = self.send(SERVER, arrival + held_ns) + self.later(1, 50)
            at[SERVER, "request_end"] = arrival = self.send(CLIENT, self.now, body)
        else:
            self.send(CLIENT, self.now, text)
            self.now += self.later(1, 50)
            at[SERVER, "request_end"] = arrival = self.send(CLIENT, self.now, body)
        if self.draw.random() < 0.5:
            self.send(SERVER, arrival + self.later(1, 4))
        self.now = arrival + self.later()

    def answer(self, request: Planted, pieces: int, *, chunked: bool, more: bool = False) -> None:
        """``more``: another answer follows at once, for which the acknowledgment of this one would seem to be waited."""
        at = request.stations
        body = self.draw.randbytes(MSS * (pieces - 1) + 200).translate(LETTERS)
        if chunked:
            sizes = [len(body) // 3, len(body) - len(body) // 3]
            framed = b"".join(b"%x\r\n%s\r\n" % (size, body[:size]) for size in sizes) + b"0\r\n\r\n"
            whole = b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n" + framed
        else:
            whole = b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n" % len(body) + body
        sent = [whole[place : place + MSS] for place in range(0, len(whole), MSS)]
        begins = [self.next[SERVER] + place for place in range(0, len(whole), MSS)]
        at[SERVER, "response"] = self.now
        story = self.draw.choice(["plain", "plain", "cut", "tail", "middle", "swap"]) if len(sent) >= 6 else "plain"
        if story == "cut":
            arrival = self.send(SERVER, self.now, whole, cut=True)
            at[CLIENT, "response"] = arrival - (len(sent) - 1) * US
            at[CLIENT, "response_end"] = arrival
            self.send(CLIENT, arrival + self.later(1, 4))
            self.now = arrival + self.later()
            return
        arrivals = []
        for place, piece in enumerate(sent):
            lost = place == {"tail": len(sent) - 1, "middle": 1}.get(story)
            # The third comes behind the fourth.
            way = self.way[SERVER] + (60 * US if story == "swap" and place == 2 else 0)
            arrival = self.send(SERVER, self.now, piece, lost=lost, way=way)
            if not lost:
                arrivals.append(arrival)
            self.now += 40 * US
        self.made.swapped += story == "swap"
        at[CLIENT, "response"] = arrivals[0]
        acknowledged = sorted(arrivals)
        if (
            story == "plain" and not more and self.draw.random() < 0.3
        ):  # the last acknowledgment is held back, and nobody waits for it
            held_ns = 40 * MS + self.draw.randrange(3 * MS)
            request.waits.append(("delayed_acknowledgment", CLIENT, "finish", held_ns))
            self.send(CLIENT, acknowledged.pop() + held_ns)
            self.now += held_ns
        for arrival in acknowledged:
            self.send(CLIENT, arrival + 2 * US)
        self.now = max(self.now, *arrivals)
        if story in ("tail", "middle"):
            kind = {"tail": "tail_loss_probe", "middle": "fast_retransmission"}[story]
            lost_place = len(sent) - 1 if story == "tail" else 1
            self.now += (10 * MS if story == "tail" else 300 * US) + self.later(5, 900)
            self.timer(request, kind, SERVER, "transfer", self.now)
            arrival = self.send(SERVER, self.now, sent[lost_place], again=begins[lost_place])
            arrivals.append(arrival)
            self.send(CLIENT, arrival + 2 * US)
            self.now = arrival
        at[CLIENT, "response_end"] = max(arrivals)
        self.now += 300 * US + self.later()

    def close(self, request: Planted) -> None:
        """The client closes: by a FIN, which may be lost, or by a reset."""
        request.stations[CLIENT, "end"] = self.now
        if self.draw.random() < 0.2:
            self.send(CLIENT, self.now, flags=RST | ACK)
            return
        begin = self.next[CLIENT]
        if lost := self.draw.random() < 0.3:
            self.send(CLIENT, self.now, flags=FIN | ACK, lost=True)
            self.now += 200 * MS + self.later()
            self.timer(request, "retransmission_timeout", CLIENT, "after", self.now)
        self.now = self.send(CLIENT, self.now, flags=FIN | ACK, again=begin if lost else None) + self.later(1, 400)
        self.now = self.send(SERVER, self.now, flags=FIN | ACK) + self.later(1, 20)
        self.send(CLIENT, self.now)


def plant(seed: int, connections: int = 12) -> Made:
    """Connections that overlap in time, each with one to four requests, of which some are pipelined."""
    draw, made = random.Random(seed), Made()
    for number in range(connections):
        connection = Connection(made, draw, number, START_NS + draw.randrange(900 * MS))
        _story(connection, made, draw)
    made.requests.sort(key=lambda each: each.begin_ns)
    # Both captures began long before and ended long after, so that what did not arrive was lost.
    for frames in made.frames.values():
        last = max(at for at, _, _ in frames)
        frames += [(at, "switch", bytes(12) + b"\x88\xcc" + bytes(46)) for at in (START_NS - 10**10, last + 10**10)]
    return made


def _story(connection: Connection, made: Made, draw: random.Random) -> None:
    before: Planted | None = None
    count = draw.randrange(1, 5)
    for _ in range(count):
        request = Planted()
        if before is None:
            connection.open(request)
        else:
            before.stations[CLIENT, "end"] = connection.now
        body, head = b"", b""
        if draw.random() < 0.4:
            body = bytes(draw.randrange(65, 90) for _ in range(draw.randrange(20, 900)))
            if draw.random() < 0.4:
                head = b"POST / HTTP/1.1\r\nExpect: 100-continue\r\nContent-Length: %d\r\n\r\n" % len(body)
        connection.ask(request, body=body, head=head)
        made.requests.append(request)
        piped = draw.random() < 0.2
        if piped:
            # The next one leaves before this one is answered.
            following = Planted(is_piped=True)
            request.stations[CLIENT, "end"] = following.stations[CLIENT, "request"] = connection.now
            arrival = connection.send(CLIENT, connection.now, b"GET /next HTTP/1.1\r\nHost: x\r\n\r\n")
            following.stations[SERVER, "request_end"] = arrival
            connection.now = arrival + connection.later()
        connection.answer(request, draw.choice([1, 1, 3, 7, 9]), chunked=draw.random() < 0.3, more=piped)
        if piped:
            connection.answer(following, draw.choice([1, 3, 7]), chunked=draw.random() < 0.3)
            made.requests.append(following)
            request = following
        before = request
        connection.now += draw.randrange(500 * MS)
    assert before is not None
    connection.close(before)
