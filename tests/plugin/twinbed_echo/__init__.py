"""Echo requests of ICMP, by nping: a workload, the format of nping's text, and an analysis of both."""

from __future__ import annotations

import re
import statistics
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from pydantic import Field

from twinbed.contracts.analysis import Analysis, NoSettings
from twinbed.contracts.command import Command
from twinbed.contracts.extracted import Extracted, artifacts_named
from twinbed.contracts.format import Format, FormatError, Measurement, Source
from twinbed.contracts.params import WorkloadParams
from twinbed.contracts.workload import Workload, WorkloadPlan
from twinbed.metrics.metric import Layer, Metric, Value
from twinbed.model.caution import Caution
from twinbed.model.error import TwinbedError
from twinbed.model.json import Document
from twinbed.model.tables import Tables
from twinbed.show.section import Section
from twinbed.show.table import Column, Table

ANSWERS = Metric("answers", "1", Layer.APPLICATION, "echo requests that were answered", extensive=True)
ECHO_TIME = Metric("echo_time", "s", Layer.APPLICATION, "mean time from an echo request to its answer", headline=True)
_MEAN = re.compile(r"Avg rtt: ([0-9.]+)ms")
_ANSWERS = re.compile(r"Raw packets sent: \d+ \(.*?\) \| Rcvd: (\d+) ")


def values(text: str, host: str = "") -> list[Value]:
    """Return the values of nping's text. Raises ValueError for another text."""
    mean, answers = _MEAN.search(text), _ANSWERS.search(text)
    if answers is None:
        raise ValueError("no line 'Raw packets sent' of nping")
    seconds = float(mean[1]) / 1000 if mean else None
    return [Value("answers", float(answers[1]), "1", host), Value("echo_time", seconds, "s", host)]


class EchoParams(WorkloadParams):
    """The settings of a study file."""

    count: int = Field(20, ge=1, le=10_000, description="number of echo requests of each client")


class Echo(Workload[EchoParams]):
    """The workload. The kernels of servers answer, so that it starts no server."""

    name = "echo"
    params = EchoParams
    summary = "echo requests of ICMP (nping)"
    files = ("echo.txt",)
    metrics = (ANSWERS, ECHO_TIME)
    work = "answers"
    rate = ""

    def plan(self, params: EchoParams, pairs: Sequence[tuple[str, str, str]]) -> WorkloadPlan:
        argv = ("nping", "--icmp", "--delay", "10ms", "-c", str(params.count))
        return WorkloadPlan(clients=[Command(client, (*argv, address), "echo.txt") for client, _, address in pairs])

    def parse(self, params: EchoParams, artifacts: Path) -> Extracted:
        files = artifacts_named(artifacts, "echo.txt")
        found = [values(file.read_text(), "" if len(files) == 1 else file.parent.name) for file in files]
        return Extracted([value for each in found for value in each])


def recognises(head: bytes) -> bool:
    return head.lstrip().startswith(b"Starting Nping ")


def read(source: Source, options: Document) -> Sequence[Measurement]:
    try:
        return [Measurement(values(source.text()))]
    except ValueError as error:
        raise FormatError(str(error)) from error


@dataclass(frozen=True)
class Times:
    """Testbed -> the mean echo time of each run, in seconds."""

    times_s: Mapping[str, Sequence[float]]
    cautions: Sequence[Caution] = ()
    left_out: Mapping[str, int] = field(default_factory=dict)


class Echoes(Analysis[NoSettings, Times]):
    """Print the median echo time of each testbed."""

    name = "echoes"
    params = NoSettings
    table_names = ("echoes",)

    def run(self, source: Tables, params: NoSettings | None = None) -> Times:
        testbeds = {record.id: record.settings["testbed"]["name"] for record in source.records}
        times: dict[str, list[float]] = defaultdict(list)
        for row in source.table("metrics").to_pylist():
            if row["metric"] == "echo_time" and row["value"] is not None and row["run"] in testbeds:
                times[str(testbeds[row["run"]])].append(row["value"])
        if not times:
            raise TwinbedError(f"{source.shown} has no echo times", advice="run a study with workload: {kind: echo}")
        return Times(times)

    def section(self, result: Times) -> Section:
        rows = [{"testbed": name, "median_s": statistics.median(times)} for name, times in result.times_s.items()]
        columns = (Column("testbed", "Testbed"), Column("median_s", "median", "s", ".6f"))
        table = Table("echoes", "Echo times", "Median over runs of the mean of each run.", columns, rows)
        return Section("echoes", "Echo times", f"Echoes were measured on {', '.join(result.times_s)}.", (table,))


workload = Echo()
format_ = Format("echo-text", "nping's text", (ANSWERS, ECHO_TIME), recognises, read, work="answers")
analysis = Echoes()
