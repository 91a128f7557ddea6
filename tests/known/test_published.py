"""The printed tables recomputed and audited: the audit finds every inconsistency that a reader found by hand, and nothing else.

Expected numbers are from the seeds' pages and from arithmetic by hand or in exact fractions.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import replace
from fractions import Fraction

import pytest
from scipy import stats

from twinbed.model.result import Verdict
from twinbed.published import claims
from twinbed.published.audit import audit
from twinbed.published.printed import Cell, Library, library
from twinbed.published.replay import replay
from twinbed.published.replayed import Replayed, Status
from twinbed.published.verdicts import Held, compare

SEEDS = library()


def changed(change: Callable[[Cell], str | None], found: Library = SEEDS) -> Library:
    """The library with other digits in the cells for which ``change`` gives some."""

    def cell(each: Cell) -> Cell:
        printed = change(each)
        if printed is None:
            return each
        decimals = each.decimals if each.table in ("ONL-3", "ONL-5") else len(printed.partition(".")[2])
        return replace(each, printed=printed, value=Fraction(printed), decimals=decimals)

    tables = {name: replace(table, cells=tuple(map(cell, table.cells))) for name, table in found.tables.items()}
    return replace(found, tables=tables)


def digits(table: str, printed: str, **wanted: str) -> Callable[[Cell], str | None]:
    """A change of the one cell of ``table`` that has these labels and this kind."""
    target = SEEDS.tables[table].cell(**wanted)
    return lambda cell: printed if cell == target else None


def flags(found: Library = SEEDS) -> set[tuple[str, str, str]]:
    return {(finding.rule, finding.table, finding.cell) for finding in audit(found)}


def one(table: str, cell: str, quantity: str) -> Replayed:
    [row] = [row for row in replay(SEEDS, SEEDS.table(table)) if (row.cell, row.quantity) == (cell, quantity)]
    return row


# Replay.


def test_the_analysis_of_variance_comes_out_of_the_data() -> None:
    """ONL Table 4 from Table 3, against exact sums over the 50 values."""
    values = [[cell.number for cell in SEEDS.tables["ONL-3"].where(receivers=str(n))] for n in range(1, 11)]
    flat = [value for each in values for value in each]
    ssy, ss0 = sum(value**2 for value in flat), sum(flat) ** 2 / 50
    sse = sum((value - sum(each) / 5) ** 2 for each in values for value in each)
    ssa = ssy - ss0 - sse
    expected = {
        ("y", "sum of squares"): ssy,
        ("mean", "sum of squares"): ss0,
        ("y - mean", "sum of squares"): ssy - ss0,
        ("A", "sum of squares"): ssa,
        ("errors", "sum of squares"): sse,
        ("A", "mean square"): ssa / 9,
        ("errors", "mean square"): sse / 40,
        ("A", "f"): (ssa / 9) / (sse / 40),
        ("A", "variation"): 100 * ssa / (ssy - ss0),
    }
    for (component, quantity), value in expected.items():
        row = one("ONL-4", component, quantity)
        assert float(row.recomputed) == pytest.approx(float(value), rel=1e-4), row
        assert row.low is not None and row.high is not None and row.low <= float(value) <= row.high
    # The figures of the text, worked out by hand.
    shown = {key: round(float(value), 1) for key, value in expected.items()}
    assert shown["y", "sum of squares"] == 64049.0 and shown["mean", "sum of squares"] == 23937.4
    assert shown["y - mean", "sum of squares"] == 40111.6 and shown["A", "sum of squares"] == 39981.7
    assert shown["A", "f"] == 1367.9 and one("ONL-4", "A", "table f").recomputed == "2.888"
    rows = replay(SEEDS, SEEDS.table("ONL-4"))
    assert len(rows) == 17 and {row.status for row in rows} == {Status.EQUAL, Status.ROUNDING}


def test_the_interval_of_a_difference() -> None:
    """1.96 sqrt(3.248 x 2/5) = 2.234 about 4.545 - 0.1532 = 4.3918."""
    low, high = one("ONL-5", "receivers=6 against=5", "lower bound"), one("ONL-5", "receivers=6 against=5", "upper bound")
    half = 1.96 * math.sqrt(3.248 * 2 / 5)
    assert float(low.recomputed) == pytest.approx(4.3918 - half, abs=6e-4) and low.status is Status.DIFFERS
    assert float(high.recomputed) == pytest.approx(4.3918 + half, abs=6e-4) and high.printed == "22.05"
    middles = [row for row in replay(SEEDS, SEEDS.table("ONL-5")) if row.quantity == "middle of the ends"]
    assert len(middles) == 9 and {row.status for row in middles} == {Status.EQUAL}


def test_reprints_agree_in_every_cell() -> None:
    for name, count in (("2019-1", 18), ("2019-2", 9), ("2019-3", 18)):
        rows = [row for row in replay(SEEDS, SEEDS.table(name)) if row.printed is not None]
        assert len(rows) == count and {row.status for row in rows} == {Status.EQUAL}


def test_stars_sums_and_percent_effects() -> None:
    rows = replay(SEEDS, SEEDS.table("LDRD-3.4"))
    stars = [row for row in rows if row.quantity == "significance"]
    assert len(stars) == 19 and {row.status for row in stars} == {Status.EQUAL}
    assert one("LDRD-3.2", "Total", "evaluated metrics sum").status is Status.EQUAL
    effect = one("LDRD-3.4", "NIC container", "effect at 40 pairs")
    assert float(effect.recomputed) == pytest.approx(100 * math.expm1(-0.176 + 39 * 0.024), abs=0.05)
    assert effect.low == pytest.approx(100 * math.expm1(-0.1765 + 39 * 0.0235))
    assert effect.high == pytest.approx(100 * math.expm1(-0.1755 + 39 * 0.0245))
    alone = one("LDRD-3.4", "NIC container", "effect at 1 pairs")
    assert float(alone.recomputed) == pytest.approx(100 * math.expm1(-0.176), abs=0.005)


def test_rates_goodput_and_probability_a_call() -> None:
    assert float(one("2017-1", "physical offloading=no workers=1", "transactions a second").recomputed) == pytest.approx(
        883 / 60, abs=5e-3
    )
    assert float(one("ICNC-I", "1Gbps 16MB virtio", "goodput").recomputed) == pytest.approx(7.09 * 2**27 / 1e6, abs=0.05)
    per_call = one("ICNC-IX", "virtio skip=none", "relative probability a call")
    assert float(per_call.recomputed) == pytest.approx(10 ** (-33288 / 2e6), abs=5e-5)
    change = one("ICNC-III", "10Gbps 16MB physical", "change by instrumentation")
    assert float(change.recomputed) == pytest.approx(100 * (50.0 / 60.1 - 1), abs=5e-3)


def test_effective_throughput() -> None:
    """Six receivers lose 4.545 % of 1 Gbps each: 954.55 Mbit/s come through."""
    assert one("ONL-3", "receivers=6", "mean loss").recomputed == "4.545"
    assert float(one("ONL-3", "receivers=6", "effective throughput").recomputed) == pytest.approx(954.55, abs=0.06)


def test_a_number_differs_only_if_no_inputs_give_it() -> None:
    """0.776 has inputs that give it: 0.0244 is printed 0.024. The sum of four whole counts has not."""
    by_id = {row.cell: row for row in replay(SEEDS) if row.quantity == "text"}
    assert by_id["containers-log"].status is Status.ROUNDING and by_id["containers-percent"].status is Status.ROUNDING
    assert by_id["tracing-fields"].status is Status.DIFFERS
    differing = {(row.table, row.cell) for row in replay(SEEDS) if row.status is Status.DIFFERS}
    assert {table for table, _ in differing} == {"ONL-2", "ONL-5", "LDRD Table 3.2"}


# Audit: everything that is wrong, and only that.

FIVE_HUNDRED = {
    (table, f"{link} 500B {testbed} mean")
    for table, link in (("ICNC-I", "1Gbps"), ("ICNC-II", "10Gbps"), ("ICNC-III", "1Gbps"), ("ICNC-III", "10Gbps"))
    for testbed in ("physical", "e1000", "virtio")
}
"""90 s at 5,556 requests a second are 500,000. The mean of one, 5474, is below it, but its interval says that runs differ by
675 (sd): 45 % of them are above."""
ABOVE = {
    *((table, f"1Gbps 1MB {testbed} mean") for table in ("2019-1", "ICNC-I") for testbed in ("e1000", "virtio")),
    *((table, f"1Gbps 16MB {testbed} mean") for table in ("2019-1", "ICNC-I", "ICNC-III") for testbed in ("e1000", "virtio")),
}
EXPECTED = {
    *(("request cap", *where) for where in FIVE_HUNDRED),
    *(("goodput above the link", *where) for where in ABOVE),
    *(("interval half-width", "ONL-5", f"receivers={k} against={k - 1}") for k in range(2, 11)),
    *(
        ("does not come out again", "ONL-2", f"flows=10 seconds={seconds} {algorithm}: fairness mean")
        for seconds in (10, 120)
        for algorithm in ("Reno", "CUBIC")
    ),
    ("claim", "ICNC-III ICNC-II", "V-A1"),
    ("claim", "ICNC-III ICNC-I ICNC-II", "V-A1"),
    ("claim", "ICNC-II", "V-A"),
    ("claim", "2019-2", "Result: OS-level Metrics"),
    ("claim", "2019-3", "Result: Network-level Metrics"),
    ("claim", "ICNC-VII", "V-C"),
    ("claim", "ICNC-F1", "V-D"),
    ("claim", "ICNC-III ICNC-II", "Instrumentation"),
    ("claim", "ICNC-III ICNC-I ICNC-II", "Instrumentation"),
    ("claim", "2019-1 2019-2 2019-3", "Conclusion"),
    ("equation", "", "Table 3.2"),
    ("equation", "", "3.1.2"),
}


def test_one_cause_is_one_finding_in_several_places() -> None:
    """Counted by hand: 113, 7.05 and 7.09 requests a second; the caps of three tables; one root upside down; four values in
    other rows; ten claims, of which two are halves of one sentence; two equations."""
    facts = {rule: {each.fact for each in audit(SEEDS) if each.rule == rule} for rule, *_ in EXPECTED}
    assert {rule: len(each) for rule, each in facts.items()} == {
        "goodput above the link": 3,
        "request cap": 3,
        "interval half-width": 1,
        "does not come out again": 1,
        "claim": 9,
        "equation": 2,
    }
    assert sorted(set().union(*facts.values())) == list(range(1, 20))


def test_the_cap_ended_as_many_runs_as_the_printed_interval_says() -> None:
    """Of 10 runs 6476 +- 707 are 6476 and 1141 (sd): scipy's normal distribution has 79 % above 5,556."""
    said = {(each.table, each.cell): each.follows for each in audit(SEEDS) if each.rule == "request cap"}
    table = SEEDS.tables["ICNC-I"]
    half = table.cell(testbed="e1000", payload="500B", kind="interval half-width")
    share = stats.norm.sf(500_000 / 90, 6476, float(half.number) / 1.959964 * math.sqrt(10))
    assert f"about {100 * share:.0f} % of the runs" in said["ICNC-I", "1Gbps 500B e1000 mean"]
    assert round(100 * share) == 79


def test_what_is_wrong_is_flagged_and_nothing_that_is_right() -> None:
    assert flags() == EXPECTED
    assert len(audit(SEEDS)) == len(EXPECTED)


def test_the_half_width_makes_three_steps_significant() -> None:
    found = {finding.cell: finding for finding in audit(SEEDS) if finding.rule == "interval half-width"}
    becomes = [finding.changes for finding in found.values() if "becomes" in finding.changes]
    assert becomes == ["5 -> 6 becomes significant", "8 -> 9 becomes significant", "9 -> 10 becomes significant"]
    arithmetic = found["receivers=6 against=5"].arithmetic
    assert "= 2.23 (2.30 by t), not 17.66" in arithmetic and "sqrt(a r/2)" in arithmetic
    assert found["receivers=6 against=5"].follows == "(2.16, 6.63)"


def test_the_fairness_values_stand_in_other_rows() -> None:
    found = {finding.cell.partition(":")[0]: finding for finding in audit(SEEDS) if finding.table == "ONL-2"}
    owners = {
        cell: finding.changes.removeprefix("it is the value that follows for ").partition(":")[0]
        for cell, finding in found.items()
    }
    assert owners == {
        "flows=10 seconds=10 Reno": "flows=10 seconds=10 CUBIC",
        "flows=10 seconds=10 CUBIC": "flows=10 seconds=120 CUBIC",
        "flows=10 seconds=120 Reno": "flows=10 seconds=10 Reno",
        "flows=10 seconds=120 CUBIC": "flows=10 seconds=120 Reno",
    }
    # 1 / (1 + (59.9 / 938.8)^2), in exact fractions.
    exact = 1 / (1 + (Fraction("59.9") / Fraction("938.8")) ** 2)
    assert f"{float(exact):.4f}" == "0.9959" and "= 0.9959" in found["flows=10 seconds=10 Reno"].arithmetic


def test_the_chain_of_figure_1() -> None:
    """.99 x .75^15 > .01 > .99 x .75^16: the claim holds from open and 17 reads, which are 18 calls."""
    assert Fraction(99, 100) * Fraction(3, 4) ** 15 > Fraction(1, 100) > Fraction(99, 100) * Fraction(3, 4) ** 16
    [finding] = [finding for finding in audit(SEEDS) if finding.table == "ICNC-F1"]
    assert finding.follows == "it holds from length 18" and "0.01323" in finding.arithmetic
    chain = SEEDS.tables["ICNC-F1"].cells
    assert claims.walk(chain, claims.sequence("open read*3")) == Fraction(99, 100) * Fraction(9, 16)
    assert claims.walk(chain, claims.sequence("open read*2 close")) == Fraction(99, 100) * Fraction(3, 16)
    assert claims.walk(chain, ["read", "open"]) == 0
    right = [
        replace(each, left=each.left.replace("*16", "*17")) if each.id == "figure-1-length" else each for each in SEEDS.claims
    ]
    assert ("claim", "ICNC-F1", "V-D") not in flags(replace(SEEDS, claims=right))


def test_the_drop_is_printed_with_its_arithmetic() -> None:
    [finding, _] = [finding for finding in audit(SEEDS) if finding.rule == "claim" and finding.cell == "V-A1"]
    assert finding.arithmetic == "ICNC-II 10Gbps 16MB physical: 60.1 -> 50.0, -16.8 %"
    assert finding.changes == "it holds for all 4 cases with -16.8 % for -13 %"


def test_the_displayed_equation_says_what_follows_and_what_may_explain_it() -> None:
    [finding] = [finding for finding in audit(SEEDS) if finding.cell == "3.1.2"]
    assert finding.follows == "0.760"
    assert "113.828%, not 117.314%" in finding.changes and "0.740 to 0.780" in finding.changes


def test_the_gate_says_what_it_takes_for_granted() -> None:
    [finding] = [each for each in audit(SEEDS) if (each.table, each.cell) == ("ICNC-I", "1Gbps 1MB virtio mean")]
    assert "941.5 Mbit/s" in finding.follows and "timestamps" in finding.follows
    assert "113 x 8 x 1048576 = 947.9 Mbit/s" in finding.arithmetic
    assert "956.4 Mbit/s" in finding.changes and "if 1MB means 1000000 bytes, it is 904.0 Mbit/s" in finding.changes


# A corrected number is flagged no more; a number made wrong is.


@pytest.mark.parametrize(
    ("flag", "change"),
    [
        (
            ("request cap", "ICNC-I", "1Gbps 500B e1000 mean"),
            digits("ICNC-I", "3600", payload="500B", testbed="e1000", kind="mean"),
        ),
        (
            ("goodput above the link", "ICNC-I", "1Gbps 1MB e1000 mean"),
            digits("ICNC-I", "112.2", payload="1MB", testbed="e1000", kind="mean"),
        ),
        (("claim", "ICNC-III ICNC-II", "V-A1"), digits("ICNC-II", "52.5", payload="16MB", testbed="physical", kind="mean")),
        (("claim", "ICNC-VII", "V-C"), digits("ICNC-VII", "0.42", payload="16MB", testbed="e1000", kind="mean")),
    ],
)
def test_a_corrected_number_is_not_flagged(flag: tuple[str, str, str], change: Callable[[Cell], str | None]) -> None:
    assert flag in EXPECTED and flag not in flags(changed(change))


def test_corrected_intervals_are_not_flagged() -> None:
    ends = {(row.cell, row.quantity): row.recomputed for row in replay(SEEDS, SEEDS.table("ONL-5"))}

    def corrected(cell: Cell) -> str | None:
        found = ends.get((cell.place, cell.kind)) if cell.table == "ONL-5" else None
        return None if found is None else f"{float(found):.2f}"

    assert not [each for each in flags(changed(corrected)) if each[1] == "ONL-5"]


@pytest.mark.parametrize(
    ("flag", "change"),
    [
        (("request cap", "ICNC-I", "1Gbps 1MB e1000 mean"),
         digits("ICNC-I", "5600", payload="1MB", testbed="e1000", kind="mean")),
        (
            ("goodput above the link", "ICNC-II", "10Gbps 16MB virtio mean"),
            digits("ICNC-II", "70.6", payload="16MB", testbed="virtio", kind="mean"),
        ),
        (("goodput above the link", "ONL-2", "flows=9 seconds=10 Reno mean"),
         digits("ONL-2", "1047", flows="9", seconds="10", congestion_control="Reno", metric="throughput", kind="mean")),
        (("does not come out again", "ONL-4", "A: f"), digits("ONL-4", "1386.786", component="A", metric="f")),
        (("does not come out again", "ONL-4", "errors: degrees of freedom"),
         digits("ONL-4", "45", component="errors", metric="degrees_of_freedom")),
        (("does not come out again", "LDRD-3.2", "Total: evaluated metrics sum"),
         digits("LDRD-3.2", "189", **{"class": "Total", "kind": "sum"})),
        (("does not come out again", "LDRD-3.4", "GRE enabled: significance"),
         digits("LDRD-3.4", "0.1", term="GRE enabled", kind="standard error")),
        (("does not come out again", "2019-2", "1Gbps 1MB virtio: read calls per request mean"),
         digits("2019-2", "352.27", payload="1MB", testbed="virtio")),
        (("does not come out again", "ICNC-F1", "from=read: sum of probabilities"),
         digits("ICNC-F1", "0.57", **{"from": "read", "to": "read"})),
        (("claim", "ICNC-IV", "V-B"), digits("ICNC-IV", "6072.02", payload="16MB", testbed="virtio")),
        (("claim", "ICNC-V", "V-B"), digits("ICNC-V", "255.80", payload="1MB", testbed="virtio")),
    ],
)  # fmt: skip
def test_a_planted_error_is_flagged(flag: tuple[str, str, str], change: Callable[[Cell], str | None]) -> None:
    assert flag not in EXPECTED and flag in flags(changed(change))


@pytest.mark.parametrize("index", range(len(SEEDS.equations)))
def test_an_equation_with_another_result_is_flagged(index: int) -> None:
    equation = SEEDS.equations[index]
    planted = replace(equation, value=equation.value * 3, printed="planted")
    equations = [planted if each is equation else each for each in SEEDS.equations]
    found = [
        finding
        for finding in audit(replace(SEEDS, equations=equations))
        if finding.printed.partition("=")[2] == f" planted{equation.unit}"
    ]
    assert len(found) == 1


def test_a_claim_is_wrong_when_it_is_turned_round() -> None:
    """Of every claim that holds of all cases the opposite is flagged."""
    opposite = {"<": ">", ">": "<", "<=": ">", ">=": "<"}
    for claim in SEEDS.claims:
        checked = claims.check(SEEDS, claim)
        if claim.quantifier == "all" and claim.relation in opposite and not checked.wrong:
            turned = claims.check(SEEDS, replace(claim, relation=opposite[claim.relation]))
            sure = [case for case in checked.cases if case.certain]
            # A span that ends at the bound is neither sure before nor possible after.
            assert len(turned.wrong) >= len(sure) > 0, claim.id


# The methodology on the printed numbers.

ROWS = compare(SEEDS)


def held(table: str, cell: str) -> Held:
    [row] = [row for row in ROWS if (row.table, row.cell) == (table, cell)]
    return row


def test_every_virtual_cell_is_held_against_the_physical_one() -> None:
    counts = {name: sum(row.table == name for row in ROWS) for name in dict.fromkeys(row.table for row in ROWS)}
    six = ("2019-1", "2019-2", "2019-3", "ICNC-I", "ICNC-II", "ICNC-IV", "ICNC-V", "ICNC-VI", "ICNC-VII")
    assert counts == {"2017-1": 18, "2017-2": 18, **dict.fromkeys(six, 6), "ICNC-III": 8, "ICNC-VIII": 4, "ICNC-IX": 4}
    assert all(row.testbed in ("e1000", "virtio", "containers") for row in ROWS)


def test_the_rule_of_10_percent() -> None:
    """By hand from the printed means."""
    assert held("ICNC-I", "1Gbps 500B virtio").within_rule is True  # 5.8 % less
    assert held("ICNC-I", "1Gbps 500B e1000").within_rule is False  # 55 % less
    assert held("ICNC-II", "10Gbps 16MB virtio").within_rule is False  # 44.5 / 50.0: 11 % less
    assert held("ICNC-VI", "1Gbps 1MB virtio").within_rule is False  # 14 % more
    assert held("2017-1", "containers offloading=no workers=1").within_rule is True  # 888 and 883
    assert held("2017-2", "e1000 offloading=no workers=4").within_rule is False  # 429 and 906
    assert sum(row.within_rule is False for row in ROWS if row.table.startswith("2017")) == 6


def test_a_rule_that_hangs_on_rounding_says_so() -> None:
    """1.1 beside 1.0 may be anything from 1.05/1.05 to 1.15/0.95."""
    physical = digits("2019-2", "1.0", payload="500B", testbed="physical")
    both = changed(digits("2019-2", "1.1", payload="500B", testbed="virtio"), changed(physical))
    [row] = [row for row in compare(both) if (row.table, row.cell) == ("2019-2", "1Gbps 500B virtio")]
    assert row.within_rule is None


def test_verdicts_of_printed_means_and_intervals() -> None:
    """Welch's t by hand for ICNC-III, 500B over 1Gbps: 14373 ± 182.8 against 16459 ± 57, n = 10."""
    row = held("ICNC-III", "1Gbps 500B virtio")
    ratio = 14373 / 16459
    one_error, two_error = 182.8 / 1.959964, 57 / 1.959964
    spread = math.hypot(one_error, ratio * two_error)
    # Fieller's interval is close to the delta method's where the reference is so sure.
    t_95 = 1.80
    assert row.ratio == pytest.approx(ratio)
    assert row.ratio_low == pytest.approx(ratio - t_95 * spread / 16459, abs=5e-4)
    assert row.ratio_high == pytest.approx(ratio + t_95 * spread / 16459, abs=5e-4)
    assert row.verdict is Verdict.DIFFERENT
    assert held("ICNC-I", "1Gbps 500B virtio").verdict is Verdict.EQUIVALENT
    assert held("ICNC-I", "1Gbps 500B e1000").verdict is Verdict.DIFFERENT
    assert held("ICNC-VI", "1Gbps 16MB virtio").verdict is Verdict.INCONCLUSIVE
    # Within 10 % by the means, and yet not shown.
    assert (
        held("ICNC-II", "10Gbps 1MB virtio").within_rule
        and held("ICNC-II", "10Gbps 1MB virtio").verdict is Verdict.INCONCLUSIVE
    )


def test_where_no_interval_can_be_made_it_says_why() -> None:
    for table, because in (
        ("2017-1", "neither what follows ± nor of how many runs"),
        ("ICNC-IV", "no spread is printed"),
        ("ICNC-VIII", "not independent"),
        ("ICNC-IX", "power of ten"),
    ):
        rows = [row for row in ROWS if row.table == table and row.ratio != 0 and "0: there is no" not in row.because]
        assert rows and all(row.verdict is None and because in row.because for row in rows)
    assert held("ICNC-VIII", "e1000 skip=1M").because == "the reference is 0: there is no ratio"
    assert all((row.verdict is None) == bool(row.because) for row in ROWS)


def test_cautions_go_with_the_cells() -> None:
    assert held("ICNC-I", "1Gbps 16MB virtio").cautions == ("virtio: goodput above the link",)
    assert held("ICNC-III", "10Gbps 500B e1000").cautions == ("e1000: request cap", "physical: request cap")
    assert held("ICNC-II", "10Gbps 16MB virtio").cautions == ()
