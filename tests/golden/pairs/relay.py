"""Carries frames between two interfaces and drops, doubles and holds back what its plan says: the truth of the goldens.

    relay.py FROM TO PLAN LOG

PLAN is JSON: {"udp": {"drop": [...], "double": [...], "hold": {"n": packets to let pass first}}, "tcp": {...}}; the numbers
count the packets from FROM to TO of that protocol that carry more than 8 bytes of payload, from 1. What comes from TO is
carried unchanged. LOG gets a line of JSON for each thing done and the totals last. Ends on SIGTERM.
"""

import json
import pathlib
import select
import signal
import socket
import sys

OUTGOING = 4


def payload_bytes(frame: bytes) -> tuple[str, int]:
    if frame[12:14] != b"\x08\x00":
        return "other", 0
    header = (frame[14] & 15) * 4
    total = int.from_bytes(frame[16:18], "big") - header
    if frame[23] == 17:
        return "udp", total - 8
    if frame[23] == 6:
        return "tcp", total - (frame[14 + header + 12] >> 4) * 4
    return "other", 0


def opened(name: str) -> socket.socket:
    link = socket.socket(socket.AF_PACKET, socket.SOCK_RAW, socket.htons(3))
    link.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 1 << 22)
    link.bind((name, 0))
    return link


def main() -> None:
    here, there = opened(sys.argv[1]), opened(sys.argv[2])
    plan = json.loads(pathlib.Path(sys.argv[3]).read_text())
    counts = {"udp": 0, "tcp": 0}
    held: list[tuple[int, bytes]] = []
    done: list[dict[str, object]] = []
    running = True

    def stop(*_: object) -> None:
        nonlocal running
        running = False

    signal.signal(signal.SIGTERM, stop)
    sys.stdout.write("ready\n")
    sys.stdout.flush()
    while running:
        readable, _, _ = select.select([here, there], [], [], 0.2)
        if there in readable:
            frame, about = there.recvfrom(1 << 16)
            if about[2] != OUTGOING:
                here.send(frame)
        if here not in readable:
            continue
        frame, about = here.recvfrom(1 << 16)
        if about[2] == OUTGOING:
            continue
        protocol, size = payload_bytes(frame)
        if protocol == "other" or size <= 8:
            there.send(frame)
            continue
        counts[protocol] += 1
        number, todo = counts[protocol], plan.get(protocol, {})
        if number in todo.get("drop", []):
            done.append({"did": "drop", "protocol": protocol, "number": number, "payload_bytes": size})
        elif str(number) in todo.get("hold", {}):
            held.append((todo["hold"][str(number)], frame))
            done.append({"did": "hold", "protocol": protocol, "number": number, "payload_bytes": size})
            continue
        else:
            there.send(frame)
            if number in todo.get("double", []):
                there.send(frame)
                done.append({"did": "double", "protocol": protocol, "number": number, "payload_bytes": size})
        held = [(left - 1, frame) for left, frame in held]
        for left, frame in held:
            if left == 0:
                there.send(frame)
        held = [(left, frame) for left, frame in held if left > 0]
    done.append({"seen": counts, "still_held": len(held)})
    pathlib.Path(sys.argv[4]).write_text("".join(json.dumps(line) + "\n" for line in done))


main()
