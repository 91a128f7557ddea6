"""The contract of every driver: hosts that run programs, keep files, reach each other, agree with what was asked, and go."""

from __future__ import annotations

import contextlib
import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.conftest import lab_remains, site_in, stays
from tests.contract import broken
from tests.remote.machines import Machines, machines
from twinbed.contracts.bed import Bed
from twinbed.contracts.place import MACHINE
from twinbed.contracts.site import Site
from twinbed.hosts.error import HostError
from twinbed.image import Image
from twinbed.lab.suite import promises, promises_of_hosts
from twinbed.model.topology import Link, Topology
from twinbed.registry import PLUGINS

TOPOLOGY = Topology(link=Link(rate=10**9))
MIXED = {"client": {"driver": "container"}, "server": {"driver": "qemu", "nic": "e1000"}}
ALONE = [name for name in PLUGINS.drivers if name != "minimega"]
"""Drivers that need no server of somebody else's; tests/minimega holds the other to the same contract."""
REAL = [name for name in ALONE if not PLUGINS.drivers[name].in_process]
BUILT = [name for name in REAL if name != "remote"]
"""Those whose links are in a lab."""


@pytest.fixture(scope="module")
def two(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Machines]:
    with machines(tmp_path_factory.mktemp("machines")) as made:
        yield made


@pytest.fixture(scope="module")
def settings(request: pytest.FixtureRequest) -> Callable[[str], dict[str, Any]]:
    """What a driver cannot do without."""
    return lambda driver: request.getfixturevalue("two").settings() if driver == "remote" else {}


@contextlib.contextmanager
def bed_of(driver: str, site: Site, topology: Topology = TOPOLOGY, **settings: object) -> Iterator[Bed]:
    plugin = PLUGINS.drivers[driver]
    if driver == "mixed":
        settings = {role: {**kind, **settings} for role, kind in MIXED.items()}
    with plugin.up(plugin.params(**settings), topology, site) as bed:
        yield bed


@pytest.fixture(scope="module", params=ALONE)
def driver_of_bed(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture(scope="module")
def site_of_bed(driver_of_bed: str, image: Image, probe: Path, tmp_path_factory: pytest.TempPathFactory) -> Site:
    return site_in(tmp_path_factory.mktemp(driver_of_bed), "test", image, probe)


@pytest.fixture(scope="module")
def bed(driver_of_bed: str, site_of_bed: Site, settings: Callable[[str], dict[str, Any]]) -> Iterator[Bed]:
    """One for all tests that leave its hosts as they were, as a guest takes seconds to boot."""
    needed = settings(driver_of_bed)
    before = lab_remains()
    with bed_of(driver_of_bed, site_of_bed, **needed) as bed:
        yield bed
    assert stays(before) == set()


def test_a_bed_is_all_that_the_contract_says(bed: Bed) -> None:
    assert broken(promises_of_hosts(bed)) == []


@pytest.mark.parametrize("driver", PLUGINS.drivers)
def test_it_keeps_its_promises(driver: str, tmp_path: Path) -> None:
    assert broken(promises("drivers", PLUGINS.drivers[driver], tmp_path)) == []


def test_artifacts_come_out(bed: Bed, site_of_bed: Site) -> None:
    server = bed.hosts["server"]
    server.write(f"{server.artifacts}/kept.bin", b"kept" * 100_000)
    place = site_of_bed.place("server")
    server.collect(place)
    assert (place / "kept.bin").read_bytes() == b"kept" * 100_000


@pytest.mark.parametrize("driver_of_bed", BUILT, indirect=True)
def test_hosts_reach_each_other_through_the_switch_only(bed: Bed) -> None:
    client, server = bed.hosts["client"], bed.hosts["server"]
    listener = server.start(["iperf3", "-s", "-1", "-p", "5000"])
    server.listening(5000, 30.0)
    # What buffers hold in the end is not waited for, so they are kept small.
    ask = ["iperf3", "-c", bed.addresses["server"], "-p", "5000", "-n", "1M", "-w", "128K", "-J"]
    sent = json.loads(client.run(ask).stdout)
    assert sent["end"]["sum_received"]["bytes"] >= 100_000
    assert listener.wait(30.0).code == 0
    routes = client.run(["ip", "route"]).text.splitlines()
    assert [line.split()[0] for line in routes] == ["10.77.0.0/24"], "a host has no way out of the lab"


@pytest.mark.parametrize("driver", REAL)
def test_settings_reach_the_hosts(
    driver: str, site: Callable[..., Site], request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> None:
    topology = Topology(link=Link(rate=123_000_000, shaper="tbf", burst=200_000, mtu=1400))
    with contextlib.ExitStack() as stack:
        # The bed of all tests may have a lease of the other two machines.
        own = machines(tmp_path_factory.mktemp("own")) if driver == "remote" else None
        needed = stack.enter_context(own).settings() if own else {}
        request.getfixturevalue("leaves_nothing")
        asked = {"offload": "off", "congestion_control": "reno", **needed}
        bed = stack.enter_context(bed_of(driver, site(), topology, **asked))
        assert [item for item in bed.applied if not item.agrees] == []
        found = {(item.subject, item.setting): item.found for item in bed.applied}
        shaper = "p.client" if driver in BUILT else "client"
        assert found[shaper, "shaper"] == "tbf"
        assert found[shaper, "rate"] == 123_000_000
        assert found["server", "mtu"] == 1400
        assert found["server", "offload.tso"] == "off"
        assert found["client", "congestion_control"] == "reno"


@pytest.mark.parametrize("driver", BUILT)
def test_a_lab_dies_with_its_stream(driver: str, site: Callable[..., Site], leaves_nothing: None) -> None:
    with pytest.raises(HostError), bed_of(driver, site()) as bed:
        bed.hosts[MACHINE].close()
        bed.hosts["client"].run(["sleep", "10"])
