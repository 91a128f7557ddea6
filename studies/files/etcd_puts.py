"""Put keys into an etcd cluster, one after another, and write how long each put took.

    etcd_puts.py FOLDER PUTS KILL_AT SIZE URL...

A put is asked again of the next member until one accepts it.  After KILL_AT puts it prints which member leads, so that an event
of the run can kill that member.  FOLDER/puts.txt gets the seconds of each put, from its first request to its acceptance.
"""

import base64
import http.client
import json
import sys
import time
from itertools import pairwise
from urllib.parse import urlsplit

LIMIT_S = 0.5


class Members:
    def __init__(self, urls):
        self.places = [urlsplit(url) for url in urls]
        self.connections = {}
        self.at = 0

    def ask(self, path, body, at=None):
        """Return the answer of a member; by default of the one that answered last. Raises OSError or HTTPException."""
        at = self.at if at is None else at
        place = self.places[at]
        if at not in self.connections:
            self.connections[at] = http.client.HTTPConnection(place.hostname, place.port, timeout=LIMIT_S)
        try:
            self.connections[at].request("POST", path, body)
            response = self.connections[at].getresponse()
            content = response.read()
        except (OSError, http.client.HTTPException):
            self.connections.pop(at).close()
            raise
        if response.status != 200:
            raise http.client.HTTPException(content.decode(errors="replace"))
        return json.loads(content)

    def put(self, body):
        """Put until a member accepts it; return how often it was refused."""
        refused = 0
        while True:
            try:
                self.ask("/v3/kv/put", body)
                return refused
            except (OSError, http.client.HTTPException):
                refused += 1
                self.at = (self.at + 1) % len(self.places)
                time.sleep(0.005)

    def leader(self):
        """Return the name of the member that leads."""
        status = self.ask("/v3/maintenance/status", "{}")
        members = self.ask("/v3/cluster/member/list", "{}")["members"]
        return next(member["name"] for member in members if member["ID"] == status["leader"])


def main(puts, kill_at, size, *urls):
    puts, kill_at, members = int(puts), int(kill_at), Members(urls)
    value = base64.b64encode(b"x" * int(size)).decode()
    seconds, accepted, refused = [], [], 0
    begun = time.monotonic()
    for number in range(puts):
        if number == kill_at:
            print("leader", members.leader(), flush=True)
        asked = time.monotonic()
        key = base64.b64encode(b"key%d" % (number % 1000)).decode()
        refused += members.put(json.dumps({"key": key, "value": value}))
        accepted.append(time.monotonic())
        seconds.append(accepted[-1] - asked)
    print(f"puts per second {puts / (accepted[-1] - begun):.3f}")
    print(f"longest time without an accepted put {max(after - before for before, after in pairwise(accepted)):.6f} s")
    print(f"refused {refused}")
    with open(f"{sys.argv[1]}/puts.txt", "w") as file:
        file.writelines(f"{each:.9f}\n" for each in seconds)


if __name__ == "__main__":
    main(*sys.argv[2:])
