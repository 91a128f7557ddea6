"""The page of the papers' printed tables, and of what is found in them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator

from manual.markdown import table
from twinbed.model.result import Verdict
from twinbed.published.audit import audit
from twinbed.published.printed import library
from twinbed.published.replay import replay
from twinbed.published.replayed import Status
from twinbed.published.verdicts import compare

READING = """## How the tables were read

A row of data is one printed number: labels, metric, kind (mean, interval half-width, standard deviation, F, ...), unit and
digits as printed. A number stands for everything that rounds to it: 0.024 for 0.0235 to 0.0245. A result computed from such
numbers is a range, over all inputs that round to the printed ones. A printed result *differs* only if it is outside of that
range. Whole counts are exact. A displayed equation is compared with its digits as displayed; if inputs before rounding would
give its result, the finding says so. A test searches the texts, if they are at hand, for every row and for every sentence
that is compared with the tables.

Where the texts leave a choice, they were read as follows:
"""

SIZES = """- 1MB and 16MB are read as 2^20 and 2^24 bytes. If they were 10^6 and 1.6 x 10^7, no rate of ICNC-I would be above
  what the link carries; the findings say so. The physical rate, 112 requests a second, is 99.8 % of the link's limit by the
  first reading, and 95 % by the second.
- The standard deviations of throughput in ONL-2 are read as those of all flows of all replications, over n or n - 1. All four
  values of fairness with 10 flows then follow, but for rows other than their own. If the deviations were those of the ten flows
  of a run with 9 as the divisor, one of the four, 0.999, would follow for its own row, and the other three still would not.
- In ONL-2 ten flows share one link of 10 Gbps: 9 x 1020 Mbps is below its limit, 9415 Mbps, and not flagged.
- "Significant impact", "13% drop" is read as: there is a drop of 13 %, and no larger one. "virtio drops by 5%" as: every change
  of virtio rounds to that. "Similar", without a number, as the paper's own rule: within 10 %. "5-13% decrease, varies
  by workload/testbed" as: every change from ICNC-III to ICNC-I and II lies between the two.
- The runs that the cap ended are those of normal runs whose mean and interval are the printed ones: more than 5 % of them.
"""


def text() -> str:
    """Return the tables, how they were read, and what does not follow."""
    return "\n".join([*_tables(), READING, *_notes(), SIZES, *_replayed(), *_findings(), *_verdicts()])


def _tables() -> Iterator[str]:
    yield "## What is in it\n"
    found = library()
    yield table(
        ("source", "what", "by", "number or date"),
        [(source.id, source.title, source.authors, source.number or source.date) for source in found.sources.values()],
    )
    yield table(
        ("table", "page", "n", "cells", "caption"),
        [(each.id, each.page, each.n, len(each.cells), each.caption) for each in found.tables.values()],
    )
    yield "Pages are those of the report's own list of tables; the other texts have none. *n*: values behind a printed number."
    yield "ICNC-F1 is Figure 1, whose probabilities the text gives.\n"


def _notes() -> Iterator[str]:
    for each in library().tables.values():
        notes = "; ".join(filter(None, (each.note, each.n_said and f"n: {each.n_said}")))
        if notes:
            yield f"- {each.id}: {notes}."


def _replayed() -> Iterator[str]:
    yield "## Recomputed numbers\n"
    counts: dict[str, Counter[Status]] = {}
    for row in replay(library()):
        counts.setdefault(row.table if row.table in library().tables else "text", Counter())[row.status] += 1
    heads = (Status.EQUAL, Status.ROUNDING, Status.DIFFERS, Status.DERIVED)
    yield table(("table", *heads), [(name, *(count[status] or None for status in heads)) for name, count in counts.items()])
    yield "*derived*: computed where no printed number exists for comparison, such as goodput from request rates.\n"


def _findings() -> Iterator[str]:
    findings = audit(library())
    facts = len({finding.fact for finding in findings})
    yield f"## What does not follow: {facts} findings in {len(findings)} places\n"
    yield "Places of one finding have one cause, and its number.\n"
    for rule in dict.fromkeys(finding.rule for finding in findings):
        yield f"### {rule[0].upper()}{rule[1:]}\n"
        rows = [
            (
                str(each.fact),
                " ".join(filter(None, (each.table or each.source, each.cell))),
                each.printed,
                each.follows,
                each.arithmetic,
                each.changes,
            )
            for each in findings
            if each.rule == rule
        ]
        yield table(("finding", "where", "printed", "follows", "arithmetic", "changes"), rows)


def _verdicts() -> Iterator[str]:
    yield "## Virtual compared with physical\n"
    yield "Cells of each table: within 10 % by means alone (the papers' rule); by verdict where n and a spread are printed.\n"
    rows = compare(library())
    groups = dict.fromkeys((row.table, row.testbed) for row in rows)
    lines = []
    for name, testbed in groups:
        own = [row for row in rows if (row.table, row.testbed) == (name, testbed)]
        verdicts = Counter(row.verdict for row in own)
        within = sum(row.within_rule is True for row in own)
        lines.append((name, testbed, len(own), within, *(verdicts[each] or None for each in (*Verdict, None))))
    yield table(("table", "testbed", "cells", "within 10 %", *map(str, Verdict), "no interval"), lines)
