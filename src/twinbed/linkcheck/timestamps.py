"""When packets left a shaper, and how many bytes of its rate each took; from a capture behind it.  Pure.

A shaper counts an IP packet and the 14 bytes of its Ethernet header, for every segment of a super-packet
(``statistics.physics``, SHAPER); a capture shows a super-packet once, so the headers of its other segments are added here.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from twinbed import _core

_HEADERS = ("link_header_bytes", "ip_header_bytes", "transport_header_bytes")


@dataclass(frozen=True, slots=True)
class Packets:
    """In the order of the capture: ``times_s`` from the first packet, ``sizes`` in bytes as the shaper counts them."""

    times_s: npt.NDArray[np.float64]
    sizes: npt.NDArray[np.float64]

    @property
    def seconds(self) -> float:
        return float(self.times_s[-1] - self.times_s[0]) if len(self.times_s) else 0.0

    @property
    def largest(self) -> float:
        return float(self.sizes.max()) if len(self.sizes) else 0.0


def read(capture: bytes, mtu: int) -> Packets:
    """From the bytes of a capture file. Raises ValueError where it is none."""
    frames = _core.frames(capture)
    times_ns = frames["time_ns"].to_numpy()
    sizes = frames["bytes"].to_numpy().astype(float)
    link, ip, transport = (frames[name].fill_null(0).to_numpy() for name in _HEADERS)
    headers = link + ip + transport
    joined = (transport > 0) & (sizes > mtu + link)
    segments = np.ceil((sizes - headers)[joined] / (mtu - ip - transport)[joined])
    sizes[joined] += (segments - 1) * headers[joined]
    return Packets((times_ns - times_ns[:1].sum()).astype(float) / 1e9, sizes)
