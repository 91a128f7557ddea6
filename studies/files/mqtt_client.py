"""Publish messages to a broker and receive each again. Writes the time of each delivery, in seconds.

usage: mqtt_client.py BROKER MESSAGES BYTES QOS FILE
"""

import socket
import sys
import time

from paho.mqtt.client import Client, MQTTv311

LIMIT_S = 10.0


def main() -> None:
    broker, messages, size, qos, path = sys.argv[1], int(sys.argv[2]), int(sys.argv[3]), int(sys.argv[4]), sys.argv[5]
    subscribed, arrived = [], []
    client = Client(protocol=MQTTv311)
    client.on_subscribe = lambda *_: subscribed.append(True)
    client.on_message = lambda *_: arrived.append(time.perf_counter())
    client.connect(broker)
    # Without this an acknowledgment makes the next message wait for up to 40 ms (Nagle's algorithm).
    client.socket().setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    client.subscribe("plant/line/1", qos)
    wait(client, lambda: subscribed)
    times = []
    for _ in range(messages):
        arrived.clear()
        start = time.perf_counter()
        client.publish("plant/line/1", bytes(size), qos)
        wait(client, lambda: arrived)
        times.append(arrived[0] - start)
    client.disconnect()
    with open(path, "w") as file:
        file.writelines(f"{each:.6f}\n" for each in times)
    print(f"{messages} messages, {messages / sum(times):.3f} messages/s")


def wait(client, is_there) -> None:
    end = time.perf_counter() + LIMIT_S
    while not is_there():
        if client.loop(timeout=1.0) != 0 or time.perf_counter() > end:
            sys.exit(f"no message within {LIMIT_S} s, or the broker has closed the connection")


main()
