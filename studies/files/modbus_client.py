"""Poll registers of a Modbus/TCP server in a fixed cycle, as a control system does.

usage: modbus_client.py SERVER POLLS CYCLE_SECONDS REGISTERS FOLDER

Writes files into FOLDER, with a number a line, in seconds. The file responses.txt has the time of each poll, from request to
answer. The file cycles.txt has the time from the start of a poll to the start of the next, and deviations.txt its difference
from CYCLE_SECONDS. A poll that ends after its cycle counts as missed. The next poll then starts at the next full cycle.
"""

import math
import sys
import time
from itertools import pairwise
from pathlib import Path

from pymodbus.client import ModbusTcpClient


def main() -> None:
    server, polls, cycle, registers = sys.argv[1], int(sys.argv[2]), float(sys.argv[3]), int(sys.argv[4])
    client = ModbusTcpClient(server, port=502, timeout=5)
    if not client.connect():
        sys.exit(f"no connection to {server}")
    starts, responses, missed = [], [], 0
    due = time.perf_counter() + cycle
    for _ in range(polls):
        time.sleep(max(0.0, due - time.perf_counter()))
        start = time.perf_counter()
        answer = client.read_holding_registers(0, registers, slave=1)
        end = time.perf_counter()
        if answer.isError():
            sys.exit(f"poll {len(starts) + 1}: {answer}")
        starts.append(start)
        responses.append(end - start)
        late = math.floor((end - due) / cycle)
        missed += late
        due += (late + 1) * cycle
    client.close()
    cycles = [after - before for before, after in pairwise(starts)]
    folder = Path(sys.argv[5])
    for name, numbers in (("responses", responses), ("cycles", cycles), ("deviations", [abs(each - cycle) for each in cycles])):
        (folder / f"{name}.txt").write_text("".join(f"{number:.6f}\n" for number in numbers))
    print(f"{polls} polls, {missed} cycles missed, {len(cycles) / sum(cycles):.4f} polls/s")


main()
