"""One-way delays and two clocks a second time: owping's records, powstream's histograms, the bounds of irtt's stamps.

As docs/latency.md has it: a probe there bounds the server's clock less the client's from above, one back from below; the slope
is the one with which the distance between the lower and the upper line is largest.  Here it is found by exact arithmetic on
whole nanoseconds, from one pair of bounds to the next.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from fractions import Fraction
from pathlib import Path
from statistics import median
from typing import Any

Sums = dict[str, str]


def owping(case: Path) -> Iterator[Sums]:
    """Of ``-R`` alone: number, sent, 1, error, received (32 bits of a second's fraction), 1, error, TTL; the first answer."""
    (file,) = case.glob("input*")
    first: dict[str, int] = {}
    for number, sent, received in re.findall(r"^(\d+) (\d{20}) \d \S+ (\d{20}) \d \S+ \d+$", file.read_text(), re.M):
        if int(received):
            first.setdefault(number, round((int(received) - int(sent)) * 10**9 / 2**32))
    if not first:
        yield {}
        return
    ns = sorted(first.values())
    place = 95 * (len(ns) - 1)
    low, high = ns[place // 100], ns[min(place // 100 + 1, len(ns) - 1)]
    p95 = f"({low}+{place % 100}/100*({high}-{low}))"
    middle = f"({ns[(len(ns) - 1) // 2]}+{ns[len(ns) // 2]})/2"
    yield {
        "one_way_delay_min": f"{ns[0]}*1e-9",
        "one_way_delay_max": f"{ns[-1]}*1e-9",
        "one_way_delay_mean": f"({'+'.join(map(str, ns))})/{len(ns)}*1e-9",
        "one_way_delay_median": f"{middle}*1e-9",
        "one_way_delay_p95": f"{p95}*1e-9",
        "jitter": f"({p95}-{middle})*1e-9",
        "delay_variation_p95": f"({p95}-{ns[0]})*1e-9",
    }


def powstream(case: Path) -> Iterator[Sums]:
    """A quantile is the bucket in which so many packets are reached."""
    (file,) = case.glob("input*")
    for part in file.read_text().split("SUMMARY\t")[1:]:
        about = dict(re.findall(r"^(\w+)\t([\d.]+)$", part, re.M))
        sums: Sums = {"probes_sent": about["SENT"], "probe_duplicates": about["DUPS"]}
        if "LOST" in about:
            sums |= {"probes_received": f"{about['SENT']}-{about['LOST']}", "probe_loss": f"{about['LOST']}/{about['SENT']}"}
        histogram = part.partition("<BUCKETS>")[2].partition("</BUCKETS>")[0]
        buckets = [(int(bucket), int(count)) for bucket, count in re.findall(r"(-?\d+)\t(\d+)", histogram)]
        width = about.get("BUCKET_WIDTH") or about["BUCKETWIDTH"]
        sums["jitter"] = f"({reached(buckets, 0.95)}-({reached(buckets, 0.5)}))*{width}"
        yield sums


def reached(buckets: list[tuple[int, int]], share: float) -> int:
    so_far, all_ = 0, sum(count for _, count in buckets)
    for bucket, count in sorted(buckets):
        so_far += count
        if so_far >= share * all_:
            return bucket
    raise ValueError(buckets)


def clocks(trips: list[dict[str, Any]]) -> Sums:
    """The offset is of the wall clocks, at the middle of the time in which probes were sent."""
    sent = [trip["timestamps"]["client"]["send"]["monotonic"] for trip in trips]
    stamps = [trip["timestamps"] for trip in trips if trip["lost"] == "false"]
    begin = min(sent)
    above: list[tuple[int, int]] = []
    below: list[tuple[int, int]] = []
    apart = []
    for each in stamps:
        client, server = each["client"], each["server"]
        went, came = client["send"]["monotonic"], client["receive"]["monotonic"]
        above.append((went - begin, server["receive"]["monotonic"] - went))
        below.append((came - begin, server["send"]["monotonic"] - came))
        walls = [stamp["wall"] - stamp["monotonic"] for stamp in (server["receive"], client["send"])]
        apart.append(walls[0] - walls[1])
    one, two = widest(above, below)
    # With a drift d the lines are (server less client) - d*(time): the gap of a pair of bounds is its height + d*(its time).
    heights = [f"({high[1]}-({low[1]}))" for high, low in (one, two)]
    times = [f"({low[0]}-{high[0]})" for high, low in (one, two)]
    drift = f"(({heights[1]}-{heights[0]})/({times[0]}-{times[1]}))"
    high, low = one
    middle = f"(({high[1]}+{low[1]})-{drift}*({high[0]}+{low[0]}))/2"
    return {
        "clock_drift": f"{drift}*1e6",
        "clock_offset_bound": f"({heights[0]}+{drift}*{times[0]})/2*1e-9",
        "clock_offset": f"({middle}+{drift}*{max(sent) - begin}/2+({median(apart)}))*1e-9",
    }


Bounds = tuple[tuple[int, int], tuple[int, int]]
"""(time, server less client) from above, and the same from below."""


def widest(above: list[tuple[int, int]], below: list[tuple[int, int]]) -> tuple[Bounds, Bounds]:
    """The two pairs of bounds between which the gap is largest."""

    def narrowest(drift: Fraction) -> Bounds:
        return min(above, key=lambda at: at[1] - drift * at[0]), max(below, key=lambda at: at[1] - drift * at[0])

    def gap(bounds: Bounds, drift: Fraction) -> Fraction:
        high, low = bounds
        return high[1] - low[1] + drift * (low[0] - high[0])

    rising, falling = narrowest(Fraction(-1)), narrowest(Fraction(1))
    while True:
        drift = Fraction(
            (falling[0][1] - falling[1][1]) - (rising[0][1] - rising[1][1]),
            (rising[1][0] - rising[0][0]) - (falling[1][0] - falling[0][0]),
        )
        found = narrowest(drift)
        if gap(found, drift) == gap(rising, drift):
            return rising, falling
        if found[1][0] > found[0][0]:
            rising = found
        else:
            falling = found


READERS = {"owping": owping, "powstream": powstream}
