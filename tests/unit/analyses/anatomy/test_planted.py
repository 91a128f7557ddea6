"""The anatomy of made captures, in which every time was chosen: all that was planted is found, and nothing else."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import pytest

from planted import CLIENT, SERVER, Made, Planted, plant
from twinbed import _core
from twinbed.analyses.anatomy.captures import Captured, read
from twinbed.model.error import TwinbedError

SEEDS = range(12)


def written(made: Made, folder: Path) -> tuple[Path, Path]:
    files = folder / "client.pcap", folder / "server.pcap"
    for file, link in zip(files, (CLIENT, SERVER), strict=True):
        file.write_bytes(made.pcap(link))
    return files


def by_begin(found: Captured) -> list[dict[str, float]]:
    """Step -> seconds, of each request in the order of their first packets."""
    steps = found.requests.durations
    order = sorted(range(len(found.requests)), key=lambda at: int(found.requests.begins_ns[at]))
    return [{name: float(seconds[at]) for name, seconds in steps.items()} for at in order]


def agrees(steps: dict[str, float], planted: Planted) -> bool:
    return all(abs(seconds - planted.durations_ns()[name] * 1e-9) < 1e-10 for name, seconds in steps.items())


@pytest.mark.parametrize("seed", SEEDS)
def test_each_step_is_as_it_was_planted(seed: int, tmp_path: Path) -> None:
    made = plant(seed)
    found = read(*written(made, tmp_path), one_clock=True)
    rows = by_begin(found)
    assert (len(rows), found.requests.incomplete, found.requests.disordered) == (len(made.requests), 0, 0)
    for steps, planted in zip(rows, made.requests, strict=True):
        expected = planted.durations_ns()
        assert {name: round(seconds * 1e9) for name, seconds in steps.items()} == expected
        end_ns = max(planted.stations[CLIENT, "end"], planted.stations[CLIENT, "response_end"])
        assert sum(steps.values()) == pytest.approx((end_ns - planted.begin_ns) * 1e-9, abs=1e-9)


@pytest.mark.parametrize("seed", SEEDS)
def test_each_timer_is_found_and_none_invented(seed: int, tmp_path: Path) -> None:
    made = plant(seed)
    found = read(*written(made, tmp_path), one_clock=True)
    waits = Counter((kind, whose, step) for each in made.requests for kind, whose, step, _ in each.waits)
    assert {(each.kind, each.whose, each.step): each.waits for each in found.timers} == waits
    met = Counter(place for each in made.requests for place in {wait[:3] for wait in each.waits})
    for each in found.timers:
        place = (each.kind, each.whose, each.step)
        assert each.share == pytest.approx(met[place] / len(made.requests))
        planted_ns = [wait[3] for request in made.requests for wait in request.waits if wait[:3] == place]
        assert each.mean_s == pytest.approx(sum(planted_ns) / len(planted_ns) * 1e-9, abs=1e-9)


@pytest.mark.parametrize("seed", SEEDS)
def test_what_was_sent_again_lost_or_swapped_is_found(seed: int, tmp_path: Path) -> None:
    made = plant(seed)
    files = written(made, tmp_path)
    for file, side in zip(files, (CLIENT, SERVER), strict=True):
        tables, _ = _core.capture_tables(file, ["steps"])
        assert sum(tables["steps"][f"{side}_repeats"].to_pylist()) == made.repeats[side]
    paths, _ = _core.match_captures(*files)
    assert sum(paths["lost_packets"].to_pylist()) == made.lost
    assert sum(paths["reordered_packets"].to_pylist()) == made.swapped
    for invented in ("appeared_packets", "duplicated_packets", "capture_reordered_packets", "partly_lost_packets"):
        assert sum(paths[invented].to_pylist()) == 0, invented


def test_the_seeds_hold_every_kind() -> None:
    made = [plant(seed) for seed in SEEDS]
    kinds = {wait[:3] for each in made for request in each.requests for wait in request.waits}
    assert {kind for kind, _, _ in kinds} == {
        *("retransmission_timeout", "tail_loss_probe", "fast_retransmission", "nagle", "delayed_acknowledgment")
    }
    assert {step for _, _, step in kinds} == {"syn", "syn_back", "request", "transfer", "finish", "after"}
    assert sum(each.swapped for each in made) > 5


@pytest.mark.parametrize("seed", SEEDS[:4])
def test_half_captures_invent_nothing(seed: int, tmp_path: Path) -> None:
    """From the client's side alone, from the middle of connections on, cut at the end, and in one direction alone."""
    made = plant(seed)
    client, server = written(made, tmp_path)
    alone = by_begin(read(client, None, one_clock=False))
    for steps, planted in zip(alone, made.requests, strict=True):
        at = planted.stations
        assert round(steps["answer"] * 1e9) == at[CLIENT, "response"] - at[CLIENT, "request"]
        assert round(steps["transfer"] * 1e9) == at[CLIENT, "response_end"] - at[CLIENT, "response"]

    middle_ns = sorted(each.begin_ns for each in made.requests)[len(made.requests) // 2]
    client.write_bytes(made.pcap(CLIENT, since_ns=middle_ns))
    server.write_bytes(made.pcap(SERVER, since_ns=middle_ns))
    found = read(client, server, one_clock=True)
    expected = {each.begin_ns: each.durations_ns() for each in made.requests}
    # The answer to one that was sent before the capture began seems to be that to the one behind it.
    piped = {each.begin_ns for each in made.requests if each.is_piped}
    begins_ns = sorted(found.requests.begins_ns.tolist())
    known = [None if begin_ns in piped else expected.get(begin_ns) for begin_ns in begins_ns]
    under_way = [each for each in made.requests if each.begin_ns < middle_ns <= max(each.stations.values())]
    # Of what was under way it cannot be known that it began before, where its first packets were sent again.
    assert sum(begin_ns not in expected for begin_ns in begins_ns) <= len(under_way)
    exact = 0
    for steps, planted_ns in zip(by_begin(found), known, strict=True):
        if planted_ns is not None:
            assert {name: round(seconds * 1e9) for name, seconds in steps.items()} == planted_ns
            exact += 1
    assert exact == sum(each.begin_ns >= middle_ns and not each.is_piped for each in made.requests)

    for file, link in ((client, CLIENT), (server, SERVER)):
        file.write_bytes(made.pcap(link)[: -len(made.pcap(link)) // 3])
    cut = by_begin(read(client, server, one_clock=True))
    assert 0 < len(cut) < len(made.requests)
    exactly = list(expected.values())
    assert all({name: round(seconds * 1e9) for name, seconds in steps.items()} in exactly for steps in cut)

    for side in (CLIENT, SERVER):
        client.write_bytes(made.pcap(CLIENT, of=[side]))
        with pytest.raises(TwinbedError, match="no HTTP request with all its steps"):
            read(client, server, one_clock=True)
