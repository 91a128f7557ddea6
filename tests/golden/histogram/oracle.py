"""Prints hdrhistogram.json: HdrHistogram_py 0.10.8, 1 to 10^13 ns, three significant digits."""

import json
import sys

from hdrh.histogram import HdrHistogram

VALUES = [1, 2, 1023, 1024, 2046, 2047, 2048, 2049, 2050, 4094, 4095, 4096, 4099, 4100, 8191, 8192, 8200, 999_999, 10**6]
VALUES += [1_000_511, 10**9, 10**9 + 262_143, 123_456_789_012]
histogram = HdrHistogram(1, 10**13, 3)
buckets = [
    [value, histogram.get_lowest_equivalent_value(value), histogram.get_highest_equivalent_value(value)] for value in VALUES
]
state = 12345
for _ in range(20_000):
    state = (state * 6364136223846793005 + 1442695040888963407) % 2**64
    histogram.record_value(int(200_000 / (1.000001 - (state >> 11) / 2**53) ** 0.7))
percentiles = {str(share): histogram.get_value_at_percentile(share) for share in (1, 10, 50, 90, 99, 99.9)}
filled = sum(1 for _ in histogram.get_recorded_iterator())
json.dump({"buckets": buckets, "percentiles": percentiles, "buckets_filled": filled}, sys.stdout)
