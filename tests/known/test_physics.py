"""What a link can carry, against exact fractions worked out by hand from the standards' header sizes.

Ethernet (IEEE 802.3): 14 + 4 around a packet, at least 64, and 8 + 12 between frames. 802.1Q: 4 more. IPv4 20, IPv6 40, TCP 20
and 12 of timestamps, UDP 8.
"""

from __future__ import annotations

import doctest
from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from twinbed.statistics import physics
from twinbed.statistics.physics import Accounting, Path, tcp_goodput, transactions

GIGABIT = 10**9
paths = st.builds(
    Path,
    mtu=st.integers(576, 9000),
    ip_version=st.sampled_from([4, 6]),
    timestamps=st.booleans(),
    vlan_tags=st.integers(0, 2),
    accounting=st.sampled_from(Accounting),
)


@pytest.mark.parametrize(
    ("path", "share"),
    [
        (Path(), Fraction(1448, 1538)),
        (Path(timestamps=False), Fraction(1460, 1538)),
        (Path(ip_version=6), Fraction(1428, 1538)),
        (Path(ip_version=6, timestamps=False), Fraction(1440, 1538)),
        (Path(vlan_tags=1), Fraction(1448, 1542)),
        (Path(vlan_tags=2), Fraction(1448, 1546)),
        (Path(mtu=9000), Fraction(8948, 9038)),
        (Path(accounting=Accounting.SHAPER), Fraction(1448, 1514)),
        (Path(accounting=Accounting.SHAPER, vlan_tags=1), Fraction(1448, 1514)),
    ],
)
def test_tcp(path: Path, share: Fraction) -> None:
    assert tcp_goodput(GIGABIT, path) == pytest.approx(float(share * GIGABIT), rel=1e-15)


def test_the_fields_known_figures() -> None:
    assert f"{tcp_goodput(GIGABIT) / 1e6:.1f}" == "941.5"
    assert f"{tcp_goodput(GIGABIT, Path(accounting=Accounting.SHAPER)) / 1e6:.1f}" == "956.4"


def test_acknowledgements_cost_only_where_the_rate_is_shared() -> None:
    # An acknowledgement is 20 + 20 + 12 in a frame of 70, and 20 around it: 90.
    assert tcp_goodput(GIGABIT, segments_per_acknowledgement=2) == pytest.approx(
        float(Fraction(2 * 1448, 2 * 1538 + 90) * GIGABIT)
    )
    # Without timestamps 40 are padded to 46: 64 + 20 = 84.
    plain = tcp_goodput(GIGABIT, Path(timestamps=False), segments_per_acknowledgement=1)
    assert plain == pytest.approx(float(Fraction(1460, 1538 + 84) * GIGABIT))


def test_transactions() -> None:
    # 1 MiB is 724 segments of 1448 and one of 224: 724 x 1538 + 224 + 52 + 38 = 1,113,826 bytes.
    assert transactions(GIGABIT, 2**20) == pytest.approx(GIGABIT / 8 / 1_113_826)
    # 500 bytes after 250 of headers: 750 + 52 + 38 = 840 one way, a request of 80 the other: 170.
    assert transactions(GIGABIT, 500, response_headers=250, request=80) == pytest.approx(GIGABIT / 8 / 840)
    # A connection of its own: two bare segments of 84 bytes each way.
    own = transactions(GIGABIT, 500, response_headers=250, request=80, new_connection=True)
    assert own == pytest.approx(GIGABIT / 8 / (840 + 168))
    # On a shared rate both ways count, and an acknowledgement (90) for each two segments.
    shared = transactions(GIGABIT, 500, response_headers=250, request=80, segments_per_acknowledgement=2)
    assert shared == pytest.approx(GIGABIT / 8 / (840 + 170 + 45))
    # Where the request is the larger part, its way is the limit.
    assert transactions(GIGABIT, 0, request=1448) == pytest.approx(GIGABIT / 8 / 1538)


@given(paths, st.integers(1, 70_000))
def test_no_payload_is_carried_faster_than_the_rate(path: Path, payload: int) -> None:
    assert 0 < tcp_goodput(GIGABIT, path, segments_per_acknowledgement=2) < tcp_goodput(GIGABIT, path) < GIGABIT
    assert transactions(GIGABIT, payload, path) * 8 * payload <= tcp_goodput(GIGABIT, path) * (1 + 1e-12)


@given(st.integers(576, 8999), st.sampled_from([4, 6]))
def test_larger_packets_carry_more_and_tags_less(mtu: int, version: int) -> None:
    small, large = Path(mtu=mtu, ip_version=version), Path(mtu=mtu + 1, ip_version=version)
    assert tcp_goodput(GIGABIT, small) < tcp_goodput(GIGABIT, large)
    assert tcp_goodput(GIGABIT, Path(mtu=mtu, ip_version=version, vlan_tags=1)) < tcp_goodput(GIGABIT, small)


def test_its_examples() -> None:
    assert doctest.testmod(physics).failed == 0
