"""Driver ``fake``: no hosts, but a planted response, so that analyses can be compared with the planted values.

Its hosts answer ``planted-response`` with the workload's rate times ``ratio`` and lognormal noise, and with as many standard
normal features as the workload asks for, the first shifted by ``shift``. The noise derives from ``seed`` and the run; without
a seed it is new every time.
"""

from __future__ import annotations

import contextlib
import json
import math
import random
from collections.abc import Iterator, Sequence

from pydantic import Field

from twinbed.contracts.bed import Applied, Bed
from twinbed.contracts.check import Check
from twinbed.contracts.driver import Driver
from twinbed.contracts.params import DriverParams
from twinbed.contracts.place import MACHINE
from twinbed.contracts.site import Site
from twinbed.hosts.in_process import Answer, InProcessHost
from twinbed.model.topology import Topology


class FakeSettings(DriverParams):
    ratio: float = Field(1.0, gt=0, description="factor on the planted response on this testbed")
    spread: float | None = Field(
        None, ge=0, examples=[0.02], description="standard deviation of the log of the response; null: the workload's"
    )
    shift: float = Field(
        0.0, description="shift of the first planted feature on this testbed, in standard deviations between runs"
    )
    seed: int | None = Field(None, examples=[1], description="makes the noise repeatable; null: new noise every time")

    def estimate_seconds(self) -> float:
        """Return the seconds that a run adds to its workload."""
        return 0.01


class FakeHost(InProcessHost):
    """A host with one program, ``planted-response``."""

    kind = "fake"

    def __init__(self, name: str, artifacts: str, settings: FakeSettings, noise: random.Random) -> None:
        super().__init__(name, artifacts)
        self.settings, self.noise = settings, noise

    def answer(self, argv: Sequence[str]) -> Answer | None:
        if argv[0] != "planted-response":
            return None
        arguments = list(argv[1:])
        return Answer(self._respond(arguments), seconds=float(_option(arguments, "--seconds", "0")))

    def _respond(self, arguments: list[str]) -> bytes:
        spread = self.settings.spread if self.settings.spread is not None else float(_option(arguments, "--spread", "0.02"))
        rate = float(_option(arguments, "--rate", "1000")) * self.settings.ratio * math.exp(self.noise.gauss(0.0, spread))
        requests = round(rate * 10)
        packets = round(requests * 10 * math.exp(self.noise.gauss(0.0, spread / 10)))
        answer: dict[str, float | list[float]] = {
            "requests": requests,
            "requests_per_second": rate,
            "packets": packets,
            "bytes": packets * 120,
        }
        if count := int(_option(arguments, "--features", "0")):
            first, *others = (self.noise.gauss(0.0, 1.0) for _ in range(count))
            answer["features"] = [first + self.settings.shift, *others]
        return json.dumps(answer).encode()


def _option(arguments: list[str], name: str, default: str) -> str:
    return arguments[arguments.index(name) + 1] if name in arguments else default


class Fake(Driver[FakeSettings]):
    name = "fake"
    params = FakeSettings
    in_process = True
    summary = "no hosts, a planted response: for tests and demonstrations, with the workload `planted`"
    also = ("dummy", "mock", "synthetic")

    def check(self, params: FakeSettings) -> Sequence[Check]:
        return []

    @contextlib.contextmanager
    def up(self, params: FakeSettings, topology: Topology, site: Site) -> Iterator[Bed]:
        names = dict.fromkeys(name for pair in (*topology.names(), *topology.bystander_names()) for name in pair)
        noise = random.Random(None if params.seed is None else f"{params.seed}/{site.run}")
        hosts = {name: FakeHost(name, str(site.place(name)), params, noise) for name in names}
        yield Bed(
            hosts=hosts,
            addresses={name: f"10.77.0.{number}" for number, name in enumerate(names, start=1)},
            targets=[],
            applied=[Applied(name, "ratio", params.ratio, hosts[name].settings.ratio, "the driver itself") for name in names],
            passport={MACHINE: {"kind": "fake: no machine"}, **{name: {"kind": "fake"} for name in names}},
        )


fake = Fake()
