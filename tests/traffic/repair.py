"""What Linux lets a program with CAP_NET_ADMIN do to its own TCP sockets (TCP_REPAIR, for checkpoint and restore)."""

from __future__ import annotations

import socket
import struct

_REPAIR, _QUEUE, _SEQUENCE, _OPTIONS, _WINDOW = 19, 20, 21, 22, 29  # linux/tcp.h
_OFF_WITHOUT_PROBE = -1
_RECEIVE_QUEUE, _SEND_QUEUE = 1, 2
_MSS, _WINDOW_SCALE, _SACK_PERMITTED = 2, 3, 4  # kinds of TCP options, RFC 9293, RFC 7323, RFC 2018


def _set(made: socket.socket, option: int, value: int) -> None:
    made.setsockopt(socket.IPPROTO_TCP, option, struct.pack("i", value) if value < 0 else struct.pack("I", value))


def first_sequence(made: socket.socket, sequence: int) -> None:
    """Choose the initial sequence number of a socket that is not yet connected."""
    _set(made, _REPAIR, 1)
    _set(made, _QUEUE, _SEND_QUEUE)
    _set(made, _SEQUENCE, sequence)
    _set(made, _REPAIR, _OFF_WITHOUT_PROBE)


def established(made: socket.socket, peer: tuple[str, int], sends_from: int, receives_from: int) -> None:
    """Connected without a packet, as a process restored on another machine is."""
    _set(made, _REPAIR, 1)
    for queue, sequence in ((_SEND_QUEUE, sends_from), (_RECEIVE_QUEUE, receives_from)):
        _set(made, _QUEUE, queue)
        _set(made, _SEQUENCE, sequence)
    made.connect(peer)
    options = ((_MSS, 1460), (_WINDOW_SCALE, 7 | 7 << 16), (_SACK_PERMITTED, 0))
    made.setsockopt(socket.IPPROTO_TCP, _OPTIONS, b"".join(struct.pack("II", *option) for option in options))
    windows = (receives_from, 65_535, 65_535, 65_535, receives_from)  # struct tcp_repair_window
    made.setsockopt(socket.IPPROTO_TCP, _WINDOW, struct.pack("5I", *windows))
    _set(made, _REPAIR, _OFF_WITHOUT_PROBE)


def vanish(made: socket.socket) -> None:
    """Close without a packet, as a host that lost its power does."""
    _set(made, _REPAIR, 1)
    made.close()
