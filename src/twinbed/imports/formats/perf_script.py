"""Format ``perf-script``: what ``perf script`` prints of a recording of ``raw_syscalls``.

Source: perf-script(1).
"""

from __future__ import annotations

import re
from functools import partial

from twinbed.imports.text.system_calls import TraceFormat, some_line

_LINE = re.compile(rb"\s(?:\[\d+\]\s+)?\d+\.\d+:\s+raw_syscalls:sys_(?:enter|exit):\s+NR ")

perf_script = TraceFormat("perf-script", "system calls that perf script prints", "perf_script", partial(some_line, _LINE))
