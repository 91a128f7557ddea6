"""The page of metrics, from the declarations of plugins."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from manual.markdown import table
from twinbed import registry
from twinbed.metrics import monitor, runs
from twinbed.metrics.derived import FAIRNESS, unit_of_work
from twinbed.metrics.metric import Metric

DERIVED = (
    (
        "Runs with two or more pairs have these. Fairness is over each client's own rate, and missing where one is missing:"
        " {rates}.",
        (FAIRNESS, runs.OVERLAP),
    ),
    (
        "Runs whose requests are captured (instrument `packets`), or that iperf3 made, have these: see [steady](steady.md)."
        " They are missing where too little happened to show a pace.",
        runs.METRICS,
    ),
    (
        "Each link whose requests are captured, not encrypted, has these where its client counted them too.",
        runs.COMPLETENESS_METRICS,
    ),
    (
        "Each link that the instrument `monitor` watches has these, and the clients together: see [observer](observer.md).",
        monitor.EXTRA_METRICS,
    ),
    (
        "Programs of every run have these, each with all that it starts itself: the workload's apart from the instruments'."
        " A client counts from its start to its end, a server from the start of the workload. All are divided by the work too.",
        runs.USAGE_METRICS,
    ),
)
"""Metrics that no plugin declares, and what has them."""
DECLARED = "The study declares its metrics: see [a workload of your own](howto-own-workload.md)."
IMPORTED = "Files that were made elsewhere ([formats](formats.md)) give the metrics above where they are the same, and these."


def text() -> str:
    """Return a section of each plugin that has metrics."""
    return "\n".join([*_derived(), *_declared(), *_imported()])


def _derived() -> Iterator[str]:
    rates = "; ".join(
        f"`{plugin.rate}` of `{plugin.name}`" if plugin.rate else f"what `{plugin.name}` marks with `rate: true`"
        for plugin in registry.PLUGINS.workloads.values()
    )
    yield "## derived\n"
    for about, metrics in DERIVED:
        yield f"{about.format(rates=rates)}\n\n{_table(metrics)}"


def _declared() -> Iterator[str]:
    plugins = registry.PLUGINS
    found = (
        *(("workload", each) for each in plugins.workloads.values()),
        *(("instrument", each) for each in plugins.instruments.values()),
        *(("background load", each) for each in plugins.backgrounds.values()),
    )
    for kind, plugin in found:
        own = _table(plugin.metrics, divided=True) if plugin.metrics else f"{DECLARED}\n"
        yield f"## {kind} `{plugin.name}`\n\n{plugin.summary}\n\n{own}"


def _imported() -> Iterator[str]:
    """Yield the section of what formats of files made elsewhere have in addition to the metrics of plugins."""
    plugins = registry.PLUGINS
    known = {
        each.name for found in (plugins.workloads, plugins.accompanying) for plugin in found.values() for each in plugin.metrics
    }
    others: dict[str, Metric] = {}
    for each in (metric for plugin in plugins.formats.values() for metric in plugin.metrics if metric.name not in known):
        others.setdefault(each.name, each)
    yield f"## imported\n\n{IMPORTED}\n\n{_table(others.values())}"


def _table(metrics: Iterable[Metric], divided: bool = False) -> str:
    return table(("metric", "unit", "layer", "scale", "", "what"), [_row(each, divided) for each in metrics])


def _row(metric: Metric, divided: bool) -> tuple[str, ...]:
    marks = (f"per {unit_of_work('requests')}" if divided and metric.extensive else "", "headline" if metric.headline else "")
    return f"`{metric.name}`", metric.unit, metric.layer, metric.scale, ", ".join(filter(None, marks)), metric.description
