"""A format for tests: ``rate 12.5`` is a measurement, with any number of lines."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from twinbed.contracts.format import Diagnostic, FormatError, Measurement, Source
from twinbed.metrics.metric import Layer, Metric, Value

RATE = Metric("requests_per_second", "1/s", Layer.APPLICATION, "requests a second", headline=True)
LOAD = Metric("cpu_share", "1", Layer.HOST, "share of CPU time", headline=True)


class Line:
    name = "line"
    summary = "a rate a line"
    metrics = (RATE,)
    work = ""
    rate = "requests_per_second"
    word = "rate"

    def recognises(self, head: bytes) -> bool:
        return head.startswith(self.word.encode())

    def read(self, source: Source, options: Mapping[str, Any]) -> Sequence[Measurement]:
        lines = source.text().splitlines()
        if lines[:1] == [f"{self.word} broken"]:
            raise FormatError("is broken", 1)
        return [self._reading(number, line.split()) for number, line in enumerate(lines, start=1)]

    def _reading(self, number: int, words: list[str]) -> Measurement:
        (metric,) = self.metrics
        facts = dict(word.split("=", 1) for word in words[2:])
        started = float(facts.pop("at")) if "at" in facts else None
        try:
            return Measurement([Value(metric.name, float(words[1]), metric.unit)], facts=facts, started_s=started)
        except (ValueError, IndexError):
            return Measurement([Value(metric.name, None, metric.unit)], diagnostics=[Diagnostic("is no rate", number)])


class Load(Line):
    """Of a host beside the workload: ``load 0.5``."""

    name = "load"
    metrics = (LOAD,)
    rate = ""
    word = "load"


FORMATS = {"line": Line(), "load": Load()}
