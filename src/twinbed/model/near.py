"""The likely meaning of an unknown name."""

from __future__ import annotations

import difflib
from collections.abc import Iterable, Mapping, Sequence

Near = tuple[str, ...]
MOST = 3
LIKE = 0.6
"""The least similarity of two names, as difflib's ratio."""
CLOSE = 0.1
"""Further names may be less similar than the best by at most this."""


def nearest(name: str, names: Iterable[str], also: Mapping[str, Sequence[str]] | None = None) -> Near:
    """Return the ``names`` that ``name`` most likely means, at most three; ``also`` has other words for them."""
    known: dict[str, str] = {}
    for candidate in names:
        known.setdefault(_plain(candidate), candidate)
    given = _plain(name)
    meant = [
        candidate for candidate, words in (also or {}).items() if given in map(_plain, words) and candidate in known.values()
    ]
    alike = {candidate: difflib.SequenceMatcher(None, candidate, given).ratio() for candidate in known}
    best = max(alike.values(), default=0.0)
    close = [
        known[candidate]
        for candidate in sorted(alike, key=lambda candidate: -alike[candidate])
        if alike[candidate] >= max(LIKE, best - CLOSE)
    ]
    return tuple(dict.fromkeys([*meant, *(close if not meant else ())]))[:MOST]


def _plain(name: str) -> str:
    return name.lower().replace("-", "_").replace(" ", "_")


def did_you_mean(near: Near) -> str:
    """Return a text such as ``did you mean 'a' or 'b'?``; empty without a near name."""
    if not near:
        return ""
    *others, last = map(repr, near)
    return f"did you mean {' or '.join([', '.join(others), last] if others else [last])}?"


LISTED = 20
"""The most names that a message lists."""


def instead(name: str, names: Iterable[str], also: Mapping[str, Sequence[str]] | None = None) -> str:
    """Return what to give instead of an unknown name: the likely ones, then the known ones, at most ``LISTED``."""
    known = list(dict.fromkeys(names))
    near = did_you_mean(nearest(name, known, also))
    if near and len(known) > LISTED:
        return near
    rest = len(known) - LISTED
    listed = ", ".join(known[:LISTED]) + (f" and {rest} more" if rest > 0 else "")
    return f"{near} there are: {listed or 'none'}".lstrip()
