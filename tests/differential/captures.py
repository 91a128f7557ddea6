"""Random TCP captures: plausible connections with loss, repeats, reordering, probes and port reuse, and some packets that no
host would send.

write(seed, path) writes one; the same seed gives the same file.
"""

import pathlib
import random
import struct

FIN, SYN, RST, PSH, ACK, URG = 1, 2, 4, 8, 16, 32


def option_bytes(mss=None, scale=None, sack_permitted=False, timestamps=None, blocks=()):
    out = b""
    if mss is not None:
        out += struct.pack(">BBH", 2, 4, mss)
    if sack_permitted:
        out += b"\4\2"
    if timestamps is not None:
        out += struct.pack(">BBII", 8, 10, *timestamps)
    if scale is not None:
        out += struct.pack(">BBB", 3, 3, scale)
    if blocks:
        out += struct.pack(">BB", 5, 2 + 8 * len(blocks))
        out += b"".join(struct.pack(">II", low % 2**32, high % 2**32) for low, high in blocks)
    return out + b"\1" * (-len(out) % 4)


class Pair:
    """Packets between two endpoints, and what each side has sent so far."""

    def __init__(self, rng, hosts, ports, style):
        self.rng, self.hosts, self.ports, self.style = rng, hosts, ports, style
        self.v6 = style["v6"]
        self.ids = [rng.randrange(1, 65536), rng.randrange(1, 65536)]
        self.packets = []
        self.last = [None, None]
        self.restart()

    def restart(self):
        rng = self.rng
        near = [0, 2**30, 2**31, 3 * 2**30]

        def isn():
            is_near = rng.random() < self.style["near"]
            return (rng.choice(near) - rng.randrange(0, 6000)) % 2**32 if is_near else rng.randrange(2**32)

        self.isn = [isn(), isn()]
        self.next = [self.isn[0] + 1, self.isn[1] + 1]
        self.low = self.next[::-1]  # acknowledged of the other side
        self.bounds = [[], []]  # segments sent
        self.windows = [rng.choice([100, 1000, 8192, 65535]), rng.choice([100, 1000, 8192, 65535])]
        self.fin = [None, None]
        self.mss = rng.choice([100, 536, 1460])
        self.scales = [rng.choice([None, 0, 2, 7, 14]) if rng.random() < 0.7 else None for _ in range(2)]
        self.stamps = rng.random() < 0.5
        self.sack = rng.random() < 0.7

    def emit(
        self,
        side,
        flags,
        sequence,
        size=0,
        acknowledgment=None,
        blocks=(),
        urgent=0,
        syn_options=None,
        window=None,
        same_id=False,
    ):
        if acknowledgment is None:
            acknowledgment = self.next[1 - side] if flags & ACK else 0
        if syn_options is not None:
            options = syn_options
        else:
            options = option_bytes(timestamps=(1, 1) if self.stamps else None, blocks=blocks[: 3 if self.stamps else 4])
        if not same_id:
            self.ids[side] = (self.ids[side] + 1) % 65536
        window = self.windows[side] if window is None else window
        packet = (side, flags, sequence % 2**32, size, acknowledgment % 2**32, options, urgent, window, self.ids[side])
        self.packets.append(packet)
        self.last[side] = packet
        return packet

    def syn(self, side, flags=SYN, size=0):
        options = option_bytes(
            mss=self.mss,
            scale=self.scales[side],
            sack_permitted=self.sack,
            timestamps=(1, 0) if self.stamps else None,
        )
        self.emit(side, flags, self.isn[side], size, syn_options=options)
        if size:
            self.bounds[side].append((self.isn[side] + 1, size))
            self.next[side] = max(self.next[side], self.isn[side] + 1 + size)

    def handshake(self):
        rng = self.rng
        kind = rng.choices(["full", "midstream", "half", "simultaneous", "refused", "late"], [12, 2, 1, 1, 1, 1])[0]
        if kind == "midstream":
            return True
        self.syn(0, size=self.rng.choice([0, 0, 0, 0, 0, 0, 50]))
        if rng.random() < 0.1:
            self.syn(0)
        if kind == "half":
            return False
        if kind == "refused":
            self.emit(1, RST | ACK, 0, acknowledgment=self.isn[0] + 1, window=0)
            return False
        if kind == "simultaneous":
            self.syn(1)
            self.syn(0, SYN | ACK)
            self.syn(1, SYN | ACK)
            return True
        self.syn(1, SYN | ACK)
        if rng.random() < 0.1:
            self.syn(1, SYN | ACK)
        if kind != "late":
            self.emit(0, ACK, self.next[0])
        return True

    def data(self, side, size=None):
        rng = self.rng
        size = size or rng.choice([self.mss, self.mss, self.mss, rng.randrange(1, self.mss + 1), 1, 2])
        start = self.next[side]
        self.bounds[side].append((start, size))
        self.next[side] += size
        flags = ACK | (PSH if rng.random() < 0.3 else 0)
        urgent = 0
        if rng.random() < self.style["urgent"]:
            flags |= URG
            urgent = rng.randrange(0, 2 * size)
        if rng.random() >= self.style["lost"]:
            self.emit(side, flags, start, size, urgent=urgent)

    def resend(self, side):
        rng = self.rng
        if not self.bounds[side]:
            return
        first = rng.randrange(max(0, len(self.bounds[side]) - 12), len(self.bounds[side]))
        start, size = self.bounds[side][first]
        how = rng.random()
        if how < 0.2 and size > 1:
            cut = rng.randrange(1, size)
            start, size = (start + cut, size - cut) if rng.random() < 0.5 else (start, cut)
        elif how < 0.35:
            size = sum(length for _, length in self.bounds[side][first : first + rng.randrange(2, 4)])
        elif how < 0.4:
            size += rng.randrange(1, 50)
            self.next[side] = max(self.next[side], start + size)
        self.emit(side, ACK | PSH, start, size)

    def acknowledge(self, side):
        rng = self.rng
        peer = 1 - side
        choices = [start + size for start, size in self.bounds[peer][-8:]] + [self.next[peer]] * 3
        number = rng.choice(choices)
        if rng.random() < 0.05:
            number = self.next[peer] - rng.randrange(0, 3000)
        if rng.random() < 0.02:
            number = self.next[peer] + rng.randrange(1, 3000)
        if number < self.low[side] and rng.random() < 0.8:
            number = self.low[side]
        self.low[side] = max(number, self.low[side])
        blocks = []
        if self.sack and rng.random() < 0.4:
            for _ in range(rng.randrange(1, 5)):
                low = number + rng.randrange(-500, 4000)
                blocks.append((low, low + rng.randrange(1, 2000)))
        for _ in range(rng.choice([1, 1, 1, 1, 2, 3, 4, 5])):
            self.emit(side, ACK, self.next[side], acknowledgment=number, blocks=blocks)

    def odd(self, side):
        rng = self.rng
        what = rng.randrange(12)
        if what == 0:
            self.windows[side] = rng.choice([0, 0, 1, 500, 65535])
            self.emit(side, ACK, self.next[side], acknowledgment=self.low[side])
        elif what == 1:
            self.emit(side, ACK, self.next[side] - 1, rng.randrange(2))
        elif what == 2 and self.last[side]:
            self.packets.append(self.last[side])
        elif what == 3 and self.fin[side] is None:
            self.fin[side] = self.next[side]
            size = rng.choice([0, 0, 0, 40])
            self.emit(side, FIN | ACK, self.next[side], size)
            self.next[side] += size + 1
        elif what == 4 and self.fin[side] is not None:
            self.emit(side, FIN | ACK, self.fin[side])
        elif what == 5 and rng.random() < 0.3:
            self.emit(side, rng.choice([RST, RST | ACK]), self.next[side], window=rng.choice([0, 100]))
        elif what == 6 and rng.random() < 0.4:
            self.syn(side, rng.choice([SYN, SYN | ACK]))
        elif what == 7 and (self.fin[0] or self.fin[1]) and rng.random() < 0.5:
            self.restart()
            self.handshake()
        elif what == 8:
            self.resend(side)
            self.resend(side)
        elif what == 9 and rng.random() < 0.2:
            self.emit(
                side,
                rng.choice([0, PSH, ACK, ACK | URG, PSH | ACK]),
                self.next[side] + rng.randrange(-2000, 2000),
                rng.randrange(0, 300),
            )
        elif what == 10 and rng.random() < 0.2:
            self.emit(side, ACK, self.next[side] + rng.choice([5000, 100000, 2**29, -5000]), rng.randrange(0, 300))

    def play(self, steps):
        rng = self.rng
        if not self.handshake():
            steps = rng.choice([0, 0, 2])
        weights = self.style["weights"]
        for _ in range(steps):
            side = 1 if rng.random() < self.style["server"] else 0
            rng.choices([self.data, self.resend, self.acknowledge, self.odd], weights)[0](side)
        return self.packets


def frame(pair, packet, style):
    side, flags, sequence, size, acknowledgment, options, urgent, window, identification = packet
    source, destination = pair.ports if side == 0 else pair.ports[::-1]
    tcp = struct.pack(
        ">HHIIBBHHH", source, destination, sequence, acknowledgment, (5 + len(options) // 4) << 4, flags, window, 0, urgent
    )
    tcp += options + b"x" * size
    one, two = pair.hosts if side == 0 else pair.hosts[::-1]
    if pair.v6:
        kind = 0x86DD
        header = struct.pack(">IHBB", 0x60000000, len(tcp), 6, 64)
        header += b"\xfd" + bytes(14) + bytes([one]) + b"\xfd" + bytes(14) + bytes([two])
    else:
        kind = 0x0800
        header = struct.pack(
            ">BBHHHBBH4s4s",
            0x45,
            0,
            20 + len(tcp),
            identification,
            0x4000,
            64,
            6,
            0,
            bytes([10, 0, 0, one]),
            bytes([10, 0, 0, two]),
        )
    link = b"\2" + bytes(4) + bytes([side]) + b"\2" + bytes(4) + bytes([1 - side])
    link += struct.pack(">HHH", 0x8100, 5, kind) if style["vlan"] else struct.pack(">H", kind)
    whole = link + header + tcp
    return whole + bytes(max(0, 60 - len(whole))) if style["padded"] else whole


def write(seed, path):
    rng = random.Random(seed)
    style = {
        "v6": rng.random() < 0.1,
        "vlan": rng.random() < 0.1,
        "padded": rng.random() < 0.3,
        "near": 0.3,
        "urgent": rng.choice([0, 0, 0.05]),
        "lost": rng.choice([0, 0.05, 0.3]),
        "server": rng.choice([0.1, 0.5, 0.8]),
        "weights": rng.choice([[6, 0.3, 4, 0.2], [6, 1, 4, 1], [3, 3, 3, 3]]),
    }
    pairs = [Pair(rng, (1, 2 + rng.randrange(2)), (1000 + at, 80), {**style}) for at in range(rng.choice([1, 1, 1, 2, 4]))]
    streams = [[(pair, packet) for packet in pair.play(rng.choice([3, 10, 30, 100]))] for pair in pairs]
    # Interleaved, each stream in its own order.
    packets = []
    heads = [0] * len(streams)
    while any(head < len(stream) for head, stream in zip(heads, streams, strict=True)):
        at = rng.choice([i for i, stream in enumerate(streams) if heads[i] < len(stream)])
        packets.append(streams[at][heads[at]])
        heads[at] += 1
    swap = rng.choice([0, 0, 0.05, 0.2])
    for at in range(1, len(packets)):
        if rng.random() < swap:
            back = max(0, at - rng.randrange(1, 4))
            packets.insert(back, packets.pop(at))
    drop = rng.choice([0, 0, 0.05])
    packets = [packet for packet in packets if rng.random() >= drop]
    time_us = 1_000_000_000_000_000 + rng.randrange(10**6)
    scale = rng.choice([10, 1000, 20_000, 500_000])
    backwards = rng.choice([0, 0, 0, 0.05])
    gap = rng.choice([0, 0, 0, 0.01])
    snap = rng.choice([None, None, 96, 70, 200])
    with pathlib.Path(path).open("wb") as file:
        file.write(struct.pack("<IHHiIII", 0xA1B2C3D4, 2, 4, 0, 0, 65535, 1))
        for pair, packet in packets:
            time_us += int(rng.expovariate(1 / scale))
            if rng.random() < gap:
                time_us += rng.randrange(200_000_000, 300_000_000)
            stamp = time_us - (rng.randrange(3 * scale) if rng.random() < backwards else 0)
            data = frame(pair, packet, style)
            kept = data if snap is None else data[: max(snap, 54 + 4 * style["vlan"] + 20 * style["v6"] + len(packet[5]))]
            file.write(struct.pack("<IIII", stamp // 10**6, stamp % 10**6, len(kept), len(data)) + kept)
