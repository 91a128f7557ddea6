"""How often intervals hold the truth and verdicts are wrong, by simulation: the tables of docs/coverage*.md.

python -m benchmarks.coverage --write                            all tables, put into the page
python -m benchmarks.coverage --write --part calibrated          one of them
python -m benchmarks.coverage --write --on tcp://...:8786        the same from a cluster's workers
python -m benchmarks.coverage --studies 500 --bootstrap 50 --doubts 50 --corpus 2        smaller ones, printed
"""

from __future__ import annotations

import argparse
import math
import re
import sys
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

import numpy as np

from benchmarks.simulated import anomaly, contention
from benchmarks.simulated.arrays import brown_forsythe, equal_deviations, mann_whitney, ratio_p_values
from benchmarks.simulated.corpus import CORPORA, count
from benchmarks.simulated.few_levels import CURVES
from benchmarks.simulated.few_levels import held as predicted
from benchmarks.simulated.inside import PAUSES, error_of_means, settled, stalled
from benchmarks.simulated.little import LITTLE, rates
from benchmarks.simulated.little import SIZES as LITTLE_SIZES
from benchmarks.simulated.looks import ends
from benchmarks.simulated.losses import SIZES as LOSS_SIZES
from benchmarks.simulated.losses import WORLDS, named
from benchmarks.simulated.methods import METHODS, Method
from benchmarks.simulated.multifidelity import CURVES as RELATIONS
from benchmarks.simulated.multifidelity import curved
from benchmarks.simulated.needed import DEVIATIONS, RATIOS, chance
from benchmarks.simulated.populations import POPULATIONS, Population
from benchmarks.simulated.shared import MARGIN, blocks, sessions
from benchmarks.simulated.stepped import SIZES as STEPPED_SIZES
from benchmarks.simulated.stepped import STEPPED
from benchmarks.simulated.stepped import rates as stepped_rates
from benchmarks.simulated.worlds import IN_SUCCESSION, picked, varies_more
from twinbed.analyses.compare.decision import doubtful_shape
from twinbed.executor import Executor, opened
from twinbed.model.comparison import FEW
from twinbed.model.interim import UntilDecided
from twinbed.statistics.order import neighbours

PAGES = sorted((Path(__file__).parents[1] / "docs").glob("coverage*.md"))
_PLACE = re.compile(r"<!-- (?!end)(.+?) -->\n\n(.*?\n)\n<!-- end -->", re.DOTALL)
"""A table and its name."""
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


def _contention(studies: int) -> str:
    return _table(contention.HEADS, list(contention.rows(studies)))


def _anomaly(studies: int) -> str:
    return _table(anomaly.HEADS, list(anomaly.rows(studies)))


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
        "contention": _contention,
        "anomaly": _anomaly,
    }
    return parts[name](*numbers)


def parts(
    sizes: tuple[int, int, int, int], seed: int, executor: Executor, tell: Callable[[str], None], only: Sequence[str] = ()
) -> dict[str, str]:
    """Return the tables by their names, of ``only`` these."""
    tasks = planned(sizes, seed)
    if unknown := [name for name in only if name not in tasks]:
        raise SystemExit(f"there is no part {', '.join(unknown)}; there are: {', '.join(tasks)}")
    tasks = {name: numbers for name, numbers in tasks.items() if not only or name in only}
    found = {}
    for name, table in zip(tasks, executor.map(part, tasks.items()), strict=True):
        tell(name)
        found[name] = table
    return found


def planned(sizes: tuple[int, int, int, int], seed: int) -> dict[str, tuple[int, ...]]:
    """Return the tables' names with what their functions take. Longest first, so that none is waited for alone.

    Constants of ``calibrate`` were chosen with ``seed`` 1, so that its table is of the next seed.
    """
    studies, bootstrap, of_doubts, corpus = sizes
    return {
        "anomaly": (2 * corpus,),
        "corpora": (corpus,),
        "contention": (corpus,),
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


def read_pages() -> str:
    """Return the text of all pages, one after another."""
    return "".join(page.read_text() for page in PAGES)


def tables(page: str) -> dict[str, str]:
    """Return the tables of a page by their names."""
    return dict(_PLACE.findall(page))


def filled(page: str, found: Mapping[str, str]) -> str:
    """Return a page with tables that were found put in place of those of the same names."""
    return _PLACE.sub(lambda at: f"<!-- {at[1]} -->\n\n{found.get(at[1], at[2])}\n<!-- end -->", page)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--studies", type=int, default=10_000)
    parser.add_argument("--bootstrap", type=int, default=1_000)
    parser.add_argument("--doubts", type=int, default=500)
    parser.add_argument("--corpus", type=int, default=200)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--on", help="who simulates: local:N, tcp://SCHEDULER of dask, or a file with a cluster")
    parser.add_argument("--part", action="append", default=[], help="this table only, such as calibrated")
    parser.add_argument("--write", action="store_true", help="put the tables into docs/coverage*.md, which state the sizes")
    given = parser.parse_args()
    sizes = (given.studies, given.bootstrap, given.doubts, given.corpus)
    stated = tuple(map(parser.get_default, ("studies", "bootstrap", "doubts", "corpus", "seed")))
    if given.write and (*sizes, given.seed) != stated:
        parser.error("docs/coverage.md states the sizes and the seed that are the defaults; leave out --write, or the others")

    def tell(part: str) -> None:
        sys.stderr.write(f"{part}\n")

    with opened(given.on) as executor:
        found = parts(sizes, given.seed, executor, tell, given.part)
    if given.write:
        for page in PAGES:
            page.write_text(filled(page.read_text(), found))
    else:
        sys.stdout.write("\n".join(found.values()))


if __name__ == "__main__":
    main()
