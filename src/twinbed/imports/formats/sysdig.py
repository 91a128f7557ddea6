"""Format ``sysdig``: what ``sysdig -r`` prints in its own default format, events in and out.

Source: sysdig(8).
"""

from __future__ import annotations

import re
from functools import partial

from twinbed.imports.text.system_calls import TraceFormat, some_line

_LINE = re.compile(rb"^\s*\d+ (?:\d\d:\d\d:\d\d\.\d+|\d+\.\d+) \d+ .{1,128}\([0-9.:]+\) [<>] [a-z]")

sysdig = TraceFormat("sysdig", "system calls that sysdig prints", "sysdig", partial(some_line, _LINE))
