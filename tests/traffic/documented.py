"""Where twinbed differs from tcptrace on purpose, as docs/flows.md says, and how far."""

from __future__ import annotations

from decimal import Decimal

from tests.traffic.peers import Documented, Printed, Row

_WRAPPED = 1 << 32


def _wrapped(ours: object, printed: object, peer: Row, ending: str) -> bool:
    """Numbers in flight across the wrap of sequence numbers: all four columns follow one that is near 2^64."""
    extremes = (peer[f"{name}_owin{ending}"] for name in ("max", "min_non_zero"))
    return any(isinstance(each, int) and each >= _WRAPPED for each in extremes)


def _whole_byte_seconds(ours: object, printed: object, peer: Row, ending: str) -> bool:
    """tcptrace cuts each product of bytes and time to whole byte-seconds: less than one is lost by each packet."""
    if _wrapped(ours, printed, peer, ending):
        return True
    packets, elapsed = peer[f"total_packets{ending}"], peer["elapsed_time"]
    if not (isinstance(ours, float) and isinstance(printed, Printed) and isinstance(elapsed, Printed)):
        return False
    lost = Decimal(ours) - printed.value
    return -1 <= lost * elapsed.value <= Decimal(str(packets)) + elapsed.value


DOCUMENTED: Documented = {
    "wavg_owin": _whole_byte_seconds,
    "avg_owin": _wrapped,
    "max_owin": _wrapped,
    "min_non_zero_owin": _wrapped,
}

# Of stacked tags tcptrace reads nothing.
UNREADABLE = frozenset({"stacked-vlan-trunk"})
