"""One link's capture as a monitor reads it: with checksums ignored, and checked."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from twinbed import _core
from twinbed.metrics.metric import Value
from twinbed.metrics.monitor import value

if TYPE_CHECKING:
    import pyarrow as pa

TRANSPORTS = ("tcp", "udp", "icmp", "icmpv6")


@dataclass(frozen=True, slots=True)
class Monitored:
    """``ignoring`` and ``strict`` are connection logs; ``summary`` is the first one's."""

    link: str
    ignoring: pa.Table
    strict: pa.Table
    summary: _core.LogSummary

    @property
    def seconds(self) -> float | None:
        """Return the time from the first packet to the last; None without two times."""
        first, last = self.summary["first_ns"], self.summary["last_ns"]
        return None if first is None or last is None or last == first else (last - first) / 1e9

    @property
    def arp_frames(self) -> int:
        return sum(count for kind, count in self.summary["not_ip"].items() if kind in ("arp", "rarp"))

    @property
    def other_frames(self) -> int:
        """Count frames that are neither ARP's nor of a protocol with connections."""
        return sum(self.summary["not_ip"].values()) - self.arp_frames + sum(self.summary["skipped"].values())


def read(path: Path, link: str) -> Monitored:
    """Read a capture. Raises OSError or ValueError where it cannot be read at all."""
    ignoring, summary = _core.connection_log([path], ignore_checksums=True)
    strict, _ = _core.connection_log([path], unfinished_are_bad=True)
    return Monitored(link, ignoring, strict, summary)


def values(monitored: Sequence[Monitored], host: str) -> Iterator[Value]:
    """Yield the values of some links together."""
    yield value("monitored_connections", sum(link.ignoring.num_rows for link in monitored), host)
    yield value("strict_connections", sum(link.strict.num_rows for link in monitored), host)
    lost = sum(_complete(link.ignoring) - _complete(link.strict) for link in monitored)
    yield value("connections_lost_to_checksums", lost, host)
    of = _verdicts(monitored)
    verifiable = of["good"] + of["bad"] + of["partial"]
    yield value("invalid_checksum_share", _share(of["bad"] + of["partial"], verifiable), host)
    yield value("broken_checksum_share", _share(of["bad"], verifiable), host)
    yield value("unverifiable_checksum_share", _share(of["not_checked"], verifiable + of["not_checked"]), host)


def _complete(log: pa.Table) -> int:
    import pyarrow.compute as pc

    opened_and_closed = pc.and_(pc.equal(log["protocol"], "tcp"), pc.equal(log["state"], "SF"))
    return int(pc.sum(opened_and_closed, min_count=0).as_py())


def _verdicts(monitored: Sequence[Monitored]) -> Mapping[str, int]:
    checksums = [link.summary["checksums"][name] for link in monitored for name in TRANSPORTS]
    return {
        "good": sum(checksum["good"] for checksum in checksums),
        "bad": sum(checksum["bad"] for checksum in checksums),
        "partial": sum(checksum["partial"] for checksum in checksums),
        "not_checked": sum(checksum["not_checked"] for checksum in checksums),
    }


def _share(part: int, whole: int) -> float | None:
    return part / whole if whole else None
