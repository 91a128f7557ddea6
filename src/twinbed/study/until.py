"""``replicates`` of a study file where it is a mapping: a study that goes on until its verdicts are reached."""

from __future__ import annotations

from twinbed.model.interim import UntilDecided
from twinbed.study.document import Entries
from twinbed.study.params import Section
from twinbed.study.problem import Problem
from twinbed.study.study import Order


def read_until(root: Entries, order: Order | None, problems: list[Problem]) -> UntilDecided | None:
    """Of the study ``root``; None where ``replicates`` is no mapping or is wrong, which is appended to ``problems``.

    ``order`` is None where it is wrong itself.
    """
    node = root.entries.get("replicates")
    if not isinstance(node, Entries):
        return None
    section = Section("replicates", UntilDecided, node)
    problems.extend(section.unknown_keys())
    until = section.check({}, problems)
    if not isinstance(until, UntilDecided):
        return None
    if until.most <= until.least:
        place, message = node.entries["most"].place, f"{until.most} is not more than least"
        problems.append(Problem.at(place, "replicates.most", message, f"more than {until.least}"))
    if order not in (None, Order.RANDOMIZED_BLOCKS):
        message = f"{order} has no blocks to stop after, which replicates with least and most need"
        problems.append(Problem.at(root.entries["order"].place, "order", message, Order.RANDOMIZED_BLOCKS.value))
    return until
