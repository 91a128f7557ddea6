"""Format ``strace``: calls one by one as strace prints them, with ``-f``, ``-ff``, ``-t`` to ``-ttt``, ``-T``, ``-Y``.

Time in calls is there with ``-T``; without it, it is null.  A file of ``-ff`` is one process; ``strace-log-merge`` makes one
trace of several.  Of errors strace prints -1 and a name.  The summary below a trace (``-C``) is left out: it counts the same.

Source: strace(1).
"""

from __future__ import annotations

import re
from functools import partial

from twinbed.imports.text.system_calls import STRACE_LINE, TraceFormat, most_lines

_WITH_TIME = re.compile(rb"<\d+\.\d+>\s*$", re.MULTILINE)


def _is_timed(head: bytes) -> bool:
    return _WITH_TIME.search(head) is not None


strace = TraceFormat(
    "strace",
    "system calls one by one, as strace prints them",
    "strace",
    partial(most_lines, STRACE_LINE),
    _is_timed,
)
