"""Play a video that a web server has in segments, in real time and without a picture: what a viewer waits for.

usage: video_player.py SERVER SEGMENTS SEGMENT_SECONDS FILE BITRATE...

Segments of a bitrate in kbit/s are at http://SERVER/BITRATE. The player starts when it has two segments of the lowest bitrate,
and keeps four. Then it takes the highest bitrate below 80 % of the lowest throughput of the last three segments, since a shaper
lets the first packets through faster than its rate. It stops (rebuffers) while it has no segment left. FILE gets the time that
each segment took to arrive, in seconds.
"""

import sys
import time
from http.client import HTTPConnection
from itertools import pairwise

AHEAD = 4
FIRST = 2
LAST = 3
SHARE = 0.8


def main() -> None:
    server, count, length, path = sys.argv[1], int(sys.argv[2]), float(sys.argv[3]), sys.argv[4]
    bitrates = sorted(int(each) for each in sys.argv[5:])
    times, chosen = [], []
    rates = []
    delay = rebuffered = 0.0
    pauses = 0
    begun = time.perf_counter()
    empty = None  # when the last segment that is here will have been played; None before the start
    connection = HTTPConnection(server, 80, timeout=60)
    for number in range(count):
        if empty is not None:
            time.sleep(max(0.0, empty - time.perf_counter() - (AHEAD - 1) * length))
        fitting = [each for each in bitrates if number >= FIRST and each * 1000 <= SHARE * min(rates[-LAST:])]
        chosen.append(max(fitting, default=bitrates[0]))
        start = time.perf_counter()
        connection.request("GET", f"/{chosen[-1]}")
        answer = connection.getresponse()
        content = answer.read()
        now = time.perf_counter()
        if answer.status != 200 or not content:
            sys.exit(f"segment {number + 1}: HTTP status {answer.status}")
        times.append(now - start)
        rates.append(len(content) * 8 / times[-1])
        if number + 1 == FIRST:
            delay, empty = now - begun, now + FIRST * length
        elif empty is not None:
            if now > empty:
                pauses, rebuffered = pauses + 1, rebuffered + now - empty
            empty = max(empty, now) + length
    connection.close()
    with open(path, "w") as file:
        file.writelines(f"{each:.6f}\n" for each in times)
    print(f"start-up delay {delay:.6f} s")
    print(f"rebuffered {pauses} times, {rebuffered:.6f} s, {rebuffered / (count * length):.6f} of the time played")
    changes = sum(before != after for before, after in pairwise(chosen))
    print(f"mean bitrate {sum(chosen) / count:.3f} kbit/s, {changes} changes")


main()
