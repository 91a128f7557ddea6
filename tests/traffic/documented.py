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


def _last_of_one_number(ours: object, printed: object, peer: Row, ending: str) -> bool:
    """Of segments of one number tcptrace keeps the last alone, also where there are no others."""
    samples = peer[f"rtt_samples{ending}"]
    return peer[f"rtt_full_sz_smpls{ending}"] == 1 and isinstance(samples, int) and samples > 1


def _one_number_is_longest(ours: object, printed: object, peer: Row, ending: str) -> bool:
    """Built for 64 bits, it takes a SYN or FIN for longer than all other segments."""
    return peer[f"syn_pkts_sent{ending}"] != 0 or peer[f"fin_pkts_sent{ending}"] != 0


_FULL_SIZE = tuple(f"rtt_full_sz_{each}" for each in ("smpls", "min", "max", "avg", "stdev"))

DOCUMENTED: Documented = {
    **dict.fromkeys(_FULL_SIZE, _last_of_one_number),
    "wavg_owin": _whole_byte_seconds,
    "avg_owin": _wrapped,
    "max_owin": _wrapped,
    "min_non_zero_owin": _wrapped,
}

# As above, of the build for 64 bits, which is the one installed.
INSTALLED: Documented = DOCUMENTED | dict.fromkeys(_FULL_SIZE, _one_number_is_longest)

# Of stacked tags tcptrace reads nothing.
UNREADABLE = frozenset({"stacked-vlan-trunk"})
