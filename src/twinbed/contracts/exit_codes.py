"""Exit codes. They are documented and stable: scripts depend on them."""

from __future__ import annotations

DONE = 0
SOME_FAILED = 1
"""Some runs failed, or are still to do."""
INPUT_CUT = 1
"""A file ended in the middle; the part before was read."""
NOTHING_SHARED = 1
"""Two captures have no packet in common."""
USAGE = 2
"""The command line or the study is wrong."""
PREFLIGHT = 3
"""Something needed is missing; nothing was changed."""
DIFFERENT = 4
"""Compared, and some testbed differs from the reference."""
INCONCLUSIVE = 5
"""Compared, and the data cannot tell."""
INTERRUPTED = 130
"""Stopped by the user (Ctrl-C), SIGTERM or SIGHUP; the same command goes on."""
OUTPUT_GONE = 141
"""The reader of the output has gone, as after ``| head``: the code of a program that SIGPIPE ended."""

TEXT = """\b
Exit codes:
  0    done
  1    some runs failed, a file is cut off, or captures share nothing
  2    the command line or the study is wrong
  3    something that is needed is missing
  4    compared, and some testbed is different
  5    compared, and inconclusive
  130  interrupted
  141  nobody reads the output"""
