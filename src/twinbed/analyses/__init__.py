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
    "calibrate": Entry("What one testbed would give, from another and a few runs of it.", own_command=True, settings=True),
    "chain": Entry("System calls as Markov chains, from traces or results.", own_command=True),
    "passport": Entry("What differs between two testbeds or results.", own_command=True),
    "anova": Entry("Which factors matter: analysis of variance."),
    "regression": Entry("By how much: a linear model of factors and numbers."),
    "capacity": Entry("How many fit: the largest N that keeps an objective."),
    "scaling": Entry("How many pairs fit by loss, rate and fairness: what the report says."),
    "contention": Entry("Where rates bend, and whether the machine shows it."),
    "tails": Entry("What users feel: the times of single requests, by quantiles."),
    "steady": Entry("Do runs warm up and settle, and how long should they last."),
    "stalls": Entry("When connections stood still, for how long, and what the kernels said."),
    "sockets": Entry("What holds TCP senders up, and their congestion windows over time."),
    "monitor": Entry("What a security monitor sees that is not the workload's, and which alerts differ."),
    "detectability": Entry("Can an observer tell a testbed from the reference, and from how much."),
    "multifidelity": Entry("Few expensive runs and many cheap ones: what the expensive testbed gives."),
    "anomaly": Entry("Are several faster than one, and what moves with it."),
}
