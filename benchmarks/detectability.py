"""How often the analysis `detectability` is wrong, by simulation on `fake`: writes its figures into docs/detectability.md.

python -m benchmarks.detectability --studies 200            a quarter of an hour on one core
python -m benchmarks.detectability --studies 20 -o /tmp/detectability.md
"""

from __future__ import annotations

import argparse
import math
import re
import sys
from collections.abc import Callable, Sequence
from pathlib import Path

from benchmarks.simulated.detected import areas_of_rules, best, outcome, outcome_of_windows, told_of_states

BEGIN, END = "<!-- figures: begin -->", "<!-- figures: end -->"
PAGE = Path(__file__).parents[1] / "docs" / "detectability.md"
EQUAL = (*((runs, features, False) for runs in (5, 10) for features in (1, 10)), (10, 10, True), (20, 10, False))
SHIFTED = tuple((runs, shift) for runs in (10, 20) for shift in (0.5, 1.0, 2.0, 3.0))
STATES = tuple(
    (runs, correlation, made)
    for runs, correlation in ((10, 0.5), (10, 0.9), (20, 0.9))
    for made in (("in turn", None), ("one after the other", 0.0), ("months apart", 2e7))
)
RULES = ((10, 1, 1.0), (10, 10, 1.0), (10, 10, 3.0))


def figures(studies: int, tell: Callable[[str], None]) -> str:
    """The tables of the page."""
    equal = [("runs each", "features", "labels dealt", "mean AUC", "interval holds 0.5", "shown to differ")]
    for runs, features, paired in EQUAL:
        of = outcome(runs, features, 0.0, studies, paired=paired)
        dealt = "within blocks" if paired else "freely"
        equal.append((str(runs), str(features), dealt, f"{of.area:.3f}", _percent(of.holds), _percent(of.shown)))
        tell(f"equal, {runs} runs, {features} features, {dealt}")
    of = outcome_of_windows(8, studies)
    equal.append(("8", "6, blocks of packets", "freely", f"{of.area:.3f}", _percent(of.holds), _percent(of.shown)))
    tell("equal, blocks of packets")
    lasting = [("runs each", "correlation of a run with the next", "made", "told apart", "without a caution on times")]
    for runs, correlation, (how, apart_s) in STATES:
        told, alone = told_of_states(runs, 10, correlation, studies // 2, apart_s=apart_s)
        lasting.append((str(runs), f"{correlation:g}", how, _percent(told), _percent(alone)))
        tell(f"states that last, {runs} runs, {how}")
    shifted = [("runs each", "d", "Φ(d/√2)", "mean AUC", "its deviation", "interval holds Φ", "shown to differ")]
    for runs, shift in SHIFTED:
        of = outcome(runs, 1, shift, studies)
        numbers = (f"{best(shift):.3f}", f"{of.area:.3f}", f"{of.deviation:.3f}", _percent(of.holds), _percent(of.shown))
        shifted.append((str(runs), f"{shift:g}", *numbers))
        tell(f"{runs} runs shifted by {shift:g}")
    rules = [("runs each", "features", "d", "discriminant", "logistic regression")]
    for runs, features, shift in RULES:
        own, other = areas_of_rules(runs, features, shift, studies // 10)
        rules.append((str(runs), str(features), f"{shift:g}", f"{own:.3f}", f"{other:.3f}"))
    error = 100 * math.sqrt(0.05 * 0.95 / studies)
    return f"""Made by `python -m benchmarks.detectability --studies {studies}`; {studies} studies each where \
nothing else is said, shares in per cent, \
with a Monte Carlo standard error of {error:.1f} near 5 and 95 %.

Equal testbeds:

{_table(equal)}

Equal testbeds, each with a state of its own that lasts from run to run (10 features, labels dealt freely, \
{studies // 2} studies). What is \
told then is the state:

{_table(lasting)}

One feature, shifted by d standard deviations:

{_table(shifted)}

The mean AUC of {studies // 10} studies by two rules:

{_table(rules)}
"""


def _percent(share: float) -> str:
    return f"{100 * share:.1f}"


def _table(lines: Sequence[Sequence[str]]) -> str:
    return "\n".join(f"| {' | '.join(line)} |" for line in (lines[0], ["---"] * len(lines[0]), *lines[1:]))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--studies", type=int, default=200)
    parser.add_argument("-o", "--output", type=Path, default=PAGE)
    options = parser.parse_args()

    def tell(part: str) -> None:
        sys.stderr.write(f"{part}\n")

    made = f"{BEGIN}\n{figures(options.studies, tell)}{END}"
    page = options.output.read_text() if options.output.exists() else f"{BEGIN}\n{END}\n"
    options.output.write_text(re.sub(f"{BEGIN}.*{END}", lambda _: made, page, flags=re.DOTALL))


if __name__ == "__main__":
    main()
