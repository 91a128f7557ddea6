"""Judge comparisons: a few in this process, many on an executor, in batches.

Each case is judged by itself, so that a judgement is the same whoever makes it, and whatever is judged with it.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from twinbed.analyses.compare.decision import Case, Judgement, judge
from twinbed.analyses.compare.interim import judge_at_interim
from twinbed.executor import BadAnswer, Executor
from twinbed.metrics.metric import Scale
from twinbed.statistics import bootstrap

EACH = 400
"""Tests of two samples take as long as if they had so many values more: 0.5 ms, and 1.2 µs a value (docs/performance.md)."""
DRAWN = 40
"""So many values of resamples take as long as one value of the samples does in all tests."""
BATCH = 400_000
"""Values of a batch, which keep a CPU for half a second. Starting a process takes some hundredths of that, sending a batch and
its judgements 2 to 20 %: less would not be worth another process."""


def judged(cases: Sequence[Case], executor: Executor) -> Iterator[Judgement]:
    """Return judgements in the order of ``cases``."""
    batches = [*_batches(cases)]
    # A single one is judged where it is: no worker need be started for it.
    for batch, judgements in zip(batches, (executor.map if len(batches) > 1 else map)(_judge, batches), strict=True):
        if len(judgements) != len(batch):
            raise BadAnswer(f"a worker judged {len(judgements)} comparisons, not the {len(batch)} that it was sent")
        yield from judgements


def _judge(batch: Sequence[Case]) -> Sequence[Judgement]:
    return [judge(case) if case.rules.information is None else judge_at_interim(case) for case in batch]


def _batches(cases: Sequence[Case]) -> Iterator[Sequence[Case]]:
    """Yield batches of neighbouring cases, so that a reference's sample is sent once for all that are compared with it."""
    begin, work = 0, 0
    for end, case in enumerate(cases, start=1):
        work += _work(case)
        if work >= BATCH:
            yield cases[begin:end]
            begin, work = end, 0
    if begin < len(cases):
        yield cases[begin:]


def _work(case: Case) -> int:
    """Return the size of a case, in values."""
    arranged = case.arranged
    drawn = bootstrap.drawn(arranged.own, arranged.reference) if case.skewed and case.scale == Scale.RATIO else 0
    analyses = 3 if case.rules.information else 1
    return analyses * (EACH + len(case.own) + len(case.reference) + drawn // DRAWN)
