"""A host of a model: it reads the argument lists of nginx, ab and iperf3, and answers each with a simulation in this process.

A program that stays (nginx, iperf3 -s) only listens. A client's program simulates itself, the path and the server, and ends
when the simulation has been computed. Options whose effect is not modelled are refused.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from random import Random
from urllib.parse import urlsplit

from twinbed.contracts.place import BACKGROUND_PORTS
from twinbed.hosts.error import HostError
from twinbed.hosts.in_process import Answer, InProcessHost
from twinbed.model.topology import Topology
from twinbed.testbeds.model import iperf3, requests
from twinbed.testbeds.model.iperf3 import BLOCK_BYTES, BUFFER_BYTES, Flow, Offered
from twinbed.testbeds.model.requests import Asked
from twinbed.testbeds.model.settings import ModelSettings


class NotModelled(ValueError):
    """An option whose effect a model does not have."""


@dataclass(frozen=True, slots=True)
class Arguments:
    """Options by name (a switch has an empty value), and in ``rest`` all other arguments."""

    options: Mapping[str, str]
    rest: Sequence[str]

    def number(self, name: str) -> int | None:
        text = self.options.get(name)
        return None if text is None else int(text)


_AB = {"-q": 0, "-r": 0, "-k": 0, "-s": 1, "-t": 1, "-n": 1, "-c": 1, "-g": 1, "-e": 1}
_IPERF3 = {"-J": 0, "--get-server-output": 0, "-u": 0, "-s": 0, "-c": 1, "-p": 1, "-i": 1, "-t": 1, "-O": 1, "-P": 1}
_IPERF3 |= {"-b": 1, "-l": 1, "-M": 1, "-w": 1}


def _read(argv: Sequence[str], known: Mapping[str, int]) -> Arguments:
    """Read an argument list. ``known``: option to number of values. Raises NotModelled."""
    options: dict[str, str] = {}
    rest: list[str] = []
    waiting = list(argv[1:])
    while waiting:
        argument = waiting.pop(0)
        if not argument.startswith("-"):
            rest.append(argument)
        elif argument not in known:
            raise NotModelled(f"{argv[0]} {argument} is not modelled")
        elif known[argument] and not waiting:
            raise NotModelled(f"{argv[0]} {argument} lacks its value")
        else:
            options[argument] = waiting.pop(0) if known[argument] else ""
    return Arguments(options, rest)


PROGRAMS = ("ab", "nginx", "iperf3", "mkdir", "dd")
HTTP_PORT = 80
DOCUMENTS = "/run/www"
SERVER = "nginx/1.22.1"
WITHOUT_LIMIT_S = 86_400
"""The duration of ab without -t, which ends when it has its requests."""
GIVEN_UP = b"apr_pollset_poll: The timeout specified has expired (70007)\n"
"""ab prints this if the server stops answering."""
_DEFAULT_IPERF3_PORT = 5201


@dataclass
class Network:
    """The hosts of a testbed and what they share."""

    topology: Topology
    settings: ModelSettings
    seed: str
    """All random numbers derive from it."""
    by_address: dict[str, ModelHost] = field(default_factory=dict)


class ModelHost(InProcessHost):
    """A host. Files outside its folder of artifacts have a size and no content."""

    kind = "model"

    def __init__(self, name: str, artifacts: str, address: str, network: Network) -> None:
        super().__init__(name, artifacts)
        self.address = address
        self.network = network
        self.sizes: dict[str, int] = {}
        """Path to bytes."""
        self._ports: set[int] = set()

    def write(self, path: str, content: bytes, *, mode: int | None = None, limit_s: float = 30.0) -> None:
        if Path(path).is_relative_to(self.artifacts):
            super().write(path, content, mode=mode, limit_s=limit_s)
        else:
            self.sizes[path] = len(content)

    def listening(self, port: int, limit_s: float, protocol: str = "tcp") -> float:
        if port not in self._ports:
            raise HostError(f"{self.name}: nothing listens on TCP port {port}")
        return 0.0

    def answer(self, argv: Sequence[str]) -> Answer | None:
        try:
            match argv[0]:
                case "mkdir":
                    return Answer()
                case "dd":
                    return self._fill(argv)
                case "nginx":
                    return self._stays(HTTP_PORT)
                case "ab":
                    return self._ab(argv)
                case "iperf3" if "-s" in argv:
                    return self._stays(_read(argv, _IPERF3).number("-p") or _DEFAULT_IPERF3_PORT)
                case "iperf3":
                    return self._iperf3(argv)
        except NotModelled as error:
            raise HostError(f"{self.name}: {error}") from None
        return None

    def _stays(self, port: int) -> Answer:
        if port in BACKGROUND_PORTS:
            raise NotModelled("background load is not modelled: leave it out for this testbed")
        self._ports.add(port)
        return Answer(seconds=math.inf)

    def _fill(self, argv: Sequence[str]) -> Answer:
        given = dict(argument.split("=", 1) for argument in argv[1:])
        self.sizes[given["of"]] = int(given["count"])
        return Answer()

    def _other_end(self, address: str, port: int) -> ModelHost:
        server = self.network.by_address.get(address)
        if server is None:
            raise HostError(f"{self.name}: no route to {address}")
        server.listening(port, 0.0)
        return server

    def _chance(self, program: str) -> Random:
        """Return a generator for this client alone: neither the order of clients nor earlier programs matter."""
        return Random(f"{self.network.seed}/{self.name}/{program}")

    def _ab(self, argv: Sequence[str]) -> Answer:
        arguments = _read(argv, _AB)
        url = urlsplit(arguments.rest[0])
        if url.scheme != "http" or url.hostname is None:
            raise NotModelled(f"{url.scheme}: TLS is not modelled")
        server = self._other_end(url.hostname, url.port or HTTP_PORT)
        size = server.sizes.get(f"{DOCUMENTS}{url.path}")
        if size is None:
            raise HostError(f"{server.name}: nginx has no {url.path}")
        keep_alive = "-k" in arguments.options
        threads = arguments.number("-c") or 1
        seconds = arguments.number("-t")
        asked = Asked(
            threads=threads,
            most_requests=arguments.number("-n") or 1,
            duration_s=WITHOUT_LIMIT_S if seconds is None else seconds,
            keep_alive=keep_alive,
            question_bytes=len(_question(url.hostname, url.path, keep_alive)),
            header_bytes=len(_header(size, keep_alive)),
            document_bytes=size,
        )
        chance = self._chance("ab" if "-g" in arguments.options else "warm-up")
        settings, topology = self.network.settings, self.network.topology
        seen = requests.ask(asked, topology.link, settings.tcp(topology), settings.costs(self._chance_of_run()), chance)
        if seen.silent:
            return Answer(code=1, stderr=GIVEN_UP)
        for option, text in (("-g", requests.rows), ("-e", requests.percentiles)):
            if option in arguments.options:
                self.write(arguments.options[option], text(seen.requests).encode())
        place = (url.hostname, url.port or HTTP_PORT, url.path)
        return Answer(requests.report(seen, url=place, server=SERVER, threads=threads, document_bytes=size).encode())

    def _chance_of_run(self) -> Random:
        """Return a generator that all hosts of a run share."""
        return Random(self.network.seed)

    def _iperf3(self, argv: Sequence[str]) -> Answer:
        arguments = _read(argv, _IPERF3)
        self._other_end(arguments.options["-c"], arguments.number("-p") or _DEFAULT_IPERF3_PORT)
        settings, topology = self.network.settings, self.network.topology
        omit_s = arguments.number("-O") or 0
        seconds = omit_s + (arguments.number("-t") or 10)
        count, rate = arguments.number("-P") or 1, arguments.number("-b") or None
        costs, chance = settings.costs(self._chance_of_run()), self._chance("iperf3")
        tcp = settings.tcp(topology, arguments.number("-M"), arguments.number("-w"))
        if "-u" in arguments.options:
            buffer_bytes = arguments.number("-w")
            offered = Offered(
                seconds=seconds,
                streams=count,
                rate=rate,
                # iperf3 takes the MSS of its control connection.
                payload_bytes=arguments.number("-l") or tcp.mss_bytes,
                mtu_bytes=topology.link.mtu,
                frame_overhead_bytes=settings.frame_overhead,
                buffer_bytes=BUFFER_BYTES if buffer_bytes is None else 2 * buffer_bytes,
            )
            came = iperf3.offer(offered, topology.link, costs, chance)
            return Answer(iperf3.of_udp(came, offered, omit_s).encode())
        flow = Flow(seconds, count, rate, arguments.number("-l") or BLOCK_BYTES)
        return Answer(iperf3.of_tcp(iperf3.stream(flow, topology.link, tcp, costs, chance), omit_s).encode())


def _question(host: str, path: str, keep_alive: bool) -> bytes:
    """Return a request as ab 2.3 writes it."""
    kept = "Connection: Keep-Alive\r\n" if keep_alive else ""
    return f"GET {path} HTTP/1.0\r\n{kept}Host: {host}\r\nUser-Agent: ApacheBench/2.3\r\nAccept: */*\r\n\r\n".encode()


def _header(size_bytes: int, keep_alive: bool) -> bytes:
    """Return the header with which nginx answers a request of HTTP/1.0."""
    fields: Mapping[str, str] = {
        "Server": SERVER,
        "Date": "Thu, 01 Jan 1970 00:00:00 GMT",
        "Content-Type": "application/octet-stream",
        "Content-Length": str(size_bytes),
        "Last-Modified": "Thu, 01 Jan 1970 00:00:00 GMT",
        "Connection": "keep-alive" if keep_alive else "close",
        "ETag": f'"00000000-{size_bytes:x}"',
        "Accept-Ranges": "bytes",
    }
    lines = "".join(f"{name}: {value}\r\n" for name, value in fields.items())
    return f"HTTP/1.1 200 OK\r\n{lines}\r\n".encode()
