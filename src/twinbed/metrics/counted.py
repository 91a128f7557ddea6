"""Metrics that count: whole numbers that no rounding made."""

from __future__ import annotations

import functools
import importlib
import pkgutil
from collections.abc import Iterator, Mapping, Sequence

from twinbed import metrics
from twinbed.metrics.metric import Metric

COUNT = "count"
"""The unit by which a manifest declares that a column counts."""
EVENTS = ("1", COUNT)
"""Units of metrics that count one by one."""


@functools.cache
def counted() -> frozenset[str]:
    """Return the names of all metrics that this package declares with a unit of counts. Whole numbers of other metrics, such as
    a column of an imported table, may be rounded."""
    modules = [
        importlib.import_module(f"{metrics.__name__}.{module_info.name}")
        for module_info in pkgutil.iter_modules(metrics.__path__)
    ]
    declared = (metric for module in modules for value in vars(module).values() for metric in _metrics(value))
    return frozenset(metric.name for metric in declared if metric.unit in (*EVENTS, "bytes"))


def _metrics(value: object) -> Iterator[Metric]:
    if isinstance(value, Metric):
        yield value
    elif isinstance(value, Mapping):
        yield from _metrics(list(value.values()))
    elif isinstance(value, Sequence) and not isinstance(value, str | bytes):
        for member in value:
            if isinstance(member, Metric):
                yield member
