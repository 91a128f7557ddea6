"""How often intervals hold the truth and verdicts are wrong, by simulation: writes docs/coverage.md.

python -m benchmarks.coverage                        all of it
python -m benchmarks.coverage --part calibrated      one table, printed
python -m benchmarks.coverage --on tcp://...:8786    the same page from a cluster's workers
python -m benchmarks.coverage --studies 500 --bootstrap 50 --doubts 50 --corpus 2 -o /tmp/coverage.md
"""

from __future__ import annotations

import argparse
import math
import sys
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

import numpy as np

from benchmarks.simulated.arrays import LEVEL, brown_forsythe, equal_deviations, mann_whitney, ratio_p_values
from benchmarks.simulated.corpus import CORPORA, count
from benchmarks.simulated.few_levels import CURVES, EXPENSIVE
from benchmarks.simulated.few_levels import held as predicted
from benchmarks.simulated.inside import PAUSES, error_of_means, settled, stalled
from benchmarks.simulated.little import LITTLE, rates
from benchmarks.simulated.little import SIZES as LITTLE_SIZES
from benchmarks.simulated.looks import ends
from benchmarks.simulated.losses import SIZES as LOSS_SIZES
from benchmarks.simulated.losses import WORLDS, named
from benchmarks.simulated.methods import METHODS, TRUE_RATIO, Method
from benchmarks.simulated.multifidelity import CURVES as RELATIONS
from benchmarks.simulated.multifidelity import curved
from benchmarks.simulated.needed import DEVIATIONS, RATIOS, chance
from benchmarks.simulated.populations import POPULATIONS, Population
from benchmarks.simulated.shared import MARGIN, SPREAD, blocks, sessions
from benchmarks.simulated.stepped import SIZES as STEPPED_SIZES
from benchmarks.simulated.stepped import STEPPED
from benchmarks.simulated.stepped import rates as stepped_rates
from benchmarks.simulated.worlds import IN_SUCCESSION, picked, varies_more
from twinbed.analyses.compare.decision import doubtful_shape
from twinbed.analyses.compare.result import FEW
from twinbed.executor import Executor, opened
from twinbed.model.interim import UntilDecided
from twinbed.statistics.order import neighbours

SIZES = (3, 5, 10, 30)
ALPHA = 0.05
Row = Sequence[str]


def drawn(of: Population, ratio: float, studies: int, n: int, seed: int) -> tuple[np.ndarray, np.ndarray]:
    """A testbed's values and the reference's."""
    noise = np.random.default_rng([seed, n, POPULATIONS.index(of)])
    return ratio * of.draw(noise, studies, n), of.draw(noise, studies, n)


def coverage(method: Method, of: Population, studies: int, n: int, seed: int) -> tuple[float, float]:
    """Share of the intervals that hold the truth, and share of the studies that have an interval."""
    x, y = drawn(of, method.ratio(of), studies, n, seed)
    if method.at_once is not None:
        low, high = method.at_once(x, y)
    else:
        own = [method.program(one, two) for one, two in zip(x.tolist(), y.tolist(), strict=True)]
        low, high = (np.array([math.nan if each is None else each[end] for each in own]) for end in (0, 1))
    given = ~np.isnan(low)
    truth = method.truth(of)
    held = (low[given] <= truth) & (truth <= high[given])
    return (float(held.mean()) if given.any() else math.nan), float(given.mean())


def _intervals(of: Population, studies: int, bootstrap: int, seed: int) -> str:
    rows = []
    for method in METHODS:
        cells = []
        for n in SIZES:
            held, given = coverage(method, of, studies if method.at_once else bootstrap, n, seed)
            text = "–" if given < 0.01 else _per_cent(held) + (f" of {given:.0%}" if given < 0.995 else "")
            cells.append(f"**{text}**" if method.holds(of) and given >= 0.01 else text)
        rows.append([method.name, method.assumes, *cells])
    table = _table(["interval", "assumes", *(f"n = {n}" for n in SIZES)], rows)
    return f"### {of.name}\n\n{of.about}.\n\n{table}"


def verdicts(of: Population, ratio: float, studies: int, n: int, seed: int) -> tuple[float, float]:
    """Shares of studies called equivalent, and different."""
    inside, outside = ratio_p_values(*drawn(of, ratio, studies, n, seed), of.margin)
    return float((inside <= ALPHA).mean()), float((outside <= ALPHA).mean())


def _tests(studies: int, seed: int) -> str:
    rows = []
    for of in POPULATIONS:
        edge = 1 + of.margin
        for n in SIZES:
            at_edge, at_one = verdicts(of, edge, studies, n, seed), verdicts(of, 1.0, studies, n, seed)
            far = verdicts(of, edge**2, studies, n, seed)
            sizes = [f"**{_per_cent(at_edge[0])}**", f"**{_per_cent(at_edge[1])}**"]
            rows.append([of.name, f"{of.margin:.0%}", str(n), *sizes, _per_cent(at_one[0]), _per_cent(far[1])])
    heads = ("equivalent, at the edge", "different, at the edge", "equivalent, at 1", "different, at (1 + m)²")
    return _table(["values", "margin m", "n", *heads], rows)


def equal_and_double(of: Population, studies: int, n: int, seed: int) -> list[float]:
    """Shares of studies in which Mann and Whitney's test sees a difference where there is none; and in which Bonett's and
    Brown and Forsythe's see one of spreads where there is none, and where one is double. Spreads are of logarithms, with
    zeros of the values. nan where there is no test."""
    x, y = drawn(of, 1.0, studies, n, seed)
    ranked = mann_whitney(x, y)
    x, y = (z if of.zeros else np.log(z) for z in (x, y))
    tests = (ranked, equal_deviations(x, y), brown_forsythe(x, y), equal_deviations(2 * x, y), brown_forsythe(2 * x, y))
    return [math.nan if np.isnan(p_values).all() else float((p_values <= ALPHA).mean()) for p_values in tests]


def _others(studies: int, seed: int) -> str:
    rows = []
    for of in POPULATIONS:
        for n in SIZES:
            found = equal_and_double(of, studies if not of.zeros else studies // 10, n, seed)
            texts = ["–" if math.isnan(share) else _per_cent(share) for share in found]
            rows.append([of.name, str(n), *(f"**{text}**" if text != "–" else text for text in texts[:3]), *texts[3:]])
    heads = (
        "Mann and Whitney, equal",
        "Bonett, equal",
        "Brown and Forsythe, equal",
        "Bonett, double",
        "Brown and Forsythe, double",
    )
    return _table(["values", "n", *heads], rows)


def doubts(of: Population, studies: int, n: int, seed: int) -> tuple[float, float, float]:
    """Shares of samples that the program gives a caution: too few, their shape, their order."""
    _, y = drawn(of, 1.0, studies, n, seed)
    shape = sum(bool(doubtful_shape(values, "ratio", of.margin)) for values in y.tolist())
    beside = [neighbours(values) for values in y.tolist()]
    order = sum(each is not None and each.p_value <= ALPHA for each in beside)
    return float(n < FEW), shape / studies, order / studies


def _doubts(studies: int, seed: int) -> str:
    rows = []
    for of in POPULATIONS:
        for n in SIZES:
            rows.append([of.name, str(n), *(_per_cent(share) for share in doubts(of, studies, n, seed))])
    return _table(["values", "n", "too few", "shape", "order"], rows)


def _looks(studies: int, seed: int) -> str:
    rows = []
    for least, most in ((5, 30), (5, 10), (4, 8)):
        worlds = [(spreads, 0.0) for spreads in ((0.02, 0.02), (0.05, 0.05), (0.02, 0.10), (0.002, 0.05))]
        for spreads, correlation in (*worlds, ((0.05, 0.05), 0.5)):
            until = UntilDecided(least=least, most=most)
            edge, same, far = (ends(until, ratio, spreads, studies, seed, correlation) for ratio in (1.1, 1.0, 1.2))
            like = f", like the run before ({correlation:g})" if correlation else ""
            rows.append(
                [
                    f"{least} to {most}",
                    " and ".join(f"{100 * each:g} %" for each in spreads) + like,
                    f"**{_per_cent(edge.equivalent)}**",
                    f"**{_per_cent(edge.different)}**",
                    f"{_per_cent(same.equivalent)} after {same.replicates:.1f}",
                    f"{_per_cent(far.different)} after {far.replicates:.1f}",
                ]
            )
    heads = ("equivalent, at 1.1", "different, at 1.1", "equivalent, at 1", "different, at 1.2")
    return _table(["replicates", "spreads", *heads], rows)


def _blocks(studies: int, seed: int) -> str:
    rows = []
    for correlation in (0.0, 0.5, 0.8):
        for n in (2, 3, 4, 5, 10, 20):
            cells = [f"{correlation:g}", str(n)]
            for paired in (False, True):
                wrong, right = (blocks(correlation, n, ratio, studies, seed, paired=paired) for ratio in (1 + MARGIN, 1.0))
                far = blocks(correlation, n, (1 + MARGIN) ** 2, studies, seed, paired=paired)
                cells += [f"**{_per_cent(wrong.equivalent)}**", f"**{_per_cent(wrong.different)}**"]
                cells += [_per_cent(right.equivalent), _per_cent(far.different)]
            rows.append(cells)
    each = ("equivalent, at the edge", "different, at the edge", "equivalent, at 1", "different, at (1 + m)²")
    heads = [f"{name}: {what}" for name in ("independent", "paired") for what in each]
    return _table(["correlation", "n", *heads], rows)


def _sessions(studies: int, seed: int) -> str:
    rows = []
    for correlation in (0.0, 0.2, 0.5, 0.8):
        for held, runs in ((2, 10), (3, 5), (5, 4), (10, 2)):
            cells = [f"{correlation:g}", f"{held} of {runs} runs"]
            for known in (False, True):
                edge, one = (
                    sessions(correlation, held, runs, ratio, studies, seed, known=known) for ratio in (1 + MARGIN, 1.0)
                )
                cells += [f"**{_per_cent(edge.equivalent)}**", f"**{_per_cent(edge.different)}**", _per_cent(one.equivalent)]
            rows.append(cells)
    each = ("equivalent, at the edge", "different, at the edge", "equivalent, at 1")
    heads = [f"{name}: {what}" for name in ("runs", "sessions") for what in each]
    return _table(["correlation", "sessions a testbed", *heads], rows)


def _little(studies: int, seed: int) -> str:
    rows = []
    for of in LITTLE:
        cells = [of.name, of.wrong.value]
        for sizes in LITTLE_SIZES:
            found = rates(of, sizes, studies, seed)
            cells.append(f"{_per_cent(found.wrong)} ({_per_cent(found.alone)})" if found.wrong else "0")
        rows.append(cells)
    return _table(["values", "wrong verdict", *(f"n = {n}" if n == m else f"n = {n}, {m}" for n, m in LITTLE_SIZES)], rows)


def _stepped(studies: int, seed: int) -> str:
    rows = []
    for of in STEPPED:
        cells = [of.name]
        for n in STEPPED_SIZES:
            edge, one = (stepped_rates(of, n, ratio, studies, seed) for ratio in (1 + MARGIN, 1.0))
            cells += [f"{_per_cent(edge.equivalent)} (**{_per_cent(edge.alone)}**)", _per_cent(one.equivalent)]
        rows.append(cells)
    heads = [f"n = {n}, {where}" for n in STEPPED_SIZES for where in ("at the edge", "at 1")]
    return _table(["values", *heads], rows)


def _succession(studies: int, seed: int) -> str:
    rows = []
    for world in IN_SUCCESSION:
        found = [world.rate(n, studies, seed) for n in (5, 10)]
        texts = [f"{_per_cent(each.any)} ({_per_cent(each.alone)})" if each.any else "0" for each in found]
        rows.append([world.name, str(world.verdict), *texts])
    return _table(["runs", "wrong verdict", "n = 5", "n = 10"], rows)


def _slow_runs(studies: int, seed: int) -> str:
    rows = []
    for share, scale in ((0.0, 1.0), (0.05, 1.0), (0.1, 1.0), (0.2, 1.0), (0.3, 1.0), (0.0, 2.0), (0.0, 5.0)):
        cells = [f"{share:.0%}" if share else "none", f"{scale:g}"]
        for metrics in (1, 40):
            for n in (5, 10, 20):
                found = varies_more(share, n, metrics, studies if metrics == 1 else studies // 5, seed, scale)
                text = _per_cent(found.any)
                cells.append(f"**{text}**" if scale == 1 else text)
        rows.append(cells)
    heads = [f"{'one metric' if metrics == 1 else f'any of {metrics}'}, n = {n}" for metrics in (1, 40) for n in (5, 10, 20)]
    return _table(["runs 10 times as slow", "ratio of spreads", *heads], rows)


def _picked(studies: int, seed: int) -> str:
    rows = []
    for metrics in (1, 10, 40):
        alone, named = picked(5, metrics, 1 + MARGIN, studies, seed)
        rows.append([str(metrics), _per_cent(alone), f"**{_per_cent(named)}**"])
    return _table(["metrics, all at the margin", "any is equivalent", "any is named"], rows)


def _needed(studies: int, seed: int) -> str:
    rows = []
    for n in (3, 5, 10):
        for deviation in DEVIATIONS:
            found = [chance(n, deviation, ratio, studies, seed) for ratio in RATIOS]
            texts = [f"{_per_cent(each.shown)} ({each.named})" if each.named else "–" for each in found]
            rows.append([str(n), f"{deviation:.0%}", *texts])
    return _table(["n", "spread", *(f"ratio {ratio:g}" for ratio in RATIOS)], rows)


def _losses(studies: int, seed: int) -> str:
    answers = {True: "yes", False: "no"}
    rows = []
    for world in WORLDS:
        found = [named(world, n, studies, seed) for n in LOSS_SIZES]
        texts = [_per_cent(each.keeps) if world.most else f"**{_per_cent(each.keeps)}**" for each in found]
        rows.append([world.name, answers[world.mean], answers[world.most], *texts])
    return _table(["loss of runs at one N", "mean at most 1 %", "most runs", *(f"n = {n}" for n in LOSS_SIZES)], rows)


def _settling(studies: int, seed: int) -> str:
    rows = []
    for correlation in (0.0, 0.5, 0.9):
        error = error_of_means(correlation, studies, seed)
        for runs in (3, 5, 10):
            cells = [f"{correlation:g}", str(runs)]
            steady, one = settled(correlation, runs, 0.0, 0.0, studies, seed)
            cells += [f"**{_per_cent(steady)}**", f"**{_per_cent(one)}**"]
            cells += [_per_cent(settled(correlation, runs, -0.3, 0.0, studies, seed)[0])]
            cells += [_per_cent(settled(correlation, runs, 0.0, -0.6, studies, seed)[1])]
            cells += [f"{error:.2f}"]
            rows.append(cells)
    heads = (
        "steady: never settles",
        "steady: one run astray",
        "all fall by 30 %",
        "one falls by 60 %",
        "variance of a mean",
    )
    return _table(["correlation", "runs", *heads], rows)


def _stalls(studies: int, seed: int) -> str:
    rows = []
    for name, pauses in PAUSES.items():
        found = [stalled(pauses, events, (0.001, 0.1), studies, seed) for events in (100, 1000, 10_000)]
        rows.append([name, *(f"**{_per_cent(share)}**" for each in found for share in each)])
    heads = [f"{events:,} pauses of {text}" for events in (100, 1000, 10_000) for text in ("1 ms", "0.1 s")]
    return _table(["pauses", *heads], rows)


def _calibrated(studies: int, seed: int) -> str:
    rows = []
    for number, name in enumerate(CURVES):
        found = [predicted(name, np.random.default_rng([seed, number, study])) for study in range(studies)]
        given = [each for each in found if not math.isnan(each.mean)]
        means = [np.mean([each.mean for each in given]), np.mean([each.one_run for each in given])]
        errors = [np.sqrt(np.mean([getattr(each, of) ** 2 for each in given])) for of in ("error", "interpolated")]
        rest = [np.mean([each.refused for each in found]), np.mean([each.has_cheap for each in found])]
        half = float(np.median([each.half for each in given]))
        rows.append([name, *(_per_cent(float(each)) for each in (*means, half, *errors, *rest))])
    heads = ("means held", "single runs held", "half-width", "error", "error of straight lines", "refused", "cheap one used")
    return _table(["world", *heads], rows)


def _relations(studies: int, seed: int) -> str:
    rows = []
    for name in RELATIONS:
        found = [curved(name, n, studies, seed) for n in (5, 10, 20)]
        rows.append([name, *(_per_cent(share) for each in found for share in (each.coverage, each.alone, each.mixed))])
    heads = [f"{n} draws: {what}" for n in (5, 10, 20) for what in ("held", "held alone", "mixed in")]
    return _table(["relation", *heads], rows)


def _corpora(studies: int) -> str:
    rows = []
    for corpus in CORPORA:
        found = count(corpus, studies)
        share = found.wrong / found.of
        error = math.sqrt(max(share, 1 / found.of) * (1 - share) / found.of)
        of = "studies with any" if corpus.family else "comparisons"
        per_cent = f"{_per_cent(share)} ± {_per_cent(error)}"
        rows.append([corpus.name, corpus.about, str(corpus.wrong), f"{found.wrong} of {found.of} {of}", per_cent])
    return _table(["studies", "each", "wrong verdict", "found", "per cent"], rows)


def _per_cent(share: float) -> str:
    return f"{100 * share:.1f}"


def _table(heads: Row, rows: Sequence[Row]) -> str:
    lines = [heads, ["---"] * len(heads), *rows]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines) + "\n"


def part(task: tuple[str, tuple[int, ...]]) -> str:
    """A part of the page, as a task for an executor: its name, and what its function takes."""
    name, numbers = task
    if name.startswith("intervals"):
        return _intervals(POPULATIONS[numbers[0]], *numbers[1:])
    parts: dict[str, Callable[..., str]] = {
        "tests": _tests,
        "others": _others,
        "doubts": _doubts,
        "looks": _looks,
        "blocks": _blocks,
        "sessions": _sessions,
        "little": _little,
        "stepped": _stepped,
        "succession": _succession,
        "slow": _slow_runs,
        "picked": _picked,
        "needed": _needed,
        "losses": _losses,
        "settling": _settling,
        "stalls": _stalls,
        "corpora": _corpora,
        "calibrated": _calibrated,
        "relations": _relations,
    }
    return parts[name](*numbers)


def parts(
    sizes: tuple[int, int, int, int], seed: int, executor: Executor, tell: Callable[[str], None], only: Sequence[str] = ()
) -> dict[str, str]:
    """The tables by their names, of ``only`` these. Longest first, so that none is waited for alone.

    Constants of ``calibrate`` were chosen with ``seed`` 1, so that its table is of the next seed.
    """
    studies, bootstrap, of_doubts, corpus = sizes
    tasks: dict[str, tuple[int, ...]] = {
        "corpora": (corpus,),
        "calibrated": (max(corpus // 4, 2), seed + 1),
        "relations": (of_doubts, seed),
        "little": (of_doubts, seed),
        "stepped": (of_doubts, seed),
        "succession": (of_doubts // 2, seed),
        "slow": (of_doubts, seed),
        "picked": (of_doubts, seed),
        "needed": (of_doubts // 5, seed),
        "looks": (2 * studies, seed),
        "doubts": (of_doubts, seed),
        **{f"intervals {number}": (number, studies, bootstrap, seed) for number in range(len(POPULATIONS))},
        "tests": (studies, seed),
        "others": (studies, seed),
        "blocks": (studies, seed),
        "sessions": (studies, seed),
        "losses": (studies // 5, seed),
        "settling": (studies // 10, seed),
        "stalls": (studies // 10, seed),
    }
    if unknown := [name for name in only if name not in tasks]:
        raise SystemExit(f"there is no part {', '.join(unknown)}; there are: {', '.join(tasks)}")
    tasks = {name: numbers for name, numbers in tasks.items() if not only or name in only}
    found = {}
    for name, table in zip(tasks, executor.map(part, tasks.items()), strict=True):
        tell(name)
        found[name] = table
    return found


def document(studies: int, bootstrap: int, of_doubts: int, corpus: int, seed: int, found: Mapping[str, str]) -> str:
    """The whole page, of ``parts``."""
    intervals = "\n".join(table for name, table in found.items() if name.startswith("intervals"))
    return f"""# How often intervals hold the truth, and verdicts are wrong

Made by `python -m benchmarks.coverage --studies {studies} --bootstrap {bootstrap} --doubts {of_doubts} --corpus {corpus} \
--seed {seed}`; do not edit. Its tables were made one by one, as each method changed: the same command with \
`--part NAME` prints one table. The planted truth is known, so every interval and verdict is either \
right or wrong.

Everything is in per cent of {studies:,} simulated studies for each number, unless said otherwise. Monte Carlo standard error: \
{_per_cent(math.sqrt(0.0475 / studies))} at 5 or 95 %; {_per_cent(math.sqrt(0.0475 / bootstrap))} for the bootstrap, of \
{bootstrap:,} studies.

## In short

- If the assumptions of a method hold, its intervals have the stated coverage, and wrong verdicts keep to their limit. \
Bonett's and Jain's intervals err on the safe side with five to ten values; Jain's errs a little on the other side with \
thirty.
- **Three values** say nothing about their shape: if values have two modes, all three are from one mode in a quarter of the \
studies, and the mean's interval contains the truth in three of four. Below {FEW} values there is always a caution.
- **Two modes**: an interval of the ratio of medians contains the truth in half to two thirds of the studies. The caution on \
shape is given for half of the samples of ten, and for all of thirty; five values cannot show it.
- **Runs that depend on the run before**: every interval is too short, with many values as with few, and up to a fifth of \
the verdicts at the edge are wrong. The caution on order is given for one in six samples of ten values, and for two in three \
of thirty. Randomised blocks protect against this dependence; the caution does not.
- **Skewed values**: the mean's own interval has a coverage of 91 to 94 %; the ratio's, by logarithms, has the stated \
coverage. The bootstrap, on which no verdict rests, has less than that.
- **Zeros**: with three to five values Fieller's interval often has no bounds, and verdicts are rare.

## Intervals

Coverage of {LEVEL:.0%} intervals by the number n of values (of each testbed, for ratios and Cliff's delta; the true ratio \
is {TRUE_RATIO}, for the delta 1 + m/2 with the margin m below). Bold: the assumptions of the method hold. `–`: there is no \
interval, because n is too small or a value is 0; "of 83%": there is one in 83 % of the studies, and coverage is of those. \
Order statistics cover *at least* what is stated.

{intervals}
## Verdicts on a ratio

Share of single comparisons called equivalent and different at {ALPHA:.0%}, by the true ratio; the margin is about two \
standard deviations, so that there is something to decide. Bold: wrong verdicts, with the limit 5.

{found["tests"]}
## Tests of no difference

Share of studies in which a test at {ALPHA:.0%} rejects: the hypothesis of equal values if they are equal, and that of equal \
spreads if they are equal and if one is double. Bold: wrong rejections, limit 5. With zeros of {studies // 10:,} studies.

{found["others"]}
## What the program warns of

Share of {of_doubts:,} samples with a caution: *too few* values (below {FEW}), *shape* (Grubbs's test for an outlier, Shapiro \
and Wilk's of normality from ten values on), *order* (correlation with the run before, before Holm's correction).

{found["doubts"]}
## Studies that go on until they are decided

One comparison, log-normal values, margin 10 %, at most six looks; a study ends with its first verdict. Bold: wrong verdicts \
over all looks, limit 5. "After": mean number of replicates.

{found["looks"]}
Of {2 * studies:,} studies each. Where a testbed's run is like its run before, a study ends with whichever state it met first: \
every comparison of such a study has the caution `looks`, unless it is of sessions.

## Blocks and sessions

One comparison, log-normal values of {SPREAD:.1%} standard deviation, margin 10 %. Of the variance the share *correlation* \
lies between blocks, or between sessions. Bold: wrong verdicts, limit 5; at a rate of 1 and (1 + m)² the share of right ones.

Blocks of the design that are complete, with the test of independent runs and with that of pairs:

{found["blocks"]}
Sessions that each testbed has of its own, with their runs taken as independent, and with `--sessions`:

{found["sessions"]}
- A comparison of independent runs never errs too often because of blocks; it only reaches fewer verdicts. Pairs cost \
something where blocks share nothing, and with 2 or 3 replicates; from 4 on they are worth it.
- Runs of sessions are no independent runs: taken as such, too many verdicts are wrong, the more so the more runs a session \
has. Means of sessions keep to the limit, but two or three sessions hardly ever decide.

## Where values say little

Whole comparisons of one cell, {of_doubts} studies for each number, margin 10 %: the share of wrong verdicts, and in brackets \
of those without any caution. "n = 3, 10": replicates on the testbed and on the reference. Beside each "equivalent" the \
program gives the share of runs that may be otherwise unseen (`unseen_share`), which is not counted as a caution here.

{found["little"]}
- Rounding and rare events give no more wrong verdicts than other values.
- Times that a time-out cut short are called equivalent by their means only where all runs of both testbeds ended so, or one \
alone did not; a value that nothing differs from has a caution.
- A slow mode in a fifth of the runs is seen by none of five runs in a third of the studies, and nothing in them can show it. \
`unseen_share` says that: 45 % for 5 runs, 26 % for 10, 14 % for 20. A rarer mode matters where it is slow: stalls of 14 times \
a latency in 5 % of the runs make the geometric mean 14 % larger and the arithmetic one 65 %, and three of four studies of \
five runs meet none.
- A machine whose state lasts from run to run does no harm where the order is random. A testbed that has such a state of its \
own does: five runs cannot show it, twenty do in most studies.

## Values that come in steps

Whole comparisons of one cell, {of_doubts} studies for each number, margin 10 %: the share called equivalent at a true ratio \
of 1.1 or 1/1.1, in brackets that without any caution, limit 5; and the share at a ratio of 1. The mean lies anywhere in the \
range named, the coefficient of variation between 0.5 and 5 %. Steps are found from the values alone.

{found["stepped"]}
- Where no value differs from another, nothing shows the step, and the program's caution says so: 20 and 20 ms may be one \
tick of 4 ms apart. More replicates do not help; other cells of the study that vary do.
- A program that cuts digits off beside one that rounds is half a step off however many values there are. Where results were \
measured elsewhere, an equivalence that would not survive that has a caution.

## Testbeds measured one after the other

Whole comparisons of one cell, {of_doubts // 2} studies for each number, margin 10 %, run-to-run spread 2 %: share of wrong \
verdicts, and in brackets of those without any caution.

{found["succession"]}
Where no session has runs of both testbeds there is no verdict, unless `--sessions none` states that sessions do not matter; \
the caution stays then. In one session without a long pause a caution says that one testbed came after the other.

## Spreads of runs of which a few are slow

Per cent of {of_doubts} studies of one metric, and of {of_doubts // 5} studies of 40, in which a spread is said to differ. \
Bold: wrong, as both testbeds are alike; limit 5.

{found["slow"]}
Bonett's test alone takes a single slow run for a spread. So Brown and Forsythe's, about a value instead of the median, has to \
reject too; five values then show no spread to differ among many metrics.

## What sentences pick out

Five runs each of two testbeds, every metric 10 % apart at a margin of 10 %: per cent of {of_doubts} studies in which any is \
equivalent by itself, and in which a sentence names any as one that the testbed can stand in for. Bold: limit 5.

{found["picked"]}
## Replicates that are named

Per cent of new studies of as many replicates as "N new replicates would show it to be within" names that do show it, after \
{of_doubts // 5} inconclusive studies of n replicates each; in brackets how many of these named a number. 80 are promised.

{found["needed"]}
Near the edge of the margin, with a large spread and few replicates, it is less than that: 66 to 80 at a ratio of 1.07, \
where 10 to 27 of 100 studies name a number.

## How many fit, by losses

Per cent of {studies // 5:,} studies in which `analyse capacity` names an N as keeping a loss of at most 1 %. What it names is \
that *most runs* keep it. Bold: they do not, limit 5. With fewer than five runs nothing is named.

{found["losses"]}
Where one run in ten loses 15 %, most runs keep the objective, and N is named though the mean does not keep it: five runs \
seldom meet such a run. The sentence says how many there may be: up to 45 % of all runs, for five that all kept it.

## Inside runs

Per cent of {studies // 10:,} cells whose runs are said never to settle, or to have one that does not, at a margin of \
{MARGIN:.0%}. Runs are autoregressions of 100 values with a standard deviation of 10 %, whose neighbours correlate as stated. \
Bold: wrong, limit 5. Last: the estimated variance of one run's mean, over the true one.

{found["settling"]}
Per cent of {studies // 10:,} runs of random pauses that are said to stall; none does. Bold: wrong.

{found["stalls"]}
Pauses whose tail is that of a power law have no pace of their own, and are called stalls where they are long.

## What another testbed would give

`calibrate` with {EXPENSIVE} levels drawn at random on the expensive testbed, which are too few for a conformal interval: \
{max(corpus // 4, 2)} studies of each kind (of seed {seed + 1}; constants were chosen with others), intervals of 95 % at the \
places inside the range that were not measured. Half-widths and errors (root mean square) are in per cent of the value; \
*straight lines* join the expensive testbed's own logarithms. The standard error of a share is about 2.

{found["calibrated"]}
A step or a sawtooth between two measured levels leaves no trace at them. There the intervals hold less than 95 %, and every \
output says so: 95 % if no step lies between two levels, {EXPENSIVE / (EXPENSIVE + 1):.0%} whatever the curve, and what the \
levels left out show. Nineteen levels drawn at random rest on no such belief ([calibration.md](calibration.md)).

`analyse multifidelity`, 95 %, {of_doubts} studies for each number: draws of the expensive testbed, of ten times as many of \
the cheap one. A relation that bends is refused, and the expensive draws stand alone; five draws cannot show a bend, and \
carry a caution.

{found["relations"]}
## Whole studies of the fake testbed

These studies are run, extracted and compared like any study: {corpus} of each kind. Testbeds of A/A studies do not differ, \
so that a single headline called different makes the whole study wrong; Holm's correction keeps those studies to 5 %.

{found["corpora"]}"""


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--studies", type=int, default=10_000)
    parser.add_argument("--bootstrap", type=int, default=1_000)
    parser.add_argument("--doubts", type=int, default=500)
    parser.add_argument("--corpus", type=int, default=200)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("-o", "--output", type=Path, default=Path(__file__).parents[1] / "docs/coverage.md")
    parser.add_argument("--on", help="who simulates: local:N, tcp://SCHEDULER of dask, or a file with a cluster")
    parser.add_argument("--part", action="append", default=[], help="print this table only, such as calibrated")
    given = parser.parse_args()
    sizes = (given.studies, given.bootstrap, given.doubts, given.corpus)

    def tell(part: str) -> None:
        sys.stderr.write(f"{part}\n")

    with opened(given.on) as executor:
        found = parts(sizes, given.seed, executor, tell, given.part)
    if given.part:
        sys.stdout.write("\n".join(found.values()))
        return
    given.output.write_text(document(*sizes, given.seed, found))


if __name__ == "__main__":
    main()
