"""``python -m benchmarks [NAME ...]``: run each ``bench_*.py`` (or those named), print a table.

A benchmark is a module with a docstring and ``run() -> list[Figure]``.  Ends with 1 where a limit is not kept.
"""

from __future__ import annotations

import importlib
import sys
from pathlib import Path

from rich.console import Console
from rich.table import Table

from benchmarks import Figure


def main(names: list[str]) -> int:
    there = sorted(path.stem.removeprefix("bench_") for path in Path(__file__).parent.glob("bench_*.py"))
    if unknown := set(names) - set(there):
        sys.stderr.write(f"no benchmark {', '.join(sorted(unknown))}; there are {', '.join(there)}\n")
        return 2
    console = Console()
    figures: list[Figure] = []
    for name in names or there:
        console.print(f"{name} ...", style="dim")
        figures.extend(importlib.import_module(f"benchmarks.bench_{name}").run())
    table = Table("what", "measured", "from", "to", "promised", "")
    for one in figures:
        numbers = [f"{number:.3g} {one.unit}" for number in (one.value, *one.spread)]
        limit = "" if one.limit is None else f"at most {one.limit:g} {one.unit}"
        limit = limit if one.least is None else f"at least {one.least:.3g} {one.unit}"
        table.add_row(one.what, *numbers, limit, "" if one.kept else "NOT KEPT")
    console.print(table)
    return 0 if all(one.kept for one in figures) else 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
