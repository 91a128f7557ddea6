"""Writes docs/metrics.md from what the plugins declare: ``python docs/make_metrics.py``. A test holds the two together."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from twinbed import registry
from twinbed.extract.derived import unit_of_work

HEAD = """# Metrics

Made from the plugins' declarations by `python docs/make_metrics.py`. Units are base units. *per request*: the tables also
hold `<name>_per_request` (or the workload's own unit of work), which is what is compared. *headline*: shown without `--all`.
"""


def text() -> str:
    """The whole page."""
    plugins = registry.PLUGINS
    parts = [HEAD]
    for kind, found in (("workload", plugins.workloads), ("instrument", plugins.instruments)):
        parts += [_section(kind, plugin) for plugin in found.values()]
    return "\n".join(parts)


def _section(kind: str, plugin: Any) -> str:
    rows = ["| metric | unit | layer | scale | | what |", "|---|---|---|---|---|---|"]
    for metric in plugin.metrics:
        marks = [f"per {unit_of_work('requests')}" if metric.extensive else "", "headline" if metric.headline else ""]
        cells = (f"`{metric.name}`", metric.unit, metric.layer, metric.scale, ", ".join(mark for mark in marks if mark))
        rows.append(f"| {' | '.join(cells)} | {metric.description.replace('|', chr(92) + '|')} |")
    return f"## {kind} `{plugin.name}`\n\n{plugin.summary}\n\n" + "\n".join(rows) + "\n"


if __name__ == "__main__":
    (Path(__file__).parent / "metrics.md").write_text(text(), encoding="utf-8")
