"""Building the image: the first time, and when it is there."""

from __future__ import annotations

import tempfile
import time

from benchmarks import Figure, twinbed


def run() -> list[Figure]:
    with tempfile.TemporaryDirectory(prefix="twinbed-bench-") as cache:
        first = _build_s(cache)
        again = [_build_s(cache) for _ in range(5)]
    return [
        Figure("image build, first", first, (first, first), "s", 180.0),
        Figure("image build, again", sorted(again)[2], (min(again), max(again)), "s", 1.0),
    ]


def _build_s(cache: str) -> float:
    began = time.perf_counter()
    twinbed("image", "build", env={"TWINBED_CACHE": cache})
    return time.perf_counter() - began
