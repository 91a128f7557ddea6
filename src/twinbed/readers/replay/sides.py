"""The two sides of a capture: what clients sent and what servers sent, rewritten to the two hosts of a pair.

All clients become the one client host and all servers the one server host.  Ports stay, but where two connections would become
one, the later one's client gets another port.  The client of a connection is the sender of its first SYN, or the receiver of a
SYN+ACK.  Without either, and for UDP, it is the side with the higher port (the first sender, where they are equal).  Checksums
are made right where the capture has the whole packet and its own was right or left to a NIC.  Wrong ones stay wrong (RFC 1624's
sum), so that a test of bad packets stays one.  A packet that the capture cut off is filled with zeros.

Both files begin with one frame of EtherType 0x88B5 (local experiments, IEEE 802) at the time of the capture's first packet:
two senders that start together keep the order of packets between the sides.  Hardware addresses are made up (06:00
and the host's IPv4 address): a host's kernel takes no packet that is not for it, so that nothing answers on its own.
"""

from __future__ import annotations

import ipaddress
import struct
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from twinbed.readers.replay import pcap

_MAC = bytes((6, 0))
EXPERIMENTAL = 0x88B5
LONGEST_FRAME = 1514
"""An Ethernet frame of an MTU of 1500."""
_IPV4 = 0x0800
_VLAN = (0x8100, 0x88A8)
ICMP, TCP, UDP = 1, 6, 17
_CHECKSUM_AT: Mapping[int, int] = {TCP: 16, UDP: 6}
_SYN, _ACK = 0x02, 0x10
_FIRST_PORT = 20000
_LEAST: Mapping[int, int] = {TCP: 20, UDP: 8, ICMP: 8}

Key = tuple[int, bytes, int, bytes, int]
"""Protocol, client's address and port, server's address and port; of ICMP the ports are 0."""


@dataclass(frozen=True, slots=True)
class Sides:
    """Two pcap files, and the fate of the capture's packets."""

    client: bytes
    server: bytes
    client_offsets_ns: Sequence[int]
    """When each packet of the client is due, from the capture's first packet."""
    server_offsets_ns: Sequence[int]
    left_out: Mapping[str, int]
    """Reason -> packets."""
    notes: Mapping[str, int] = field(default_factory=dict)
    """Change of replayed packets -> packets, or connections where the text has them."""


class _Ends:
    """The client's side and port of each connection."""

    def __init__(self) -> None:
        self.of: dict[Key, bool] = {}
        """Connection, as its first packet has it -> whether that packet's sender is the client."""
        self.ports: dict[Key, int] = {}
        self.taken: dict[tuple[int, int, int], Key] = {}
        self.notes: Counter[str] = Counter()

    def is_client(self, sent: Key, flags: int) -> bool:
        """Return whether the sender of a packet is its connection's client."""
        if sent in self.of:
            return self.of[sent]
        back = _turned(sent)
        if back in self.of:
            return not self.of[back]
        by_port = sent[2] >= sent[4]
        if sent[0] == TCP and flags & _SYN:
            client = not flags & _ACK
        elif sent[0] == ICMP:
            client = True
        else:
            client = by_port
            self.notes["connections that begin without a SYN"] += sent[0] == TCP
        self.of[sent] = client
        return client

    def port(self, key: Key) -> int:
        """Return the client's port. ``key`` is in the client's direction."""
        if key not in self.ports:
            protocol, _, port, _, server = key
            if protocol != ICMP and self.taken.get((protocol, port, server), key) != key:
                self.notes["connections whose client got another port"] += 1
                free = (port for port in range(_FIRST_PORT, 65536) if (protocol, port, server) not in self.taken)
                port = next(free, 0)
                if not port:
                    raise ValueError(f"more connections to port {server} than one client has ports: replay fewer packets")
            self.taken.setdefault((protocol, port, server), key)
            self.ports[key] = port
        return self.ports[key]


def _turned(key: Key) -> Key:
    protocol, source, source_port, destination, destination_port = key
    return protocol, destination, destination_port, source, source_port


def split(content: bytes, client: str, server: str, most: int, seconds: float) -> Sides:
    """Split a capture. ``client`` and ``server`` are the hosts' IPv4 addresses.

    Packets after ``most``, or later than ``seconds`` after the first, are left out. Raises ValueError where it is no capture of
    Ethernet, or nothing of it can be replayed.
    """
    frames = sorted(pcap.read(content), key=lambda frame: frame.time_ns)
    if not frames:
        raise ValueError("the capture has no packet")
    zero, ends = frames[0].time_ns, _Ends()
    addresses = ipaddress.IPv4Address(client).packed, ipaddress.IPv4Address(server).packed
    left_out: Counter[str] = Counter()
    sent: tuple[list[tuple[int, bytes]], list[tuple[int, bytes]]] = ([], [])
    for frame in frames:
        if len(sent[0]) + len(sent[1]) >= most or frame.time_ns - zero > seconds * 1e9:
            left_out["beyond a limit"] += 1
            continue
        made = _rewritten(frame, addresses, ends)
        if isinstance(made, str):
            left_out[made] += 1
        else:
            from_client, data = made
            sent[not from_client].append((frame.time_ns, data))
    if not any(sent):
        reasons = ", ".join(f"{count} {why}" for why, count in left_out.items())
        raise ValueError(f"nothing of the capture can be replayed: {reasons}")
    files = [
        pcap.write([(zero, _mark(from_client, addresses)), *packets])
        for from_client, packets in zip((True, False), sent, strict=True)
    ]
    offsets = [[time_ns - zero for time_ns, _ in packets] for packets in sent]
    notes = {why: count for why, count in ends.notes.items() if count}
    return Sides(files[0], files[1], offsets[0], offsets[1], dict(left_out), notes)


def mac(address: str) -> str:
    """Return the hardware address of a host's replayed packets."""
    return _MAC.hex(":") + ":" + ipaddress.IPv4Address(address).packed.hex(":")


def _ethernet(from_client: bool, ether_type: int, addresses: tuple[bytes, bytes]) -> bytes:
    client, server = (_MAC + address for address in addresses)
    source, destination = (client, server) if from_client else (server, client)
    return destination + source + struct.pack("!H", ether_type)


def _mark(from_client: bool, addresses: tuple[bytes, bytes]) -> bytes:
    return (_ethernet(from_client, EXPERIMENTAL, addresses) + b"twinbed replay").ljust(60, b"\0")


def _rewritten(frame: pcap.Frame, addresses: tuple[bytes, bytes], ends: _Ends) -> tuple[bool, bytes] | str:
    """Return whether the client sent it, and the frame; or why it is left out."""
    at, ether_type = 12, 0
    while True:
        if len(frame.data) < at + 2:
            return "cut off within their headers"
        (ether_type,) = struct.unpack_from("!H", frame.data, at)
        at += 2
        if ether_type not in _VLAN:
            break
        at += 2
    if ether_type != _IPV4:
        return "not IPv4"
    data = frame.data[at:]
    if len(data) < 20 or data[0] >> 4 != 4:
        return "cut off within their headers"
    header_bytes, length = (data[0] & 15) * 4, struct.unpack_from("!H", data, 2)[0]
    protocol, fragment = data[9], struct.unpack_from("!H", data, 6)[0] & 0x3FFF
    if fragment:
        return "fragments"
    if protocol not in _LEAST:
        return "of a protocol other than TCP, UDP and ICMP"
    if length > LONGEST_FRAME - 14:
        return "longer than 1500 bytes, as offload makes them"
    if length < header_bytes + _LEAST[protocol] or len(data) < header_bytes + _LEAST[protocol] or header_bytes < 20:
        return "cut off within their headers"
    whole = len(data) >= length
    packet = bytearray(data[:length].ljust(length, b"\0"))
    ends.notes["packets that were cut off, filled with zeros"] += not whole
    old_pseudo = _pseudo(packet, header_bytes, length)
    source, destination = bytes(packet[12:16]), bytes(packet[16:20])
    source_port, destination_port = (0, 0) if protocol == ICMP else struct.unpack_from("!HH", packet, header_bytes)
    flags = packet[header_bytes + 13] if protocol == TCP else 0
    key: Key = (protocol, source, source_port, destination, destination_port)
    from_client = ends.is_client(key, flags)
    client_port = ends.port(key if from_client else _turned(key))
    old_transport = bytes(packet[header_bytes:])
    packet[12:20] = addresses[0] + addresses[1] if from_client else addresses[1] + addresses[0]
    if protocol != ICMP:
        struct.pack_into("!H", packet, header_bytes + (0 if from_client else 2), client_port)
    packet[10:12] = b"\0\0"
    packet[10:12] = (0xFFFF - _sum(bytes(packet[:header_bytes]))).to_bytes(2, "big")
    if protocol in _CHECKSUM_AT:
        _checksum(packet, header_bytes, protocol, old_transport, old_pseudo, _pseudo(packet, header_bytes, length), whole, ends)
    return from_client, _ethernet(from_client, _IPV4, addresses) + bytes(packet)


def _pseudo(packet: bytes | bytearray, header_bytes: int, length: int) -> bytes:
    return bytes(packet[12:20]) + bytes((0, packet[9])) + (length - header_bytes).to_bytes(2, "big")


def _sum(data: bytes) -> int:
    """Return the ones' complement sum of 16-bit words (RFC 1071), which is the number modulo 65535; 0 for zeros alone."""
    number = int.from_bytes(data if len(data) % 2 == 0 else data + b"\0", "big")
    return (number % 65535 or 65535) if number else 0


def _checksum(
    packet: bytearray, at: int, protocol: int, old: bytes, old_pseudo: bytes, pseudo: bytes, whole: bool, ends: _Ends
) -> None:
    place = at + _CHECKSUM_AT[protocol]
    checksum = int.from_bytes(packet[place : place + 2], "big")
    if protocol == UDP and checksum == 0:
        return  # none, in IPv4
    was_right = not whole or _sum(old_pseudo + old) == 0xFFFF
    was_left = checksum == _sum(old_pseudo)
    if was_right or was_left:
        packet[place : place + 2] = b"\0\0"
        right = 0xFFFF - _sum(pseudo + bytes(packet[at:]))
        ends.notes["checksums that were left to a NIC, made right"] += was_left and not was_right
    else:
        # RFC 1624: as wrong as it was.
        change = _sum(pseudo) + _sum(bytes(packet[at : at + 4])) + 2 * 0xFFFF - _sum(old_pseudo) - _sum(old[:4])
        right = 0xFFFF - ((0xFFFF - checksum + change) % 0xFFFF)
        ends.notes["checksums that were wrong, left so"] += 1
    packet[place : place + 2] = (right or (0xFFFF if protocol == UDP else 0)).to_bytes(2, "big")
