"""Format ``perf-data``: what ``perf record -e 'raw_syscalls:*'`` writes, of a file or a pipe, compressed (``-z``) too.

A recording without those events has no system call, and is refused.

Source: tools/perf/Documentation/perf.data-file-format.txt of Linux.
"""

from __future__ import annotations

from functools import partial

from twinbed.imports.text.system_calls import TraceFormat, begins

perf_data = TraceFormat("perf-data", "system calls recorded by perf record", "perf_data", partial(begins, b"PERFILE2"))
