"""``keep`` of a study file where it is a mapping: a word for the artifacts of each plugin."""

from __future__ import annotations

from collections.abc import Sequence

from twinbed.model.keep import DEFAULT, Keep, Word
from twinbed.model.near import nearest
from twinbed.study.document import Entries, Node, Scalar
from twinbed.study.params import shown
from twinbed.study.problem import Problem, listed

KEEP = "keep"


def read_keep(root: Entries, names: Sequence[str], problems: list[Problem]) -> Keep | None:
    """What the study ``root`` keeps of the artifacts of the plugins ``names``; None where ``keep`` is no mapping. What is wrong
    is appended to ``problems``."""
    node = root.entries.get(KEEP)
    if not isinstance(node, Entries):
        return None
    of: dict[str, Word] = {}
    known = [*names, DEFAULT]
    for name, value in node.entries.items():
        key = f"{KEEP}.{name}"
        if name not in known:
            message = "is no instrument, workload or background load of this study"
            problems.append(Problem.at(node.keys[name], key, message, listed(known), nearest(name, known)))
        else:
            of[name] = _word(value, key, problems)
    default = of.pop(DEFAULT, Word.EVERYTHING)
    return Keep(default, {name: word for name, word in of.items() if word is not default})


def _word(node: Node, key: str, problems: list[Problem]) -> Word:
    given = node.value if isinstance(node, Scalar) else None
    if isinstance(given, str) and given in list(Word):
        return Word(given)
    message = f"{shown(given)} is not known" if isinstance(node, Scalar) else "is no single value"
    problems.append(Problem.at(node.place, key, message, listed(Word), nearest(str(given), map(str, Word))))
    return Word.EVERYTHING
