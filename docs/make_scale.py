"""Writes the tables of docs/scale.md: what studies take on fleets (``benchmarks/simulated/fleet.py``).

python docs/make_scale.py
"""

from __future__ import annotations

import re
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path

DOCS = Path(__file__).parent
sys.path.insert(0, str(DOCS.parent))

from benchmarks.simulated.fleet import Plan, seconds, simulated  # noqa: E402

from twinbed import design, registry  # noqa: E402
from twinbed.cli.progress import duration  # noqa: E402
from twinbed.design.time import expense  # noqa: E402
from twinbed.study.loading import load  # noqa: E402

MACHINES = (1, 10, 100, 1000)
STUDIES = ("offload", "icnc-2019", "nic-survey", "oversubscription", "reads-by-size")
PRICE = 0.10
"""Of a machine for an hour."""
SEEDS_RUNS, SEEDS_BYTES, SEEDS_RUN_S = 75_000, 0.5e15, 120.0


def kinds() -> Iterator[tuple[str, Plan]]:
    """Name -> 75,000 runs of its kind."""
    yield "as the papers kept them: every byte", Plan(SEEDS_RUNS, 10, SEEDS_RUN_S, SEEDS_BYTES / SEEDS_RUNS)
    for name in STUDIES:
        study = load((DOCS.parent / f"studies/{name}.yaml").read_text(encoding="utf-8"), f"{name}.yaml", registry.catalogue())
        runs = design.runs(study)
        whole = expense(runs)
        yield f"`{name}`", Plan(SEEDS_RUNS, len(study.cells), whole.seconds / len(runs), whole.bytes / len(runs))


def tables() -> str:
    plans = dict(kinds())
    first = [
        [name, duration(plan.run_s), _bytes(plan.run_bytes), _bytes(plan.runs * plan.run_bytes), plan.limit]
        for name, plan in plans.items()
    ]
    second = [[name, *(duration_of(seconds(plan, each)) for each in MACHINES)] for name, plan in plans.items()]
    hours = {name: [each * seconds(plan, each) / 3600 for each in MACHINES] for name, plan in plans.items()}
    cost = [[name, *(f"{PRICE * each:,.0f}" for each in of)] for name, of in hours.items()]
    small = plans["`reads-by-size`"]
    took, share = simulated(small, 1000, seed=1)
    return "\n".join(
        [
            _table(
                ["a run of", "time", "bytes, at most", "of all, at most", "what is full first, from how many machines"], first
            ),
            f"\n75,000 runs take, with {', '.join(f'{each:,}' for each in MACHINES)} machines:\n",
            _table(["", *(f"{each:,}" for each in MACHINES)], second),
            f"\nand cost, at {PRICE:.2f} an hour and machine:\n",
            _table(["", *(f"{each:,}" for each in MACHINES)], cost),
            f"\nSimulated run by run, `reads-by-size` takes {duration_of(took)} on 1,000 machines; the scheduler is at work for"
            f" {share:.1%} of it.",
        ]
    )


def duration_of(value: float) -> str:
    days = value / 86400
    return f"{days:,.0f} days" if days >= 3 else duration(value)


def _bytes(value: float) -> str:
    for unit, size in (("PB", 1e15), ("TB", 1e12), ("GB", 1e9), ("MB", 1e6)):
        if value >= size:
            return f"{value / size:.3g} {unit}"
    return f"{value / 1e3:.3g} kB"


def _table(heads: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    return "\n".join(f"| {' | '.join(row)} |" for row in (heads, ["---"] * len(heads), *rows))


def page(text: str) -> str:
    """The page with its tables anew."""
    made = tables()
    return re.sub(r"(<!-- tables -->\n).*?(\n<!-- end -->)", lambda found: found[1] + made + found[2], text, flags=re.DOTALL)


if __name__ == "__main__":
    file = DOCS / "scale.md"
    file.write_text(page(file.read_text(encoding="utf-8")), encoding="utf-8")
