"""Which CPUs hosts are given."""

from __future__ import annotations

import pytest

from twinbed.contracts.host_settings import Cpus, LabHostSettings
from twinbed.hosts.error import HostError
from twinbed.links.lab_bed import Pins, Wants, pins
from twinbed.model.caution import Kind
from twinbed.model.topology import Topology


def pinned(cpus: Cpus, available: tuple[int, ...], pairs: int = 1, each: int = 1) -> Pins:
    topology = Topology(pairs=pairs)
    hosts = {host: Wants(LabHostSettings(cpus=cpus), each) for pair in topology.names() for host in pair}
    return pins(hosts, topology, available)


def test_a_pair_that_shares_is_on_the_same_cpu_and_the_next_pair_on_the_next() -> None:
    assert pinned("shared", (0, 1)).cpus == {"client": (0,), "server": (0,)}
    assert pinned("shared", (0, 1), pairs=2).cpus == {"client1": (0,), "server1": (0,), "client2": (1,), "server2": (1,)}
    assert pinned("shared", (0, 1, 2), each=2).cpus == {"client": (0, 1), "server": (0, 1)}


def test_without_sharing_each_host_has_its_own() -> None:
    assert pinned("auto", (0, 1)).cpus == {"client": (0,), "server": (1,)}
    left = pinned("none", (1, 0))
    assert (left.cpus, left.used) == ({}, {"client": (0, 1), "server": (0, 1)})


def test_cautions_are_of_what_was_not_asked_for() -> None:
    """Two hosts of a pair on one CPU were asked for; two pairs on one were not."""
    assert pinned("shared", (0,)).cautions((0,)) == []
    (few,) = pinned("shared", (0,), pairs=2).cautions((0,))
    assert (few.kind, few.detail) == (Kind.SHARED_CPU, "4 hosts need 2 CPUs for themselves, and there are 1")
    assert [each.kind for each in pinned("none", (0, 1)).cautions((0, 1))] == [Kind.UNPINNED]


def test_a_pair_shares_as_a_whole_or_not_at_all() -> None:
    hosts = {"client": Wants(LabHostSettings(cpus="shared"), 1), "server": Wants(LabHostSettings(), 1)}
    with pytest.raises(HostError, match="client and server: give cpus: shared to both hosts of a pair, or to neither"):
        pins(hosts, Topology(), (0, 1))
