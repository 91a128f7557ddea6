"""Writes docs/metrics.md from what the plugins declare: ``python docs/make_metrics.py``. A test holds the two together."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from twinbed import registry
from twinbed.metrics import completeness, monitor, overlap, pace, usage
from twinbed.metrics.derived import FAIRNESS, unit_of_work
from twinbed.metrics.metric import Metric

HEAD = """# Metrics

Made from the plugins' declarations by `python docs/make_metrics.py`. Units are base units. *per request*: the tables also
hold `<name>_per_request` (or the workload's own unit of work), which is what is compared. *headline*: shown without `--all`.
"""
COLUMNS = ("| metric | unit | layer | scale | | what |", "|---|---|---|---|---|---|")


def text() -> str:
    """The whole page."""
    plugins = registry.PLUGINS
    parts = [HEAD, _derived()]
    for kind, found in (
        ("workload", plugins.workloads),
        ("instrument", plugins.instruments),
        ("background load", plugins.backgrounds),
    ):
        parts += [_section(kind, plugin) for plugin in found.values()]
    known = {
        metric.name
        for found in (plugins.workloads, plugins.accompanying)
        for plugin in found.values()
        for metric in plugin.metrics
    }
    return "\n".join([*parts, _imported(known)])


def _imported(known: set[str]) -> str:
    """What formats of files made elsewhere have beside the metrics of plugins."""
    rows, names = [*COLUMNS], set(known)
    for each in registry.PLUGINS.formats.values():
        for metric in each.metrics:
            if metric.name not in names:
                rows.append(_row(metric, "headline" if metric.headline else ""))
                names.add(metric.name)
    about = "Files that were made elsewhere (docs/formats.md) give the metrics above where they are the same, and these."
    return f"## imported\n\n{about}\n\n" + "\n".join(rows) + "\n"


def _derived() -> str:
    rows = [*COLUMNS, _row(FAIRNESS, "headline"), _row(overlap.OVERLAP, "")]
    rates = "; ".join(f"`{plugin.rate}` of `{plugin.name}`" for plugin in registry.PLUGINS.workloads.values())
    about = (
        f"Of runs with two or more pairs. Fairness is over each client's own rate and missing where one is missing: {rates}."
    )
    insides = [*COLUMNS, *(_row(metric, "") for metric in pace.METRICS)]
    of_runs = (
        "Of runs whose requests are captured (instrument `packets`), or that iperf3 made: see steady.md. Missing where too "
    )
    of_runs += "little happened to show a pace."
    whole = [*COLUMNS, *(_row(metric, "") for metric in completeness.METRICS)]
    of_captures = "Of each link whose requests are captured, not encrypted, where its client counted them too."
    extra = [*COLUMNS, *(_row(metric, "headline" if metric.headline else "") for metric in monitor.EXTRA_METRICS)]
    of_monitors = "Of each link that the instrument `monitor` watches, and of the clients' together: see observer.md."
    used = [*COLUMNS, *(_row(metric, "headline" if metric.headline else "") for metric in usage.METRICS)]
    of_programs = (
        "Of every run's programs, each with all that it starts itself: the workload's apart from the instruments'. "
        "A client counts from its start to its end, a server from the start of the workload. All are divided by the work too."
    )
    texts = (
        f"## derived\n\n{about}\n",
        "\n".join(rows),
        f"\n{of_runs}\n",
        "\n".join(insides),
        f"\n{of_captures}\n",
        "\n".join(whole),
        f"\n{of_monitors}\n",
        "\n".join(extra),
        f"\n{of_programs}\n",
        "\n".join(used),
    )
    return "\n".join(texts) + "\n"


def _row(metric: Metric, marks: str) -> str:
    cells = (f"`{metric.name}`", metric.unit, metric.layer, metric.scale, marks)
    return f"| {' | '.join(cells)} | {metric.description.replace('|', chr(92) + '|')} |"


def _section(kind: str, plugin: Any) -> str:
    rows = [*COLUMNS]
    for metric in plugin.metrics:
        marks = [f"per {unit_of_work('requests')}" if metric.extensive else "", "headline" if metric.headline else ""]
        rows.append(_row(metric, ", ".join(mark for mark in marks if mark)))
    return f"## {kind} `{plugin.name}`\n\n{plugin.summary}\n\n" + "\n".join(rows) + "\n"


if __name__ == "__main__":
    (Path(__file__).parent / "metrics.md").write_text(text(), encoding="utf-8")
