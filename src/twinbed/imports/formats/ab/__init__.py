"""Formats ``ab-text``, ``ab-csv`` and ``ab-tsv``: what ApacheBench prints, and what it writes with ``-e`` and ``-g``.

The metrics are the workload's ``http``.  Each file alone says less than the workload, which keeps all three:

* the text has counts and rates as the workload takes them, and times to a millisecond;
* the CSV has percentiles to a microsecond, and nothing else.  For the highest of them ab may look past its last request,
  where it finds zeros or anything else.  It is not told how many requests there were, but percentiles do not fall and none is
  above the longest, at 100 %: others are null;
* the TSV has a row a request, to a millisecond: the table ``requests``, and moments of it.

Several reports in one text are several measurements.  Counts that ab leaves out where they are 0 (other failures, answers other
than 2xx) are 0 only in a report that is whole.
Source: ab.c of Apache httpd 2.4, and ab(1).
"""

from __future__ import annotations

from twinbed.imports.formats.ab.percentiles import AbCsv
from twinbed.imports.formats.ab.report import AbText
from twinbed.imports.formats.ab.requests import AbTsv

ab_text = AbText()
ab_csv = AbCsv()
ab_tsv = AbTsv()
