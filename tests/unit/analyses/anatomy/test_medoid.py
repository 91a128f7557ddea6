"""Distances of requests worked out on paper, by a search through all alignments, and requests that must not be chosen."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pytest

from twinbed.analyses.anatomy.ladders import MOST, PIECES, Timeline, chosen, distances, medoid, scale_s, timeline


def request(kinds: str, *times: float) -> Timeline:
    return timeline(kinds, np.array(times))


def distance(one: Timeline, two: Timeline, scale: float) -> float:
    found = distances([one, two], scale)
    assert found[0, 1] == found[1, 0] and found[0, 0] == 0
    return float(found[0, 1])


def alignments(one: int, two: int) -> Iterator[list[tuple[int, int]]]:
    """Every way to pair places of one sequence with places of another in order, the empty one too."""
    if not one or not two:
        yield []
        return
    yield from alignments(one - 1, two)
    for at in range(two):
        for before in alignments(one - 1, at):
            yield [*before, (one - 1, at)]


def by_search(one: Timeline, two: Timeline, scale: float) -> float:
    """The definition, without a table: the cheapest of all alignments."""
    least = float("inf")
    for pairs in alignments(len(one.kinds), len(two.kinds)):
        if all(one.kinds[i] == two.kinds[j] for i, j in pairs):
            changed = sum(abs(one.gaps_s[i] - two.gaps_s[j]) / scale for i, j in pairs)
            least = min(least, changed + len(one.kinds) + len(two.kinds) - 2 * len(pairs))
    return least


def test_distances_worked_out_on_paper() -> None:
    base = request("SsAP", 0, 1, 2, 3)
    assert distance(base, base, 1.0) == 0
    # The last packet comes 0.5 later: the time before it is changed by 0.5, at a scale of 2 for 0.25.
    assert distance(base, request("SsAP", 0, 1, 2, 3.5), 2.0) == pytest.approx(0.25)
    # The second comes 0.5 later and all after it with it: one time is changed, not three.
    assert distance(base, request("SsAP", 0, 1.5, 2.5, 3.5), 1.0) == pytest.approx(0.5)
    # An acknowledgment more, 0.25 before the payload: it is added for 1; the payload's time falls from 1 to 0.25.
    assert distance(base, request("SsAAP", 0, 1, 2, 2.75, 3), 1.0) == pytest.approx(1 + 0.75)
    # A kind is not changed into another: one is removed, one is added.
    assert distance(base, request("SsAF", 0, 1, 2, 3), 1.0) == pytest.approx(2)
    # A side is not changed into another either.
    assert distance(base, request("Ssap", 0, 1, 2, 3), 1.0) == pytest.approx(4)
    # A change that costs more than 2 is not made: the packet is removed and added.
    assert distance(base, request("SsAP", 0, 1, 2, 40), 1.0) == pytest.approx(2)
    assert distance(request("S", 0), request("SsA", 0, 1, 2), 1.0) == pytest.approx(2)


def test_distances_are_the_cheapest_of_all_alignments() -> None:
    random = np.random.default_rng(5)
    made = [
        timeline("".join(random.choice(list("SAap"), length)), np.cumsum(random.exponential(1.0, length)))
        for length in random.integers(1, 7, 12)
    ]
    found = distances(made, 0.7)
    for i, one in enumerate(made):
        for j, two in enumerate(made):
            assert found[i, j] == pytest.approx(by_search(one, two, 0.7), abs=1e-12)
    # A metric: no way over a third is shorter.
    for i in range(len(made)):
        for j in range(len(made)):
            assert (found[i, j] <= found[i] + found[:, j] + 1e-9).all()


def test_the_scale_is_the_mean_time_between_packets_of_the_median_request() -> None:
    # Means of 1, 2 and 30 s.
    assert scale_s([request("SsA", 0, 1, 2), request("Ss", 0, 2), request("Ss", 0, 30)]) == 2
    assert scale_s([request("S", 0)]) > 0


def test_a_planted_odd_request_is_never_the_medoid() -> None:
    random = np.random.default_rng(3)
    kinds = "SsAPapApAfFa"
    for _ in range(20):
        usual = [np.cumsum(random.gamma(25.0, 1 / 25, len(kinds))) for _ in range(12)]
        odd = [
            timeline("SsAPapAxpAfFa", np.cumsum(random.gamma(25.0, 1 / 25, len(kinds) + 1))),  # sent again
            timeline(kinds, np.cumsum([*random.gamma(25.0, 1 / 25, len(kinds) - 1), 40.0])),  # its last packet late
            timeline("SsAPapAr", np.cumsum(random.gamma(25.0, 1 / 25, 8))),  # reset
        ]
        place = int(random.integers(0, len(usual) + 1))
        made = [timeline(kinds, times) for times in usual]
        made[place:place] = odd
        assert medoid(made) not in range(place, place + len(odd))


def test_the_medoid_is_one_of_the_commonest_pattern_with_middling_times() -> None:
    made = [request("SsAP", 0, 1, 2, 2 + last) for last in (0.2, 0.9, 1.0, 1.1, 1.5, 5.0)]
    # Sums of the differences of the last time, each at most 2: of 1.0 they are 0.8 + 0.1 + 0.1 + 0.5, and 2; the least.
    assert medoid(made) == 2
    assert medoid(made[:1]) == 0
    with pytest.raises(ValueError, match="no request"):
        medoid([])


def test_long_runs_of_payload_are_compared_by_pieces() -> None:
    kinds = "SsAPa" + "pA" * 400 + "pfFa"
    times = np.arange(len(kinds)) * 1e-3
    long = timeline(kinds, times)
    assert long.counts.sum() == pytest.approx(len(kinds))
    assert long.gaps_s.sum() == pytest.approx(times[-1])
    # The run is from the first payload of the server to its last; five packets are before it, three after.
    assert long.kinds == "SsAPa" + "-" * PIECES + "fFa"
    assert long.counts.tolist() == pytest.approx([1] * 5 + [801 / PIECES] * PIECES + [1] * 3)
    assert long.gaps_s.tolist() == pytest.approx([0, *[1e-3] * 4, *[0.801 / PIECES] * PIECES, *[1e-3] * 3])
    fewer = timeline("SsAPa" + "pA" * 398 + "pfFa", np.arange(len(kinds) - 4) * 1e-3)
    assert distance(long, fewer, 1e9) == pytest.approx(4), "four packets fewer"
    late = timeline(kinds, times + 0.5 * (np.arange(len(kinds)) == len(kinds) - 1))
    assert distance(long, late, 1.0) == pytest.approx(0.5), "its last packet is half a second late"
    again = timeline("SsAPa" + "pA" * 200 + "x" + "pA" * 200 + "pfFa", np.arange(len(kinds) + 1) * 1e-3)
    assert again.kinds == "SsAPa" + "-" * PIECES + "Ax" + "-" * PIECES + "fFa", "what is sent again ends a run"


def test_a_sample_has_as_many_requests_of_each_run() -> None:
    runs = [0] * 500 + [1] * 40 + [2] * 5
    places = chosen(runs, seed=1, most=35)
    of = [runs[place] for place in places]
    assert (of.count(0), of.count(1), of.count(2)) == (15, 15, 5)
    assert places == sorted(set(places)) == chosen(runs, seed=1, most=35) != chosen(runs, seed=2, most=35)
    assert chosen([0, 1, 1], seed=1) == [0, 1, 2]
    assert len(chosen(runs, seed=1)) == MOST
