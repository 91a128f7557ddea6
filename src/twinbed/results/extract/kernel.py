"""Messages of hosts' kernels while a run lasted, with the machine's time of each.

They come from the artifacts ``kernel.log`` (dmesg from the run's mark on) and ``kernel.clock.json``, which has how far the
machine's time of day is ahead of the kernel's (``lab/watch``).  The kernel stamps messages by its own clock, which runs from
boot as the monotonic one does, to within milliseconds; ``uncertain_s`` is how exactly the two clocks were compared.  Without
that file there are no rows.

Columns: host, time_ns, uncertain_s, text.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING

from twinbed.model.json import document, number, parsed, value_of
from twinbed.model.kernel import KERNEL_CLOCK, KERNEL_LOG

if TYPE_CHECKING:
    import pyarrow as pa

NAME = "kernel_messages"
MOST = 10_000
"""The most messages kept of a host: the last ones."""
_LINE = re.compile(r"^\[\s*(\d+\.\d+)\]\s*(.*)$")


def kernel_messages(artifacts: Path, files: Iterable[str]) -> pa.Table | None:
    """Return the messages of all hosts; None without any host's. Raises ValueError for a clock that cannot be read."""
    import pyarrow as pa

    rows: list[dict[str, object]] = []
    for name in sorted(files):
        log = artifacts.parent / name
        clock = log.with_name(KERNEL_CLOCK)
        if log.name != KERNEL_LOG or not clock.is_file() or not log.is_file():
            continue
        read = document(parsed(clock.read_bytes()))
        ahead_s, uncertain_s = value_of(read, "ahead_s", number), value_of(read, "uncertain_s", number)
        matches = map(_LINE.match, log.read_text(errors="replace").splitlines())
        for line in [match for match in matches if match][-MOST:]:
            time_ns = round((float(line[1]) + ahead_s) * 1e9)
            rows.append({"host": log.parent.name, "time_ns": time_ns, "uncertain_s": uncertain_s, "text": line[2]})
    return pa.Table.from_pylist(rows) if rows else None
