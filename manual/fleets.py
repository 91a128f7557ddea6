"""The tables of docs/scale.md: the time and cost of studies on fleets (``benchmarks/simulated/fleet.py``)."""

from __future__ import annotations

from collections.abc import Iterator
from functools import cache

from benchmarks.simulated.fleet import Plan, seconds, simulated

from manual.markdown import table
from twinbed import design, registry
from twinbed.cli.progress import duration
from twinbed.design.time import expense
from twinbed.study import loading
from twinbed.study.loading import load

MACHINES = (1, 10, 100, 1000)
STUDIES = ("offload", "icnc-2019", "nic-survey", "oversubscription", "reads-by-size")
PRICE = 0.10
"""Price of a machine for an hour."""
SEEDS_RUNS, SEEDS_BYTES, SEEDS_RUN_S = 75_000, 0.5e15, 120.0


def kinds() -> Iterator[tuple[str, Plan]]:
    """Yield kinds of runs: a name, and 75,000 runs."""
    yield "as the papers kept them: every byte", Plan(SEEDS_RUNS, 10, SEEDS_RUN_S, SEEDS_BYTES / SEEDS_RUNS)
    for name in STUDIES:
        study = load((loading.SHIPPED / f"{name}.yaml").read_text(encoding="utf-8"), f"{name}.yaml", registry.catalogue())
        runs = design.runs(study)
        whole = expense(runs)
        yield f"`{name}`", Plan(SEEDS_RUNS, len(study.cells), whole.seconds / len(runs), whole.bytes / len(runs))


@cache
def text() -> str:
    """Return the tables with the sentences between them."""
    plans = dict(kinds())
    first = [
        [name, duration(plan.run_s), _bytes(plan.run_bytes), _bytes(plan.runs * plan.run_bytes), plan.limit]
        for name, plan in plans.items()
    ]
    second = [[name, *(_duration(seconds(plan, each)) for each in MACHINES)] for name, plan in plans.items()]
    hours = {name: [each * seconds(plan, each) / 3600 for each in MACHINES] for name, plan in plans.items()}
    cost = [[name, *(f"{PRICE * each:,.0f}" for each in of)] for name, of in hours.items()]
    small = plans["`reads-by-size`"]
    took, share = simulated(small, 1000, seed=1)
    heads = ["", *(f"{each:,}" for each in MACHINES)]
    return "\n".join(
        [
            table(["a run of", "time", "bytes, at most", "of all, at most", "full first, from how many machines"], first),
            f"75,000 runs take, with {', '.join(f'{each:,}' for each in MACHINES)} machines:\n",
            table(heads, second),
            f"and cost, at {PRICE:.2f} an hour and machine:\n",
            table(heads, cost),
            f"Simulated run by run, `reads-by-size` takes {_duration(took)} on 1,000 machines; the scheduler is at work for"
            f" {share:.1%} of it.\n",
        ]
    )


def _duration(value: float) -> str:
    days = value / 86400
    return f"{days:,.0f} days" if days >= 3 else duration(value)


def _bytes(value: float) -> str:
    for unit, size in (("PB", 1e15), ("TB", 1e12), ("GB", 1e9), ("MB", 1e6)):
        if value >= size:
            return f"{value / size:.3g} {unit}"
    return f"{value / 1e3:.3g} kB"
