"""Walk testbeds' sequences through the reference's chains: the seeds' Tables VIII and IX, and an interval.

The seeds (ICNC 2019, section V-D) make a chain of every replicate of the reference.  They walk it with every sequence of every
testbed, the reference's own too: 10 x 10 walks a testbed.  Sequences are cut to equal lengths when their traces are read
(``skip`` and ``limit``).  The seeds limit to 2 million calls, without and with the first million skipped.  With the skip the
exponents shrink by 2 and 15 %, so those walks use the next 2 million calls, not the remaining 1 million.

* Table VIII is the number of invalid transitions over all walks.  The seeds may count transitions, or walks that have any: both
  are given.
* Table IX is the mean probability of the walks, relative to the mean of the reference's sequences in the same chains.  An
  invalid transition makes a probability zero.  The seeds average the others ("very few probabilities to average"), so the mean
  here covers valid walks, with their number.  The largest probability dominates a mean, so the mean of logarithms, to which
  every walk contributes equally, is given too.

The interval covers the loss per call of a testbed's sequences, compared with the reference's.  Walks through one chain depend
on each other, so each sequence counts once: its log10-probability per call in the chain of all replicates of the reference,
without its own.  Each value is a mean over thousands of calls, so nearly normal, and replicates are few: Welch's t (1947,
Biometrika 34:28) keeps its coverage where a bootstrap of three to ten values is too narrow.  A sequence with an invalid
transition is impossible, however likely its other calls: without smoothing it has no value.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from statistics import fmean, variance
from typing import TYPE_CHECKING

from scipy.special import stdtrit

from twinbed._core import Transitions
from twinbed.model.result import Interval

if TYPE_CHECKING:
    from twinbed._core import Walk


@dataclass(frozen=True, slots=True)
class Rules:
    """The settings of chains and walks. ``alpha`` None: no smoothing."""

    order: int = 1
    threshold: float = 0.0
    alpha: float | None = None


@dataclass(frozen=True, slots=True)
class Walked:
    """All walks of one testbed's sequences through the reference's chains. Logarithms are of base 10."""

    testbed: str
    walks: int
    invalid: int
    """Invalid transitions over all walks (Table VIII)."""
    transitions: int
    valid_walks: int
    """Walks without an invalid transition: those whose probability is not zero."""
    equal_lengths: bool
    """True if all walks have as many transitions as the reference's; else probabilities of whole walks are not comparable."""
    log10_mean: float | None
    """The logarithm of the mean probability of the valid walks; None if none is valid."""
    mean_log10: float | None
    relative_log10_mean: float | None
    """``log10_mean`` less the reference's: the exponent of Table IX. None also if lengths differ."""
    relative_mean_log10: float | None
    per_call: float | None
    """The mean of log10 per call over the sequences, in the chain of all other replicates of the reference; None if a sequence
    has an invalid transition."""
    per_call_difference: float | None
    """``per_call`` less the reference's."""
    interval: Interval | None
    """The interval of that difference; None for the reference itself and for fewer than two replicates of either."""


def support(groups: Mapping[str, Sequence[Transitions]]) -> int:
    """Return the number of different calls in all replicates of all testbeds."""
    return len({name for group in groups.values() for chain in group for name in chain.names})


def walk_all(
    groups: Mapping[str, Sequence[Transitions]], reference: str, rules: Rules | None = None, confidence: float = 0.95
) -> list[Walked]:
    """Walk every testbed's sequences through the chains of the reference's replicates; the reference first."""
    rules = rules or Rules()
    calls = support(groups)
    chains = groups[reference]
    base: Walked | None = None
    base_lengths: set[int] = set()
    base_values: list[float] = []
    walked: list[Walked] = []
    for testbed in (reference, *(name for name in groups if name != reference)):
        walks = [_walk(chain, sequence, rules, calls) for chain in chains for sequence in groups[testbed]]
        per_call = [
            _per_call(chains, sequence, rules, calls, at if testbed == reference else None)
            for at, sequence in enumerate(groups[testbed])
        ]
        values = [value for value in per_call if value is not None] if None not in per_call else []
        lengths = {walk["transitions"] for walk in walks}
        if base is None:
            base_lengths, base_values = lengths, values
        equal = len(lengths | base_lengths) == 1
        of_testbed = _walked(testbed, walks, equal, base, values, base_values, confidence)
        base = base or of_testbed
        walked.append(of_testbed)
    return walked


def exponent(log10: float | None) -> str:
    """Return the power of ten alone, as the seeds print it: E-33288."""
    if log10 is None:
        return ""
    return "0" if log10 == -math.inf else f"E{math.floor(log10):+d}"


def log10_of_mean(values: Sequence[float]) -> float:
    """Return log10 of the mean of 10^value, for values far beyond the exponents of floats."""
    most = max(values)
    return most + math.log10(math.fsum(10 ** (value - most) for value in values) / len(values))


def difference(values: Sequence[float], reference: Sequence[float], confidence: float) -> Interval | None:
    """Return Welch's interval of the difference of two means; None for fewer than two values of either."""
    if min(len(values), len(reference)) < 2:
        return None
    a, b = variance(values) / len(values), variance(reference) / len(reference)
    middle = fmean(values) - fmean(reference)
    if a + b == 0:
        return Interval(middle, middle, confidence)
    freedom = (a + b) ** 2 / (a**2 / (len(values) - 1) + b**2 / (len(reference) - 1))
    half = float(stdtrit(freedom, (1 + confidence) / 2)) * math.sqrt(a + b)
    return Interval(middle - half, middle + half, confidence)


def _walk(chain: Transitions, sequence: Transitions, rules: Rules, calls: int) -> Walk:
    return chain.walk(sequence, rules.order, rules.threshold, alpha=rules.alpha, support=calls if rules.alpha else None)


def _per_call(chains: Sequence[Transitions], sequence: Transitions, rules: Rules, calls: int, own: int | None) -> float | None:
    others = [chain for at, chain in enumerate(chains) if at != own]
    walk = _walk(Transitions.pool(others), sequence, rules, calls)
    return None if walk["invalid"] else walk["log10_per_call"]


def _walked(
    testbed: str,
    walks: Sequence[Walk],
    equal: bool,
    base: Walked | None,
    values: Sequence[float],
    base_values: Sequence[float],
    confidence: float,
) -> Walked:
    valid = [walk["log10_probability"] for walk in walks if not walk["invalid"]]
    log10_mean = log10_of_mean(valid) if valid else None
    mean_log10 = fmean(valid) if valid else None
    per_call = fmean(values) if values else None
    base_mean, base_logs, base_per_call = (
        (log10_mean, mean_log10, per_call) if base is None else (base.log10_mean, base.mean_log10, base.per_call)
    )

    def less(value: float | None, reference: float | None) -> float | None:
        return None if value is None or reference is None else value - reference

    return Walked(
        testbed=testbed,
        walks=len(walks),
        invalid=sum(walk["invalid"] for walk in walks),
        transitions=sum(walk["transitions"] for walk in walks),
        valid_walks=len(valid),
        equal_lengths=equal,
        log10_mean=log10_mean,
        mean_log10=mean_log10,
        relative_log10_mean=less(log10_mean, base_mean) if equal else None,
        relative_mean_log10=less(mean_log10, base_logs) if equal else None,
        per_call=per_call,
        per_call_difference=less(per_call, base_per_call),
        interval=None if base is None else difference(values, base_values, confidence),
    )
