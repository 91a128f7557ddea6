"""Chains compared with other sources: the seeds' Figure 1, exact arithmetic, PyDTMC, closed forms, `strace -c`."""

from __future__ import annotations

import json
import math
import random
import re
from collections import Counter, defaultdict
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pydantic import ValidationError

from twinbed import _core
from twinbed._core import Transitions
from twinbed.analyses.chain.long_run import DENSE_STATES, balance, closed_classes, gap, spectrum, total_variation
from twinbed.analyses.chain.method import compare_chains
from twinbed.analyses.chain.sameness import same_chain
from twinbed.analyses.chain.walks import Rules, exponent, log10_of_mean, walk_all
from twinbed.instruments.syscalls import SyscallsParams, syscalls

GOLDEN = Path(__file__).parents[1] / "golden"
TRACES = Path(__file__).parents[2] / "crates/core/tests/golden/syscall"

FIGURE_1 = Transitions(
    [
        (None, None, None, "open", 100),
        (None, None, "open", "error", 1),
        (None, None, "open", "read", 99),
        (None, "open", "read", "read", 75),
        (None, "open", "read", "close", 25),
    ]
)
"""The chain of ICNC 2019, Figure 1: open to error .01, to read .99; read to itself .75, to close .25."""

sequences = st.lists(st.sampled_from(["read", "write", "close", "poll"]), min_size=2, max_size=60)


def probability(chain: list[str], sequence: list[str], order: int) -> Fraction | None:
    """The naive product in exact arithmetic; None where a transition is invalid."""
    rows: dict[tuple[str, ...], Counter[str]] = defaultdict(Counter)
    for at in range(len(chain) - order):
        rows[tuple(chain[at : at + order])][chain[at + order]] += 1
    product = Fraction(1)
    for at in range(len(sequence) - order):
        row = rows[tuple(sequence[at : at + order])]
        if not row[sequence[at + order]]:
            return None
        product *= Fraction(row[sequence[at + order]], row.total())
    return product


def exact_log10(value: Fraction) -> float:
    return math.log10(value.numerator) - math.log10(value.denominator)


def walk(*calls: str) -> float:
    return float(FIGURE_1.walk(Transitions.of_sequence(list(calls)))["log10_probability"])


def test_figure_1_and_its_arithmetic() -> None:
    edges = {(row["state"], row["call"]): row["probability"] for row in FIGURE_1.edges().to_pylist()}
    assert edges == {("open", "error"): 0.01, ("open", "read"): 0.99, ("read", "close"): 0.25, ("read", "read"): 0.75}
    assert walk("open", "read", "read", "read") == pytest.approx(math.log10(0.99 * 0.75**2), abs=1e-14)
    assert walk("open", "read", "read", "close") == pytest.approx(math.log10(0.99 * 0.75 * 0.25), abs=1e-14)
    assert walk("open", "close") == -math.inf
    # The seeds say that open and 16 reads is less probable than (open, error). It is from length 18 on.
    error = walk("open", "error")
    assert walk("open", *["read"] * 16) > error > walk("open", *["read"] * 17)
    assert exact_log10(Fraction(99, 100) * Fraction(3, 4) ** 16) < -2 < exact_log10(Fraction(99, 100) * Fraction(3, 4) ** 15)


@given(sequences, sequences, st.integers(1, 3))
@settings(deadline=None)
def test_walks_are_the_naive_product(chain: list[str], sequence: list[str], order: int) -> None:
    found = Transitions.of_sequence(chain).walk(Transitions.of_sequence(sequence), order)
    expected = probability(chain, sequence, order)
    if expected is None:
        assert found["log10_probability"] == -math.inf and found["invalid"] > 0
    else:
        assert found["log10_probability"] == pytest.approx(exact_log10(expected), abs=1e-12)
        assert found["invalid"] == 0


def test_a_million_calls_do_not_underflow() -> None:
    chain = Transitions.of_sequence(["read", "write", "read", "read"])
    long = Transitions([(None, None, None, "read", 1), ("read", "read", "read", "read", 10**6)])
    assert chain.walk(long)["log10_probability"] == pytest.approx(10**6 * math.log10(0.5), rel=1e-15)
    assert exponent(-33287.4) == "E-33288" and exponent(5531.2) == "E+5531" and exponent(-math.inf) == "0"
    assert log10_of_mean([-40000.0, -40000.0, -50000.0]) == pytest.approx(-40000 + math.log10(2 / 3))


def test_smoothing_by_hand() -> None:
    chain, sequence = Transitions.of_sequence(["a", "b", "a", "c", "a"]), Transitions.of_sequence(["a", "b", "d"])
    # From a: b once, c once of 2; from b: a once of 1. With alpha 1/2 over a, b, c, d:
    expected = Fraction(3, 2) / 4 * (Fraction(1, 2) / 3)
    assert chain.walk(sequence, alpha=0.5)["log10_probability"] == pytest.approx(exact_log10(expected), abs=1e-14)
    with pytest.raises(ValueError, match="support"):
        chain.walk(sequence, alpha=0.5, support=3)


@pytest.mark.parametrize("case", json.loads((GOLDEN / "chain/pydtmc.json").read_text()))
def test_pydtmc_agrees(case: dict[str, Any]) -> None:
    found = spectrum(Transitions.of_sequence(case["sequence"]), case["order"])
    assert dict(zip(found.states, found.stationary, strict=True)) == pytest.approx(case["stationary"], abs=1e-12)
    assert found.period == case["period"] and found.closed_classes == 1
    assert found.gap == pytest.approx(case["spectral_gap"] or 0.0, abs=1e-9)


def test_closed_forms() -> None:
    a, b = 0.3, 0.05
    two = np.array([[1 - a, a], [b, 1 - b]])
    assert balance(two) == pytest.approx([b / (a + b), a / (a + b)], abs=1e-15)
    assert gap(two) == pytest.approx(a + b)
    cycle = np.roll(np.eye(5), 1, axis=1)
    assert balance(cycle) == pytest.approx([0.2] * 5) and gap(cycle) == pytest.approx(0, abs=1e-12)
    # The gambler's ruin of 4 from 1: ends at 0 with 3/4, at 4 with 1/4.
    ruin = np.eye(5)
    for state in (1, 2, 3):
        ruin[state] = 0
        ruin[state, [state - 1, state + 1]] = 0.5
    assert [list(members) for members in closed_classes(ruin)] == [[0], [4]]
    assert gap(ruin) == pytest.approx(0, abs=1e-12)


def test_few_eigenvalues_of_a_large_chain() -> None:
    """A walk on a circle of n: eigenvalues 1/2 + cos(2 pi k / n) / 2 (Diaconis 1988, Group Representations, chapter 3)."""
    n = 401
    circle = np.eye(n) / 2 + (np.roll(np.eye(n), 1, axis=1) + np.roll(np.eye(n), -1, axis=1)) / 4
    assert n > DENSE_STATES
    assert gap(circle) == pytest.approx(0.5 - math.cos(2 * math.pi / n) / 2, abs=1e-10)
    assert balance(circle) == pytest.approx([1 / n] * n)


def test_chain_with_two_ends_restarts() -> None:
    found = spectrum(FIGURE_1)
    # Of 100 sequences one is (open, error); the others have 1 / .25 reads on average and end with close.
    visits = {"open": 100.0, "error": 1.0, "read": 99 * 4.0, "close": 99.0}
    whole = sum(visits.values())
    assert dict(zip(found.states, found.stationary, strict=True)) == pytest.approx({k: v / whole for k, v in visits.items()})


@given(st.lists(sequences, min_size=1, max_size=4), st.integers(1, 2))
@settings(deadline=None)
def test_stationary_is_use_where_all_that_is_entered_is_left(several: list[list[str]], order: int) -> None:
    found = spectrum(Transitions.pool([Transitions.of_sequence([*one, "exit_group"]) for one in several]), order)
    assert found.closed_classes == 1
    assert found.stationary == pytest.approx(found.use, abs=1e-10)
    assert total_variation(found, found) == 0


def test_distance_by_hand() -> None:
    one, two = Transitions.of_sequence(["a", "b", "a", "b"]), Transitions.of_sequence(["a", "b", "a", "c"])
    summary, edges = one.compare(two)
    # Uses: first a 2/3, b 1/3; second the same. Rows of a: (1, 0) and (1/2, 1/2): 3/4 log2(4/3) + 1/4 bits of divergence.
    row = 0.5 * math.log2(1 / 0.75) + 0.25 * math.log2(0.5 / 0.75) + 0.25
    assert summary["divergence_bits"] == pytest.approx(2 / 3 * row)
    assert summary["distance"] == pytest.approx(math.sqrt(2 / 3 * row))
    assert (summary["shared_edges"], summary["only_first"], summary["only_second"]) == (2, 0, 1)
    assert summary["different_edges"] == pytest.approx(1 / 3)
    assert (summary["only_first_share"], summary["only_second_share"]) == (0, pytest.approx(1 / 3))
    # Weights: a to b 1 and 1/2, used 2/3 + 1/3; b to a 1 and 1, used 1/3 + 1/3.
    assert summary["greatest_difference"] == 0.5 and summary["mean_difference"] == pytest.approx(0.3)
    assert edges.num_rows == 3
    assert Transitions.of_sequence(["x", "y"]).compare(one)[0]["distance"] == 1


def simulated(chance: random.Random, calls: int, extra: float = 0.0) -> Transitions:
    """A replicate whose own habits vary from run to run; ``extra`` is how often it polls once more."""
    again = 0.2 + chance.gauss(0, 0.02)
    names = ["socket"]
    while len(names) < calls:
        names += ["connect", "write", "read"]
        while chance.random() < again:
            names.append("read")
        if chance.random() < extra:
            names.append("poll")
        names.append("close")
    return Transitions.of_sequence(names[:calls])


def test_equal_chains_are_called_different_at_most_as_often_as_said() -> None:
    chance = random.Random(5)
    studies, alpha = 400, 0.05
    hits = 0
    for _ in range(studies):
        group = [simulated(chance, 300) for _ in range(10)]
        found = same_chain(group[:5], group[5:])
        assert found.exact and found.ways == 252 and found.least_p == pytest.approx(2 / 252)
        hits += (found.p_value or 0) <= alpha
    # Three standard deviations of a binomial above; and a test that never rejects is none.
    assert 5 <= hits <= studies * alpha + 3 * math.sqrt(studies * alpha * (1 - alpha))


def test_a_planted_difference_is_found() -> None:
    chance = random.Random(6)
    found = 0
    for _ in range(20):
        one, two = ([simulated(chance, 600, extra) for _ in range(5)] for extra in (0.0, 0.05))
        found += (same_chain(one, two).p_value or 1) <= 0.05
    assert found >= 19


def test_statistic_is_the_comparisons_and_ways_are_counted() -> None:
    chance = random.Random(7)
    one, two = ([simulated(chance, 200, extra) for _ in range(3)] for extra in (0.0, 0.3))
    for order in (1, 2, 3):
        found = compare_chains(one, two, order=order)
        assert found.sameness.distance == pytest.approx(found.summary["distance"], abs=1e-12)
    assert (found.sameness.ways, found.sameness.p_value) == (20, 0.1)
    many = [simulated(chance, 60) for _ in range(20)]
    sampled = same_chain(many[:10], many[10:], seed=3)
    assert not sampled.exact and sampled == same_chain(many[:10], many[10:], seed=3)
    empty = same_chain([Transitions([])], one)
    assert empty.distance is None and empty.p_value is None


def test_tables_of_walks_by_hand() -> None:
    chance = random.Random(8)
    groups = {
        "e1000": [simulated(chance, 200) for _ in range(3)],
        "physical": [simulated(chance, 200) for _ in range(3)],
        "virtio": [simulated(chance, 200, 0.3) for _ in range(3)],
    }
    physical, e1000, virtio = walk_all(groups, "physical")
    assert [one.testbed for one in (physical, e1000, virtio)] == ["physical", "e1000", "virtio"]
    assert physical.walks == 9 and physical.transitions == 9 * 199 and physical.relative_log10_mean == 0
    logs = [chain.walk(one)["log10_probability"] for chain in groups["physical"] for one in groups["e1000"]]
    own = [chain.walk(one)["log10_probability"] for chain in groups["physical"] for one in groups["physical"]]
    assert e1000.invalid == 0 and e1000.equal_lengths
    assert e1000.relative_log10_mean == pytest.approx(log10_of_mean(logs) - log10_of_mean(own))
    # No chain of the reference polls.
    polls = sum(
        row["count"] for one in groups["virtio"] for row in one.edges().to_pylist() if "poll" in (row["state"], row["call"])
    )
    assert virtio.invalid == 3 * polls and virtio.valid_walks == 0 and virtio.relative_log10_mean is None
    # What is impossible has no likelihood per call.
    assert virtio.per_call is None and virtio.interval is None and e1000.interval is not None
    smoothed = walk_all(groups, "physical", Rules(alpha=0.5))[2]
    assert smoothed.invalid == 0 and smoothed.relative_log10_mean is not None and smoothed.relative_log10_mean < -10
    assert smoothed.interval is not None and smoothed.interval.high < 0


SEQUENCES = {
    "physical": ("open read read write read close read", "open read write read read write open open"),
    "container": ("open read read read write close", "open read write read write read write read read"),
    "e1000": ("open read close read read", "open write read read read write"),
}
"""Of unequal lengths: all have five calls and more."""


def limited(folder: Path, limit: int | None) -> dict[str, list[Transitions]]:
    """What the instrument makes of runs of each testbed."""
    groups: dict[str, list[Transitions]] = defaultdict(list)
    for testbed, sequences in SEQUENCES.items():
        for replicate, sequence in enumerate(sequences):
            host = folder / testbed / str(replicate) / "client"
            host.mkdir(parents=True)
            (host / "system-calls.trace").write_text(sequence.replace(" ", "\n") + "\n")
            found = syscalls.extract(SyscallsParams(mode="trace", limit=limit), host.parent)
            grams = found.tables["transitions"].select(["before_3", "before_2", "before_1", "call", "count"]).to_pylist()
            groups[testbed].append(Transitions([tuple(row.values()) for row in grams]))
            values = {value.metric: value.value for value in found.values}
            assert values["system_calls"] == len(sequence.split()), "metrics are of the whole run"
    return groups


def test_table_ix_of_limited_traces_is_the_exact_quotient_of_means(tmp_path: Path) -> None:
    """The seeds' Tables VIII and IX from what the instrument recorded, by products of fractions."""
    whole = walk_all(limited(tmp_path / "all", None), "physical")
    assert not any(one.equal_lengths or one.relative_log10_mean is not None for one in whole)
    cut = {testbed: [text.split()[:5] for text in sequences] for testbed, sequences in SEQUENCES.items()}

    def products(testbed: str) -> list[Fraction]:
        every = [probability(chain, sequence, 1) for chain in cut["physical"] for sequence in cut[testbed]]
        return [one for one in every if one is not None]

    own, valid_walks = products("physical"), []
    for walked in walk_all(limited(tmp_path / "five", 5), "physical"):
        valid = products(walked.testbed)
        valid_walks.append(walked.valid_walks)
        assert (walked.walks, walked.valid_walks, walked.equal_lengths) == (4, len(valid), True)
        if not valid:
            assert walked.relative_log10_mean is None
            continue
        quotient = (sum(valid, Fraction()) / len(valid)) / (sum(own, Fraction()) / len(own))
        assert walked.relative_log10_mean == pytest.approx(exact_log10(quotient), abs=1e-13)
    # open read close: no chain of five calls has it. open write neither.
    assert valid_walks == [4, 4, 0]


def test_a_count_has_no_limit() -> None:
    with pytest.raises(ValidationError, match="mode: trace"):
        SyscallsParams(limit=5)


def counted(path: Path) -> Counter[str]:
    programs, summary = _core.system_calls(path)
    assert summary["cut_off"] is None
    total: Counter[str] = Counter()
    for _, _, calls in programs:
        total.update(dict(zip(calls["call"].to_pylist(), calls["calls"].to_pylist(), strict=True)))
    return total


def summarised(path: Path) -> Counter[str]:
    """The table of ``strace -c``: % time, seconds, usecs/call, calls, errors (may be empty), syscall."""
    rows = re.findall(r"^ *[\d.]+ +[\d.]+ +\d+ +(\d+) +(?:\d+ +)?(\w+)$", path.read_text(), re.M)
    return Counter({name: int(calls) for calls, name in rows if name != "total"})


@pytest.mark.parametrize(
    "name", ["strace-f-ttt-T.txt", "strace-stderr.txt", "strace-f-Y.txt", "strace-f-tt.txt", "strace-f-y-n-r.txt"]
)
def test_counts_are_those_of_strace_c(name: str) -> None:
    expected, found = summarised(TRACES / "strace-c.summary"), counted(TRACES / name)
    assert sum(expected.values()) > 200
    # strace -c counts what has returned, so no exit, and what it has a name for.
    assert found - expected == Counter(exit=1, exit_group=2, syscall_470=1) and not expected - found


@pytest.mark.parametrize("name", ["perf.data", "perf-g.data", "perf-z.data", "perf-pipe.data", "perf-script.txt"])
def test_tracers_agree_on_one_program(name: str) -> None:
    expected, found = counted(TRACES / "strace-f-ttt-T.txt"), counted(TRACES / name)
    # perf begins once the program has been executed.
    assert expected - found == Counter(execve=1) and not found - expected


def test_two_tracers_see_the_same_chain_of_ab() -> None:
    """ab's calls as strace saw them, by a reader of three lines."""
    lines = (TRACES / "ab-strace.txt").read_text().splitlines()
    names = [match[1] for line in lines if (match := re.match(r"\d+ [\d.]+ (\w+)\(", line))]
    programs, _ = _core.system_calls(TRACES / "ab-strace.txt")
    assert [(program, counts) for program, counts, _ in programs] == [
        (None, Transitions.of_sequence(names[:1])),
        ("ab", Transitions.of_sequence(names[1:])),
    ]
