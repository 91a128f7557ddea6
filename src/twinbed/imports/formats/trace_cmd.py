"""Format ``trace-cmd``: what ``trace-cmd report`` prints of ``raw_syscalls``, or a trace file of tracefs itself.

Source: trace-cmd-report(1), Documentation/trace/ftrace.rst of Linux.
"""

from __future__ import annotations

import re
from functools import partial

from twinbed.imports.text.system_calls import TraceFormat, some_line

_LINE = re.compile(rb"-\d+\s.{0,80}?\s\d+\.\d+:\s+sys_(?:enter|exit):\s+NR ")

trace_cmd = TraceFormat("trace-cmd", "system calls that trace-cmd or tracefs prints", "trace_cmd", partial(some_line, _LINE))
