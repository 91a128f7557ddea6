"""Which hosts of a run are drawn: the same whenever it is planned again, others for others, each set of so many as likely."""

from __future__ import annotations

from collections import Counter
from math import comb

import pytest

from twinbed import design, registry
from twinbed.model.drawn import Drawn, size
from twinbed.study.document import StudyError
from twinbed.study.loading import load
from twinbed.study.run import Run


def runs(hosts: str = "random 10 %", pairs: int = 20, replicates: int = 2, seed: int = 1, factors: str = "") -> list[Run]:
    text = f"""
study: sampled
testbeds: {{bed: {{driver: container}}}}
workload: {{kind: http}}
topology: {{pairs: {pairs}}}
instruments: {{packets: {{{hosts and f"hosts: {hosts}"}}}}}
factors: {{testbed: [bed]{factors}}}
replicates: {replicates}
seed: {seed}
"""
    return list(design.runs(load(text, "sampled.yaml", registry.catalogue())))


def test_a_run_that_is_planned_again_has_the_same_hosts_and_another_seed_has_others() -> None:
    first = [design.drawn(run)["packets"] for run in runs(replicates=10)]
    assert first == [design.drawn(run)["packets"] for run in runs(replicates=10)]
    grown = {run.id: design.drawn(run)["packets"] for run in runs(replicates=30)}
    assert [grown[run.id] for run in runs(replicates=10)] == first, "a study that grows keeps what it drew"
    assert [design.drawn(run)["packets"].pairs for run in runs(replicates=10, seed=2)] != [each.pairs for each in first]
    assert len({each.pairs for each in first}) > 5, "each run has a draw of its own"


def test_both_hosts_of_a_drawn_pair_are_in_it() -> None:
    (run, *_) = runs()
    drawn = design.drawn(run)["packets"]
    assert (len(drawn.pairs), drawn.of, drawn.seed) == (2, 20, 1)
    assert set(drawn.pairs) < set(run.topology.names())
    assert drawn.hosts == {host for pair in drawn.pairs for host in pair} and len(drawn.hosts) == 4


def test_every_set_of_pairs_is_as_likely_as_any_other() -> None:
    """2 of 5 pairs are 10 sets. Pearson's statistic of 9 degrees of freedom is below 27.9 in 999 of 1000 draws (R: qchisq)."""
    counts = Counter(design.drawn(run)["packets"].pairs for run in runs("random 40%", pairs=5, replicates=3000))
    assert len(counts) == comb(5, 2)
    assert sum((count - 300) ** 2 / 300 for count in counts.values()) < 27.9


@pytest.mark.parametrize(
    ("share", "of", "drawn"),
    [(0.1, 80, 8), (0.1, 81, 9), (0.1, 16, 2), (0.1, 1, 1), (0.01, 80, 2), (1.0, 80, 80), (0.07, 100, 7)],
)
def test_a_share_is_rounded_up_to_two_at_least(share: float, of: int, drawn: int) -> None:
    """0.07 x 100 as a double is above 7, and seven are drawn all the same."""
    assert size(share, of) == drawn


def test_nothing_is_drawn_where_all_are_asked_for() -> None:
    (run, *_) = runs("all")
    assert design.drawn(run) == {}


def test_all_changes_no_runs_identity_and_may_be_a_level() -> None:
    assert [run.id for run in runs("all")] == [run.id for run in runs("")]
    levels = runs("", factors=", instruments.packets.hosts: [all, random 10 %]")
    assert [bool(design.drawn(run)) for run in sorted(levels, key=lambda run: str(run.levels))[-2:]] == [True, True]
    assert len({run.cell for run in levels}) == 2


def test_one_share_is_one_level_however_it_is_written() -> None:
    with pytest.raises(StudyError, match="means the same"):
        runs("", factors=", instruments.packets.hosts: [random 10 %, random 0.1]")


@pytest.mark.parametrize("hosts", ["random", "10 %", "random 0", "random 200 %", "some", "3", "[client1]"])
def test_what_says_no_hosts_is_refused_with_what_would(hosts: str) -> None:
    with pytest.raises(StudyError, match="random 10 %"):
        runs(hosts)


def test_a_sample_is_kept_and_read_as_it_was() -> None:
    (run, *_) = runs()
    drawn = design.drawn(run)["packets"]
    assert Drawn.from_json(drawn.to_json()) == drawn
    for wrong in ({"of": 1}, {"pairs": []}, {"pairs": [drawn.to_json()["pairs"][0]] * 2}):  # type: ignore[index]
        with pytest.raises(ValueError, match="were drawn of"):
            Drawn.from_json({**drawn.to_json(), **wrong})


def test_disk_falls_with_the_share() -> None:
    (all_of, *_), (tenth, *_) = runs("all", pairs=80), runs(pairs=80)
    of_workload = design.run_expense(all_of).bytes - 160 * _of_a_link(all_of)
    assert design.run_expense(tenth).bytes - of_workload == 16 * _of_a_link(all_of)


def _of_a_link(run: Run) -> int:
    per_second = run.instruments["packets"].params.estimate_bytes(10_000_000_000)
    return round(per_second * run.workload.params.estimate_seconds())
