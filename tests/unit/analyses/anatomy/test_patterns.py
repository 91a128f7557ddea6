"""Shares of patterns are those of runs, and what sets a pattern apart is said."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from twinbed.analyses.anatomy.patterns import Pattern, counted, difference, occurring, sentence, together
from twinbed.analyses.anatomy.steps import Requests

USUAL = "S s A P a p+ A f F A"


def pattern(packets: str, share: float = 0.5, late: str = "", silence_s: float | None = None) -> Pattern:
    return Pattern(packets, late, share, silence_s)


def test_shares_are_the_mean_over_runs_of_each_runs_share() -> None:
    # A run of 1,000 requests counts as much as one of 10: (0.5 + 0.1) / 2 and (0.5 + 0.9) / 2.
    long = {("a", ""): [0.0] * 500, ("b", ""): [0.0] * 500}
    short = {("a", ""): [0.0], ("b", ""): [0.0] * 9}
    found = occurring([long, short])
    assert [(each.packets, each.share) for each in found] == [("b", pytest.approx(0.7)), ("a", pytest.approx(0.3))]
    assert sum(each.share for each in found) == pytest.approx(1)


def requests(totals_s: list[float]) -> Requests:
    count = len(totals_s)
    times = np.zeros(count, np.int64)
    return Requests({"all": np.array(totals_s)}, times, times, [USUAL] * count, 0, 0, np.arange(1, count + 1))


def test_a_late_acknowledgment_is_a_pattern_of_its_own_and_slow_requests_are_not() -> None:
    # The first row is not whole. Then: as usual; its last ACK 40 ms after the end; 40 ms within; 100 ms of a path that slow.
    silences = [9e9, 1e5, 40e6, 44e6, 100e6]
    table = pa.table({"silence_ns": [int(ns) for ns in silences], "silence_ended_by": ["x", "p", "A", "A", "s"]})
    counts = counted(table, requests([0.3e-3, 0.4e-3, 44.4e-3, 320e-3]))
    assert {name: len(each) for name, each in counts.items()} == {(USUAL, ""): 2, (USUAL, "A"): 2}
    (usual, late) = sorted(occurring([together([counts, {}])]), key=lambda each: each.late)
    assert usual.silence_s is None
    assert late.silence_s == pytest.approx(42e-3)
    said = sentence("real", [pattern(USUAL, 0.94), pattern(USUAL, 0.06, "A", 0.04)])
    assert said == f"real: 94 % of requests are {USUAL}; 6 % the same, the client's ACK after a silence of 40 ms"


@pytest.mark.parametrize(
    ("common", "other", "said"),
    [
        (
            USUAL,
            "S s A P a p+ A x A f F A",
            ["the server's payload sent again", "an ACK more of the client before the server's FIN"],
        ),
        (USUAL, "S Y s A P a p+ A f F A", ["the client's SYN sent again"]),
        # Long ones are cut after sixteen: of what comes then nothing is said, but that there is more.
        (
            USUAL,
            "S s A P a p+ A x A x A x A x+ A x+ ...",
            ["the server's payload sent again", "goes on for longer"],
        ),
        (
            "S s A P a p+ A x A x A x A x+ A x+ ...",
            "S s A P a p+ A+ x A+ x A x A x+ A x+ ...",
            ["several ACKs of the client"],
        ),
        ("P a p+ A p+ A p+ A p+ A p+ A p+ A p+ A ...", "P a p+ A p+ A", ["is shorter"]),
        (
            "S s A P a p+ A p+ A p+ A p+ A p+ A p+ A ...",
            "P a p+ A p+ A p+ A p+ A p+ A p+ A p+ A ...",
            ["on an open connection"],
        ),
        (USUAL, "S s A P a p+ A f F Z A", ["the client's FIN sent again"]),
        ("S s A P a p+ f F A", "S s A P a p+ A e F A", ["the server's FIN with its last payload"]),
        (
            "S s A P a p A e F a",
            "S s A P a p+ A f F a",
            ["the server's FIN in a packet of its own", "an ACK more of the client before the server's FIN"],
        ),
        ("S s A P a p+ f A F a", "S s A P a p e A F a", ["the server's FIN with its last payload"]),
        (
            "S s A P a p+ f A F a",
            "S s A P a p A e F a",
            ["the server's FIN with its last payload", "no ACK of the client before the client's FIN"],
        ),
        (USUAL, "S s A P a p+ f A F A", ["the server's FIN before the client's ACK"]),
        (USUAL, "S s A P p+ A f F A", ["no ACK of the server before the server's payload"]),
        (USUAL, "S s A P a p A f F A", ["the server's payload in one packet"]),
        (USUAL, "S s A P a R", ["the client's RST ends it", "2 ACKs fewer of the client at its end"]),
        (USUAL, "S s A P a p+ A+ f F A", ["several ACKs of the client"]),
        ("S s A P a p+ A e A F a", "S s A P a p+ e A F a", ["no ACK of the client before the server's last payload"]),
        ("S s A P a p+ A e A F a", "S s A P a p+ A e F a", ["no ACK of the client before the client's FIN"]),
        ("P p+ A", "S s A P a p+ A", ["opens the connection", "an ACK more of the server before the server's payload"]),
        ("S s A P p+ A", "P p+ A", ["on an open connection"]),
        ("P p+ A", "P p+ A F f A", ["closes the connection"]),
        ("P p+ A F f A", "P p+ A", ["leaves the connection open"]),
        (USUAL, USUAL, []),
    ],
)
def test_what_sets_a_pattern_apart_is_said(common: str, other: str, said: list[str]) -> None:
    assert difference(pattern(common), pattern(other)) == said


TOKENS = st.lists(st.sampled_from([*"SAPFERYXZsapferyxz", "A+", "p+", "x+"]), max_size=16)


@settings(max_examples=500)
@given(TOKENS, TOKENS, st.booleans(), st.booleans())
def test_whatever_patterns_there_are_something_is_said_of_each(
    one: list[str], two: list[str], one_is_cut: bool, two_is_cut: bool
) -> None:
    # What is cut has as many as are kept.
    common = [*one, *["p"] * (16 - len(one)), "..."] if one_is_cut else one
    other = [*two, *["p"] * (16 - len(two)), "..."] if two_is_cut else two
    said = difference(pattern(" ".join(common)), pattern(" ".join(other)))
    assert all(said)
    assert bool(said) == (common != other)


def test_a_sentence_names_the_commonest_and_leaves_the_rare_ones_together() -> None:
    rare = [pattern(f"S s A P a {'x ' * count}A", 0.005) for count in range(1, 5)]
    said = sentence("real", [pattern(USUAL, 0.9), pattern("S s A P a p+ f A F A", 0.08), *rare])
    assert said == (
        f"real: 90 % of requests are {USUAL}; 8 % S s A P a p+ f A F A: the server's FIN before the client's ACK; 2 % others"
    )
    assert sentence("real", [pattern(USUAL, 0.99996)]) == f"real: >99.9 % of requests are {USUAL}"
    assert sentence("real", [pattern(USUAL, 1.0)]) == f"real: 100 % of requests are {USUAL}"
