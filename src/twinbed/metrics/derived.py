"""Declarations of the metrics that follow from others: effects divided by the work done, and fairness.

``<name>_per_<unit of work>`` is declared for every extensive metric: packets and requests make ``packets_per_request``.
``fairness`` is Jain's index (1984) of the clients' rates.  ``results/extract/derived.py`` computes the values.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

from twinbed.metrics.metric import Layer, Metric

FAIRNESS = Metric(
    "fairness",
    "1",
    Layer.APPLICATION,
    "how evenly the clients share: Jain's index of their rates of work, from 1/n (one has all) to 1 (all are equal)",
    headline=True,
)


_ENDINGS = (("ies", "y"), ("sses", "ss"), ("tches", "tch"), ("shes", "sh"), ("xes", "x"), ("oes", "o"), ("s", ""), ("", ""))
"""Ends of plurals -> those of their singulars, the longest first."""


def unit_of_work(work: str) -> str:
    """Return the unit of a kind of work: ``requests`` -> ``request``, ``queries`` -> ``query``."""
    plural, singular = next(ending for ending in _ENDINGS if work.endswith(ending[0]))
    return work.removesuffix(plural) + singular


def per_work(metric: Metric, work: str) -> Metric:
    """Declare the metric divided by the work; it takes its place among the headlines."""
    singular = unit_of_work(work)
    return replace(
        metric,
        name=f"{metric.name}_per_{singular}",
        unit=f"{metric.unit}/{singular}",
        description=f"{metric.description}; divided by {work}",
        extensive=False,
    )


def declared(metrics: Iterable[Metric], work: str) -> dict[str, Metric]:
    """Return all metrics of a plugin by name, with the derived ones. An extensive metric itself is no headline: it shows how
    much work was done, and differs between testbeds for that reason alone."""
    by_name: dict[str, Metric] = {}
    for metric in metrics:
        by_name[metric.name] = replace(metric, headline=False) if metric.extensive and work else metric
        if work and metric.extensive and metric.name != work:
            derived = per_work(metric, work)
            by_name[derived.name] = derived
    return by_name
