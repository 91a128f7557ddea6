"""The analyses, a folder each.  A new one is its folder and a line here; this file imports none of them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Entry:
    """Hold what lists of commands need of an analysis, without importing it."""

    help: str
    own_command: bool = False
    """True: ``<name>/command.py`` has the command ``twinbed NAME``; else ``twinbed analyse NAME`` is made of the analysis."""
    settings: bool = False
    """True: the command in that file gets its help, and the options of its settings, from the analysis."""


ANALYSES: Mapping[str, Entry] = {
    "compare": Entry("The verdict on each testbed against the reference.", own_command=True),
    "anatomy": Entry("Where a request's time goes, step by step, on each testbed.", own_command=True, settings=True),
    "explain": Entry("Why testbeds differ: candidate causes, and their proof.", own_command=True),
    "calibrate": Entry("Predict an expensive testbed from a cheap one and a few runs.", own_command=True, settings=True),
    "chain": Entry("System calls as Markov chains, from traces or results.", own_command=True),
    "passport": Entry("How two testbeds or results differ: kernels, NICs, settings.", own_command=True),
    "anova": Entry("Which factors matter: analysis of variance."),
    "regression": Entry("By how much: a linear model of factors and numbers."),
    "capacity": Entry("How many fit: the largest N that keeps an objective."),
    "scaling": Entry("How many pairs fit by loss, rate and fairness, as in the report."),
    "contention": Entry("Where rates bend, and whether the machine's metrics show it."),
    "tails": Entry("The slowest requests: quantiles of request times, compared with the reference."),
    "steady": Entry("Warm-up and drift inside runs, and how long runs should last."),
    "stalls": Entry("When connections stalled, for how long, and what the kernels reported."),
    "sockets": Entry("Why TCP senders wait, and their congestion windows over time."),
    "monitor": Entry("Connections and alerts that a security monitor sees beyond the workload's."),
    "detectability": Entry("How an observer tells a testbed from the reference, and from how many packets."),
    "multifidelity": Entry("Estimate an expensive testbed from few expensive runs and many cheap ones."),
    "anomaly": Entry("Pairs that are faster among several than alone, and metrics that move with the rate."),
}
