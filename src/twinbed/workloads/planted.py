"""The workload ``planted``: asks the ``fake`` testbed for a response of known size, to show that analyses recover it.

Runs ``planted-response`` once on each client; no real host has that program.  Its standard output is one JSON object:
``requests`` (1), ``requests_per_second`` (1/s), ``packets`` (1), ``bytes`` (bytes), each a number or null; and ``features``,
numbers without a unit, where the workload asks for some. They become the table ``fingerprints``, as of a passive observer.
With several clients the values are each client's, and their sum of the run; where one lacks a number, the sum is missing.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from pydantic import Field

from twinbed.contracts.command import Command
from twinbed.contracts.extracted import Extracted, artifacts_named
from twinbed.contracts.params import WorkloadParams
from twinbed.contracts.workload import Workload, WorkloadPlan
from twinbed.metrics.planted import METRICS, UNITS
from twinbed.model.json import loads
from twinbed.model.units import Duration
from twinbed.readers.clients import Numbers, total, values

if TYPE_CHECKING:
    import pyarrow as pa

ARTIFACT = "planted.json"


class PlantedParams(WorkloadParams):
    """Settings of the planted response."""

    rate: float = Field(1000.0, gt=0, description="mean requests per second, before the testbed's factor")
    spread: float = Field(0.02, ge=0, description="standard deviation of the natural logarithm of the rate; 0.02 is about 2 %")
    seconds: Duration = Field(0.0, description="duration of the program")
    features: int = Field(
        0, ge=0, le=1000, description="planted features of each client, by which an observer can distinguish testbeds"
    )


def parse_response(text: bytes) -> dict[str, float | None]:
    """Return the metrics of one client's answer; null becomes None. Raises ValueError for other text."""
    answer = loads(text)
    if not isinstance(answer, dict):
        raise ValueError(f"should be a JSON object, not {type(answer).__name__}")
    numbers: dict[str, float | None] = {}
    for metric in METRICS:
        number = answer.get(metric.name)
        if isinstance(number, bool) or not isinstance(number, int | float | None):
            raise ValueError(f"{metric.name} is {number!r}; it should be a number or null")
        numbers[metric.name] = number
    return numbers


def parse_features(text: bytes) -> list[float]:
    """Return the planted features of one client's answer. Raises ValueError where they are not a list of numbers."""
    features = loads(text).get("features", [])
    if not isinstance(features, list) or any(
        isinstance(feature, bool) or not isinstance(feature, int | float) for feature in features
    ):
        raise ValueError(f"features is {features!r:.60}; it should be a list of numbers")
    return [float(feature) for feature in features]


def _fingerprints(features: Mapping[str, Sequence[float]]) -> pa.Table:
    import pyarrow as pa

    rows = [(host, f"planted_{number}", value) for host, each in features.items() for number, value in enumerate(each, 1)]
    hosts, names, numbers = (list(column) for column in zip(*rows, strict=True))
    return pa.table(
        {
            "observer": ["passive"] * len(rows),
            "host": hosts,
            "feature": names,
            "text": [repr(value) for value in numbers],
            "value": pa.array(numbers, pa.float64()),
            "seen": [1] * len(rows),
        }
    )


def _together(clients: Sequence[Numbers]) -> Numbers:
    return {metric.name: total([client[metric.name] for client in clients]) for metric in METRICS}


class Planted(Workload[PlantedParams]):
    """The workload."""

    name = "planted"
    params = PlantedParams
    summary = "a response of known size from the fake testbed, for tests and demonstrations"
    also = ("dummy", "mock", "synthetic")
    files = ("planted.*",)
    metrics = METRICS
    work = "requests"
    rate = "requests_per_second"

    def plan(self, params: PlantedParams, pairs: Sequence[tuple[str, str, str]]) -> WorkloadPlan:
        options = ["--rate", str(params.rate), "--spread", str(params.spread), "--seconds", str(params.seconds)]
        options += ["--features", str(params.features)] if params.features else []
        limit_s = params.seconds + 30.0
        return WorkloadPlan(
            clients=[
                Command(client, ("planted-response", *options), ARTIFACT, limit_s=limit_s)
                for client, _server, _address in pairs
            ]
        )

    def parse(self, params: PlantedParams, artifacts: Path) -> Extracted:
        files = artifacts_named(artifacts, ARTIFACT)
        answers: dict[str, dict[str, float | None]] = {}
        features: dict[str, list[float]] = {}
        for file in files:
            try:
                answers[file.parent.name] = parse_response(file.read_bytes())
                features[file.parent.name] = parse_features(file.read_bytes())
            except ValueError as error:
                raise ValueError(f"{file}: {error}") from error
        tables = {"fingerprints": _fingerprints(features)} if any(features.values()) else {}
        return Extracted(list(values(list(answers.items()), UNITS, _together)), tables)


planted = Planted()
