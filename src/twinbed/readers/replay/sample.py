"""A conversation that is replayed where a study names no capture: three requests of HTTP and their answers.

Packets are 0.1 s apart.  The second answer is a shell's to ``id`` as root, which makes intrusion detection systems raise an
alarm.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator

from twinbed.readers.replay import pcap

_CLIENT, _SERVER = bytes((192, 0, 2, 1)), bytes((192, 0, 2, 2))  # RFC 5737's, for documentation
_MACS = bytes.fromhex("020000000001"), bytes.fromhex("020000000002")
_PORT = 80
_STEP_NS = 100_000_000
"""Between a packet and its answer: longer than two senders start apart, but on very slow hosts."""
_APART_NS = 1_200_000_000
_FIN, _SYN, _PSH, _ACK = 1, 2, 8, 16
_ANSWERS = (b"welcome\n", b"uid=0(root) gid=0(root) groups=0(root)\n", b"bye\n" * 200)


def capture() -> bytes:
    """Return the same bytes always, with right checksums of TCP (RFC 9293)."""
    return pcap.write([frame for number, body in enumerate(_ANSWERS) for frame in _connection(number, body)])


def _connection(number: int, body: bytes) -> Iterator[tuple[int, bytes]]:
    request = b"GET /%d HTTP/1.1\r\nHost: 192.0.2.2\r\nConnection: close\r\n\r\n" % number
    answer = b"HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\nContent-Length: %d\r\n\r\n" % len(body) + body
    client, server, port = 1000, 5000, 40000 + number
    after_request, after_answer = client + 1 + len(request), server + 1 + len(answer)
    steps = (
        (True, _SYN, client, 0, b""),
        (False, _SYN | _ACK, server, client + 1, b""),
        (True, _ACK, client + 1, server + 1, b""),
        (True, _PSH | _ACK, client + 1, server + 1, request),
        (False, _ACK, server + 1, after_request, b""),
        (False, _PSH | _ACK, server + 1, after_request, answer),
        (True, _ACK, after_request, after_answer, b""),
        (False, _FIN | _ACK, after_answer, after_request, b""),
        (True, _FIN | _ACK, after_request, after_answer + 1, b""),
        (False, _ACK, after_answer + 1, after_request + 1, b""),
    )
    for step, (from_client, flags, sequence, acknowledged, payload) in enumerate(steps):
        ports = (port, _PORT) if from_client else (_PORT, port)
        ends = _CLIENT + _SERVER if from_client else _SERVER + _CLIENT
        fields = (*ports, sequence, acknowledged, 5 << 4, flags, 64240)
        pseudo = ends + struct.pack("!HH", 6, 20 + len(payload))
        summed = pseudo + struct.pack("!HHIIBBHHH", *fields, 0, 0) + payload.ljust(len(payload) + len(payload) % 2, b"\0")
        tcp = struct.pack("!HHIIBBHHH", *fields, 0xFFFF - int.from_bytes(summed, "big") % 0xFFFF, 0) + payload
        head = struct.pack("!BBHHHBBH", 0x45, 0, 20 + len(tcp), number * 16 + step, 0x4000, 64, 6, 0)
        macs = _MACS[1] + _MACS[0] if from_client else _MACS[0] + _MACS[1]
        yield number * _APART_NS + step * _STEP_NS, macs + b"\x08\x00" + head + ends + tcp
