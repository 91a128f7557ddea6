"""What is done to twinbed while it works, on purpose, and counted: signals at every phase, full disks, faults amid runs.

python -m benchmarks.campaign --kills 1000 --seed 1            signals, on each driver in turn
python -m benchmarks.campaign --environment 100                disks, memory, clocks, a second controller
python -m benchmarks.campaign --faults 20                      of each kind amid runs: are they found, and nothing else?
python -m benchmarks.campaign --kills 1000 --seed 1 --only 17  one case again

It works in namespaces of its own (root), so that what a case leaves behind is told from all else on the machine.
"""

from __future__ import annotations

from scipy.special import ndtri


def wilson(count: int, total: int) -> tuple[float, float]:
    """95 % interval of a share (Wilson 1927)."""
    if not total:
        return 0.0, 1.0
    z = float(ndtri(0.975))
    share = count / total
    middle = (share + z * z / (2 * total)) / (1 + z * z / total)
    half = z / (1 + z * z / total) * (share * (1 - share) / total + z * z / (4 * total * total)) ** 0.5
    return max(0.0, middle - half), min(1.0, middle + half)


def table(*rows: tuple[object, ...]) -> str:
    """In Markdown; the first row is its head."""
    head, *others = rows
    return "".join(f"| {' | '.join(map(str, row))} |\n" for row in (head, ("---",) * len(head), *others))
