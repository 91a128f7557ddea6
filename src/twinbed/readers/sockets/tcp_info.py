"""struct tcp_info of linux/tcp.h: where its fields are, in which unit, and which of their values say that nothing is known.

The structure grows at its end. A kernel that is older than a field gives fewer bytes, and the field is null. The comments give
the version of Linux whose structure first ended with or after the field.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

MICROSECOND_S = 1e-6
BITS = 8
INFINITE_SSTHRESH = 0x7FFFFFFF
"""TCP_INFINITE_SSTHRESH of include/net/tcp.h: no loss was seen yet."""
NO_RTT = 0
NO_MIN_RTT = 0xFFFFFFFF
UNLIMITED = 0xFFFFFFFFFFFFFFFF
NO_RATE = 0
"""tcp_compute_delivery_rate of net/ipv4/tcp.c: there is no estimate."""

STATES = {1: "established", 4: "fin_wait1", 5: "fin_wait2", 8: "close_wait", 9: "last_ack", 11: "closing"}
"""include/net/tcp_states.h"""
CA_STATES = {0: "open", 1: "disorder", 2: "cwr", 3: "recovery", 4: "loss"}
"""enum tcp_ca_state"""

Numbers = npt.NDArray[np.float64]
Bytes = npt.NDArray[np.uint8]


@dataclass(frozen=True, slots=True)
class Field:
    """An unsigned number."""

    offset: int
    bytes: int
    scale: float | None = None
    """What makes it a value in our unit; None where it is a count."""
    unknown: int | None = None
    """The value, or the least of those, that stands for none."""
    end: int | None = None
    """Where the structure must reach for it to be known, where that is not its own end."""

    def read(self, infos: Bytes) -> tuple[npt.NDArray[np.uint64], npt.NDArray[np.bool_]]:
        """Raw values, and whether each is known, of a matrix with a row a tcp_info."""
        count, length = infos.shape
        if length < (self.end or self.offset + self.bytes):
            return np.zeros(count, np.uint64), np.zeros(count, np.bool_)
        raw = np.ascontiguousarray(infos[:, self.offset : self.offset + self.bytes])
        values = raw.view(f"<u{self.bytes}").reshape(count).astype(np.uint64)
        if self.unknown is None:
            return values, np.ones(count, np.bool_)
        known = values != self.unknown if self.unknown == 0 else values < self.unknown
        return values, known


STATE = Field(0, 1)
CA_STATE = Field(1, 1)
FLAGS = Field(7, 1, end=168)
"""Its lowest bit is delivery_rate_app_limited, which came with delivery_rate into a byte that was there."""
APP_LIMITED = 0x01

FIELDS: Mapping[str, Field] = {
    "cwnd": Field(80, 4),
    "ssthresh": Field(76, 4, unknown=INFINITE_SSTHRESH),
    "srtt_s": Field(68, 4, MICROSECOND_S, NO_RTT),
    "rttvar_s": Field(72, 4, MICROSECOND_S),
    "rto_s": Field(8, 4, MICROSECOND_S),
    "unacked": Field(24, 4),
    "sacked": Field(28, 4),
    "lost": Field(32, 4),
    "retrans": Field(36, 4),
    "snd_mss_bytes": Field(16, 4),
    "advmss_bytes": Field(84, 4),
    "pmtu_bytes": Field(60, 4),
    "reordering": Field(88, 4),
    "rcv_space_bytes": Field(96, 4),
    "total_retrans": Field(100, 4),
    "pacing_rate": Field(104, 8, BITS, UNLIMITED),  # 3.15
    "bytes_acked": Field(120, 8),  # 4.1
    "bytes_received": Field(128, 8),
    "segs_out": Field(136, 4),  # 4.2
    "segs_in": Field(140, 4),
    "notsent_bytes": Field(144, 4),  # 4.6
    "min_rtt_s": Field(148, 4, MICROSECOND_S, NO_MIN_RTT),
    "data_segs_in": Field(152, 4),
    "data_segs_out": Field(156, 4),
    "delivery_rate": Field(160, 8, BITS, NO_RATE),  # 4.9
    "busy_s": Field(168, 8, MICROSECOND_S),  # 4.10
    "rwnd_limited_s": Field(176, 8, MICROSECOND_S),
    "sndbuf_limited_s": Field(184, 8, MICROSECOND_S),
    "delivered": Field(192, 4),  # 4.18
    "delivered_ce": Field(196, 4),
    "bytes_sent": Field(200, 8),  # 4.19
    "bytes_retrans": Field(208, 8),
    "dsack_dups": Field(216, 4),
    "reord_seen": Field(220, 4),
    "rcv_ooopack": Field(224, 4),  # 5.4
    "snd_wnd_bytes": Field(228, 4),
}


def numbers(field: Field, infos: Bytes) -> Numbers:
    """In our units; NaN where it is not known."""
    values, known = field.read(infos)
    return np.where(known, values.astype(np.float64) * (field.scale or 1.0), np.nan)
