"""The fake testbed: its planted response, and that it refuses what it cannot do."""

from __future__ import annotations

import json
import math
import statistics
from pathlib import Path
from typing import Any

import pytest

from twinbed.contracts.site import Site
from twinbed.hosts.error import HostError, ProgramFailed
from twinbed.image import Image
from twinbed.model.topology import Topology
from twinbed.testbeds.fake import FakeSettings, fake


def answers(tmp_path: Path, run: str = "r", count: int = 1, pairs: int = 1, **settings: Any) -> list[dict[str, float]]:
    site = Site(run, tmp_path, Image("0", tmp_path, tmp_path, "erofs", tmp_path, tmp_path, "6.1", {}), tmp_path / run, (0,))
    with fake.up(FakeSettings(**settings), Topology(pairs=pairs), site) as bed:
        client = next(host for name, host in bed.hosts.items() if name.startswith("client"))
        command = ["planted-response", "--rate", "500", "--spread", "0.1"]
        return [json.loads(client.run(command).stdout) for _ in range(count)]


def test_the_response_is_what_was_planted(tmp_path: Path) -> None:
    """Lognormal about ratio x rate: mean and deviation of 2,000 logarithms within four standard errors."""
    logs = [math.log(each["requests_per_second"] / 500) for each in answers(tmp_path, count=2_000, ratio=1.2, seed=5)]
    assert abs(statistics.mean(logs) - math.log(1.2)) < 4 * 0.1 / math.sqrt(2_000)
    assert abs(statistics.stdev(logs) - 0.1) < 4 * 0.1 / math.sqrt(4_000)


def test_without_spread_it_is_exact(tmp_path: Path) -> None:
    (answer,) = answers(tmp_path, ratio=1.2, spread=0.0)
    assert answer == {"requests": 6000, "requests_per_second": 600.0, "packets": 60_000, "bytes": 7_200_000}


def test_noise_follows_from_seed_and_run(tmp_path: Path) -> None:
    assert answers(tmp_path, seed=1) == answers(tmp_path, seed=1)
    assert len({str(answers(tmp_path, run, seed=seed)) for run in ("r", "s") for seed in (1, 2)}) == 4
    assert answers(tmp_path) != answers(tmp_path), "without a seed it is fresh every time"


def test_hosts_of_several_pairs_are_apart(tmp_path: Path) -> None:
    site = Site("r", tmp_path, Image("0", tmp_path, tmp_path, "erofs", tmp_path, tmp_path, "6.1", {}), tmp_path / "r", (0,))
    with fake.up(FakeSettings(), Topology(pairs=2), site) as bed:
        assert set(bed.hosts) == {"client1", "server1", "client2", "server2"}
        assert len(set(bed.addresses.values())) == 4
        host = bed.hosts["client1"]
        with pytest.raises(HostError, match="client1: nginx: a fake host has no such program"):
            host.run(["nginx"])
        with pytest.raises(ProgramFailed, match="client1: false: exit code 1"):
            host.run(["false"])
        with pytest.raises(HostError, match="a fake host has only"):
            host.write("/etc/passwd", b"")
        with pytest.raises(HostError, match="a fake host has no ports"):
            host.listening(80, 1.0)


@pytest.mark.parametrize("settings", [{"ratio": 0}, {"spread": -1}, {"colour": "red"}])
def test_settings_that_mean_nothing(settings: dict[str, Any]) -> None:
    with pytest.raises(ValueError, match=next(iter(settings))):
        FakeSettings(**settings)


def test_planted_features_are_shifted_alone(tmp_path: Path) -> None:
    """Means of 400 standard normal values within four standard errors; the shift is of the first feature alone."""
    site = Site("r", tmp_path, Image("0", tmp_path, tmp_path, "erofs", tmp_path, tmp_path, "6.1", {}), tmp_path / "r", (0,))
    with fake.up(FakeSettings(shift=3.0, seed=5), Topology(), site) as bed:
        command = ["planted-response", "--features", "2"]
        found = [json.loads(bed.hosts["client"].run(command).stdout)["features"] for _ in range(400)]
    for planted, values in zip((3.0, 0.0), zip(*found, strict=True), strict=True):
        assert abs(statistics.mean(values) - planted) < 4 / math.sqrt(400)
        assert abs(statistics.stdev(values) - 1) < 4 / math.sqrt(800)
