"""What a host counts of dropped segments, and when an unanswered connection is one of unfinished checksums."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import pytest

from twinbed.contracts.bed import Bed
from twinbed.hosts.error import HostError
from twinbed.links.checksums import Unfinished, dropped, hold

# Copied from a Linux 6.1 guest that had dropped three segments.
SNMP = """Ip: Forwarding DefaultTTL InReceives
Ip: 2 64 31
Tcp: RtoAlgorithm RtoMin RtoMax MaxConn ActiveOpens PassiveOpens AttemptFails EstabResets CurrEstab InSegs OutSegs RetransSegs InErrs OutRsts InCsumErrors
Tcp: 1 200 120000 -1 0 0 0 0 0 3 0 0 3 0 3
Udp: InDatagrams NoPorts InErrors OutDatagrams RcvbufErrors SndbufErrors InCsumErrors IgnoredMulti MemErrors
Udp: 0 0 0 0 0 0 0 0 0
"""  # noqa: E501


@dataclass
class PlayedHost:
    name: str
    bed: dict[str, Any]
    answered: bool = True
    drops: int = 0
    """Segments that it drops whenever it is asked."""
    counts: bool = True
    snmp: list[int] = field(default_factory=lambda: [3])

    def read(self, path: str) -> bytes:
        if not self.counts:
            raise HostError(f"{self.name}: reading {path}: no such file")
        return SNMP.replace(" 0 3\n", f" 0 {self.snmp[0]}\n").encode()

    def reaches(self, address: str, limit_s: float) -> bool:
        asked = next(host for host in self.bed.values() if f"10.0.0.{host.name}" == address)
        asked.snmp[0] += asked.drops
        return self.bed[asked.name].answered is True


def bed(**of_two: Any) -> Bed:
    hosts: dict[str, Any] = {}
    hosts |= {"1": PlayedHost("1", hosts), "2": PlayedHost("2", hosts, **of_two)}
    addresses = {name: f"10.0.0.{name}" for name in hosts}
    return Bed(hosts=hosts, addresses=addresses, targets=[], applied=[], passport={})


def test_what_the_kernel_counts() -> None:
    assert dropped(bed().hosts["2"]) == 3
    assert dropped(bed(counts=False).hosts["2"]) is None


def test_who_does_not_answer_and_has_dropped_segments_got_them_unfinished() -> None:
    said = r"^1: TCP segments arrive at 2 with incomplete checksums \(2 dropped, by /proc/net/snmp there\).* Set tx: off for"
    with pytest.raises(Unfinished, match=said):
        hold(bed(answered=False, drops=2), [("1", "2")])
    with pytest.raises(Unfinished, match=r"^1: TCP segments arrive at 2"):
        hold(bed(answered=False, drops=2), [("2", "1")])


@pytest.mark.parametrize("of_two", [{}, {"answered": False}, {"drops": 1}, {"answered": False, "counts": False}])
def test_a_firewall_or_a_damaged_segment_is_another_matter(of_two: dict[str, Any]) -> None:
    hold(bed(**of_two), [("1", "2")])
