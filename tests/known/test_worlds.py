"""What ``compare`` claims of equal testbeds: measured months apart, with a few slow runs, of the luckiest of many metrics;
and the chance that the replicates that it names do decide. Truths are planted, seeds fixed."""

from __future__ import annotations

import math

import numpy as np
import pytest
from benchmarks.simulated.worlds import IN_SUCCESSION, MONTHS_S, drawn, study, varies_more
from scipy import stats

from twinbed.analyses.compare.conclusion import conclusions
from twinbed.analyses.compare.gathered import CompareParams
from twinbed.analyses.compare.method import analysis as compare
from twinbed.analyses.compare.words import explanation
from twinbed.design.replicates import Levels, found_needs
from twinbed.model.caution import Kind
from twinbed.model.comparison import Comparison
from twinbed.model.result import Verdict
from twinbed.statistics.power import POWER, replicates_needed
from twinbed.statistics.ratio import ratio_test
from twinbed.statistics.spread import brown_forsythe_at_values, equal_deviations


def one(sessions: str | None = None, **world: float) -> Comparison:
    [found] = compare.run(drawn(np.random.default_rng(1), 5, **world), CompareParams(sessions=sessions)).comparisons
    return found


def kinds(each: Comparison) -> set[Kind]:
    return {caution.kind for caution in each.cautions}


@pytest.mark.parametrize("ratio", [1.0, 5.0])
def test_testbeds_that_no_session_has_together_get_no_verdict(ratio: float) -> None:
    found = one(ratio=ratio, apart_s=MONTHS_S)
    assert found.verdict is Verdict.INCONCLUSIVE and Kind.APART in kinds(found)
    assert (found.p_equivalent, found.p_different, found.replicates_needed) == (None, None, None)
    assert explanation(found) == "no session has runs of both testbeds, so testbed and time cannot be separated"
    assert found.ratio == pytest.approx(ratio, rel=0.05)
    [need] = found_needs([found], 0.1, Levels(0.05, 0.05))
    assert need.as_found[0] is None and need.reason.startswith("no session has runs of both testbeds"), (
        "more runs do not settle it"
    )


def test_who_knows_that_sessions_do_not_matter_gets_the_verdict_and_a_caution() -> None:
    found = one("none", apart_s=MONTHS_S)
    assert found.verdict is Verdict.EQUIVALENT and Kind.SUCCESSION in kinds(found) and Kind.APART not in kinds(found)
    by_time = one("time", apart_s=MONTHS_S)
    assert by_time.verdict is Verdict.INCONCLUSIVE and by_time.sessions == (1, 1)


def test_testbeds_one_after_the_other_in_one_session_get_a_caution() -> None:
    assert Kind.SUCCESSION in kinds(one(apart_s=0.0))
    assert kinds(one()) == set(), "runs that take turns have none"


def test_no_world_in_succession_has_a_wrong_verdict_without_a_caution() -> None:
    for world in IN_SUCCESSION:
        found = world.rate(5, 10, 2)
        if world.apart_s is not None:
            assert found.alone == 0, world.name
        if world.apart_s and world.sessions is None:
            assert found.any == 0, world.name


def test_a_few_slow_runs_are_no_spread() -> None:
    """One of five, one of ten, half of six; with Bonett alone each is a spread, with p below 0.05."""
    noise = np.random.default_rng(3)
    for n, slow in ((5, 1), (10, 1), (6, 3)):
        logs = noise.normal(0, 0.02, (2, n))
        logs[0, :slow] += math.log(10)
        bonett = equal_deviations(*logs.tolist())
        about = brown_forsythe_at_values(*logs.tolist())
        assert bonett is not None and about is not None and bonett < 0.05 and about > 0.05 / 3


def test_a_spread_of_few_runs_says_why_it_is_not_shown(capsys: pytest.CaptureFixture[str]) -> None:
    from twinbed.analyses.compare.terminal import print_comparison
    from twinbed.render.terminal import Terminal

    values = np.exp(np.random.default_rng(5).normal(0, 0.02, (2, 1, 8)))
    values[1, 0, 0] *= 10
    result = compare.run(study(dict(zip(("real", "virtual"), values, strict=True)), apart_s=None))
    print_comparison(result, Terminal(), result.comparisons)
    assert "a few runs alone may make this difference" in " ".join(capsys.readouterr().out.split())


def test_spreads_about_the_middle_value_are_scipys() -> None:
    """scipy.stats.levene about the median, of odd numbers; of even ones no smaller than about either middle value."""
    noise = np.random.default_rng(4)
    one, two = noise.normal(0, 3, 9).tolist(), noise.normal(0, 1, 11).tolist()
    assert brown_forsythe_at_values(one, two) == pytest.approx(stats.levene(one, two, center="median").pvalue)
    even = [*one, 7.0]
    values = [abs(np.array(even) - middle) for middle in sorted(even)[4:6]]
    expected = max(stats.f_oneway(each, abs(np.array(two) - np.median(two))).pvalue for each in values)
    assert brown_forsythe_at_values(even, two) == pytest.approx(expected)


@pytest.mark.parametrize(("share", "n"), [(0.1, 5), (0.1, 10), (0.2, 10)])
def test_equal_testbeds_with_slow_runs_do_not_vary_more(share: float, n: int) -> None:
    """Of 40 metrics in 20 studies; 19 and 20 of them had one with Bonett's test alone."""
    assert varies_more(share, n, 40, 20, 1).any <= 0.05


def test_no_sentence_picks_out_metrics_that_look_equivalent_by_chance() -> None:
    """20 metrics at the margin: most studies have an equivalent one, and hardly any says that it can stand in."""
    noise, found = np.random.default_rng([1, 5, 20]), []
    for _ in range(8):
        result = compare.run(drawn(noise, 5, metrics=20, ratio=1.1))
        [summary] = conclusions(result)
        found.append((bool(summary.equivalent), bool(summary.picked)))
        if summary.equivalent and not summary.picked:
            assert not summary.use_for and "only without correction" in " ".join(summary.cannot_tell)
    assert sum(equivalent for equivalent, _ in found) >= 4 and sum(named for _, named in found) <= 1


@pytest.mark.parametrize(("ratio", "deviation", "n"), [(1.0, 0.05, 5), (1.05, 0.05, 5), (1.03, 0.03, 3)])
def test_as_many_replicates_as_are_named_show_it_with_the_chance_that_is_said(ratio: float, deviation: float, n: int) -> None:
    """Of 40 inconclusive pilots each 40 new studies; the chance is 80 % at least, less three standard errors."""
    noise, shown = np.random.default_rng([n, round(1000 * ratio)]), []
    while len(shown) < 40 * 40:
        pilot = _study(noise, ratio, deviation, n)
        test = ratio_test(*pilot, 0.1, 0.05)
        needed = replicates_needed(*pilot, 0.1, 0.05)
        if test is None or test.p_equivalent <= 0.05 or needed is None:
            continue
        again = (ratio_test(*_study(noise, ratio, deviation, needed), 0.1, 0.05) for _ in range(40))
        shown += [each is not None and each.p_equivalent <= 0.05 for each in again]
    assert np.mean(shown) > POWER - 3 * math.sqrt(POWER * (1 - POWER) / 40)


def _study(noise: np.random.Generator, ratio: float, deviation: float, n: int) -> tuple[list[float], list[float]]:
    one, two = np.exp(noise.normal([[math.log(ratio)], [0]], deviation, (2, n))).tolist()
    return one, two


def test_the_terminal_says_what_so_few_runs_cannot_show(capsys: pytest.CaptureFixture[str]) -> None:
    from twinbed.analyses.compare.terminal import print_comparison
    from twinbed.render.terminal import Terminal

    print_comparison(compare.run(drawn(np.random.default_rng(1), 5)), Terminal())
    text = " ".join(capsys.readouterr().out.split())
    assert "5 runs cannot rule out something rare: a stall that hits up to 45 % of runs may have gone unseen." in text
