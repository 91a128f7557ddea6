"""Patterns of packets: which occur, how often, and how each differs from the most common one, in words.

A request with a long silence is a pattern of its own: its last acknowledgment may come 40 ms later.  A long silence lasts at
least ``LATE_S``, and ``LATE_FOLD`` times as long as the rest of the request.  A request that is slow throughout has none.  The
least silence is shorter than Linux delays an acknowledgment (40 ms) or waits before it sends again (200 ms).
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from difflib import SequenceMatcher
from statistics import median
from typing import TYPE_CHECKING, TypeAlias

import numpy as np

from twinbed.analyses.anatomy.steps import Requests
from twinbed.show.quantities import number, share, unit_scale

if TYPE_CHECKING:
    import pyarrow as pa

LATE_S = 0.03
LATE_FOLD = 3.0
MOST = 8
"""Patterns that are kept for one testbed and cell."""
RARE = 0.01
"""A pattern of a smaller share of requests is not named."""
MOST_NAMED = 4
CUT = "..."
"""The end of a pattern with too many packets to keep."""


@dataclass(frozen=True, slots=True)
class Pattern:
    """A pattern of packets on a testbed and cell."""

    packets: str
    """Letters, with runs collapsed."""
    late: str
    """Letter of the packet after a long silence; empty without one."""
    share: float
    """The share of requests: the mean over runs of each run's share."""
    silence_s: float | None
    """The median over requests of the silence."""


Counts: TypeAlias = Mapping[tuple[str, str], Sequence[float]]
"""(packets, late) -> the silences of the requests of one run, in seconds."""


def counted(client: pa.Table, requests: Requests) -> Counts:
    """Count the patterns of the requests on one link. ``client``: the rows of ``steps`` at the client's link."""
    silences_s = np.asarray(client["silence_ns"])[requests.rows] * 1e-9
    ended_by = client["silence_ended_by"].to_pylist()
    rest = np.maximum(requests.total - silences_s, 0.0)
    late = (silences_s >= LATE_S) & (silences_s >= LATE_FOLD * rest)
    silences: dict[tuple[str, str], list[float]] = defaultdict(list)
    for pattern, row, silence_s, is_late in zip(requests.patterns, requests.rows, silences_s.tolist(), late, strict=True):
        silences[pattern, (ended_by[row] or "") if is_late else ""].append(silence_s)
    return silences


def together(links: Sequence[Counts]) -> Counts:
    """Return the counts of several links of a run as one."""
    merged: dict[tuple[str, str], list[float]] = defaultdict(list)
    for counts in links:
        for name, silences in counts.items():
            merged[name] += silences
    return merged


def occurring(runs: Sequence[Counts]) -> tuple[Pattern, ...]:
    """Return the patterns of runs, most frequent first."""
    shares: dict[tuple[str, str], float] = defaultdict(float)
    silences: dict[tuple[str, str], list[float]] = defaultdict(list)
    for counts in runs:
        whole = sum(map(len, counts.values()))
        for name, lengths in counts.items():
            shares[name] += len(lengths) / whole / len(runs)
            silences[name] += lengths
    return tuple(
        Pattern(packets, late, part, median(silences[packets, late]) if late else None)
        for (packets, late), part in sorted(shares.items(), key=lambda item: -item[1])[:MOST]
    )


def sentence(testbed: str, patterns: Sequence[Pattern]) -> str:
    """Return ``container: 92 % of requests are S s A P a p+ A f F a; 6 % the same, the client's ACK 40 ms late``."""
    return f"{testbed}: {'; '.join(_parts(patterns))}"


def _parts(patterns: Sequence[Pattern]) -> Iterator[str]:
    common, *others = patterns
    named = [other for other in others if other.share >= RARE][: MOST_NAMED - 1]
    yield f"{percent(common.share)} of requests are {common.packets}{_late(common)}"
    for pattern in named:
        if pattern.packets == common.packets:
            yield f"{percent(pattern.share)} the same{_late(pattern) or ' without the silence'}"
        else:
            yield f"{percent(pattern.share)} {pattern.packets}: {', '.join(difference(common, pattern))}"
    rest = 1 - sum(pattern.share for pattern in (common, *named))
    if rest >= RARE:
        yield f"{percent(rest)} others"


def percent(part: float) -> str:
    """Return a share of requests: ``6.2 %``, ``49 %``, ``>99.9 %``."""
    if 0.9995 <= part < 1:
        return ">99.9 %"
    return share(round(part, 3 if part < 0.1 or part > 0.99 else 2))


def _late(pattern: Pattern) -> str:
    if pattern.silence_s is None:
        return ""
    scale = unit_scale("s", [pattern.silence_s])
    return (
        f", {_whose(pattern.late)} after a silence of {number(float(f'{pattern.silence_s / scale.factor:.3g}'))} {scale.unit}"
    )


_KINDS = {
    "S": "SYN",
    "A": "ACK",
    "P": "payload",
    "F": "FIN",
    "E": "last payload",
    "R": "RST",
    "Y": "SYN",
    "X": "payload",
    "Z": "FIN",
}


def _whose(letter: str) -> str:
    side = "client's" if letter.isupper() else "server's"
    again = " sent again" if letter in "XYZxyz" else ""
    return f"the {side} {_KINDS[letter.upper()]}{again}"


def difference(common: Pattern, other: Pattern) -> list[str]:
    """Return what the other pattern has that the most common one lacks, and the reverse; empty if they are the same."""
    differences = list(_packets(common.packets.split(), other.packets.split()))
    if other.silence_s is not None:
        differences.append(_late(other).removeprefix(", "))
    return differences


def _packets(common: Sequence[str], other: Sequence[str]) -> Iterator[str]:
    if list(common) == list(other):
        return
    if ("S" in common) != ("S" in other):
        yield "opens the connection" if "S" in other else "on an open connection"
        common, other = _without_handshake(common), _without_handshake(other)
    cut = [tokens[-1:] == [CUT] for tokens in (common, other)]
    if any(cut):
        yield from _of_payload(*_as_far_as_known(common, other))
        if cut[0] != cut[1]:
            yield "goes on for longer" if cut[1] else "is shorter"
        return
    closed = [not _FINS.isdisjoint(token[0] for token in tokens) for tokens in (common, other)]
    if closed[0] != closed[1]:
        yield "closes the connection" if closed[1] else "leaves the connection open"
        common, other = _without_end(common), _without_end(other)
    yield from _of_payload(common, other)


def _as_far_as_known(common: Sequence[str], other: Sequence[str]) -> tuple[Sequence[str], Sequence[str]]:
    """Return both up to where the first of them is cut, or ends."""
    known = min(len(tokens) - (tokens[-1:] == [CUT]) for tokens in (common, other))
    return common[:known], other[:known]


_FINS = frozenset("FfEeRr")


def _without_handshake(tokens: Sequence[str]) -> Sequence[str]:
    begin = next((at for at, token in enumerate(tokens) if token[0] == "P"), 0)
    return tokens[begin:]


def _without_end(tokens: Sequence[str]) -> Sequence[str]:
    end = next((at for at, token in enumerate(tokens) if token[0] in _FINS), len(tokens))
    while end and tokens[end - 1][0] in "Aa":
        end -= 1
    return tokens[:end]


def _of_payload(common: Sequence[str], other: Sequence[str]) -> Iterator[str]:
    if list(common) == list(other):
        return
    of_common, of_other = (Counter(token[0] for token in tokens) for tokens in (common, other))
    texts = list[str]()
    for letter in "YXZyxz":
        if of_other[letter] > of_common[letter]:
            texts.append(_whose(letter))
    for letter in "Rr":
        if of_other[letter] > of_common[letter]:
            texts.append(f"{_whose(letter)} ends it")
    for fin, last, side in (("F", "E", "client"), ("f", "e", "server")):
        if of_other[last] > of_common[last]:
            texts.append(f"the {side}'s FIN with its last payload")
        elif of_common[last] > of_other[last] and of_other[fin]:
            texts.append(f"the {side}'s FIN in a packet of its own")
    if any(of_common[last] != of_other[last] for last in "Ee"):
        # Compare as if the FIN had a packet of its own in both.
        common, other = _with_fins_apart(common), _with_fins_apart(other)
    texts += _acknowledgments(common, other)
    if not texts:
        texts.append(_order(common, other))
    yield from texts


def _with_fins_apart(tokens: Sequence[str]) -> list[str]:
    """Return the tokens with each payload that has a FIN as payload and FIN, runs of payload collapsed again."""
    parts = {"E": ("P", "F"), "e": ("p", "f")}
    apart = list[str]()
    for token in (part for whole in tokens for part in parts.get(whole, (whole,))):
        before = next((at for at in reversed(range(len(apart))) if apart[at][0] not in "Aa"), None)
        if token[0] in "Pp" and before is not None and apart[before][0] == token[0]:
            apart[before:] = [f"{token[0]}+"]
        else:
            apart.append(token)
    return apart


def _acknowledgments(common: Sequence[str], other: Sequence[str]) -> Iterator[str]:
    """Yield where acknowledgments of their own are more or fewer; nothing if their number is equal."""
    of_common, of_other = ([token[0] for token in tokens] for tokens in (common, other))
    for letter, side in (("A", "client"), ("a", "server")):
        in_a_row = [sum(token == f"{letter}+" for token in tokens) for tokens in (common, other)]
        if of_common.count(letter) == of_other.count(letter):
            if in_a_row[0] != in_a_row[1]:
                yield f"{'several ACKs' if in_a_row[1] > in_a_row[0] else 'a single ACK'} of the {side}"
            continue
        for kind, begin, end, to_begin, to_end in SequenceMatcher(None, of_common, of_other, autojunk=False).get_opcodes():
            more = of_other[to_begin:to_end].count(letter) - of_common[begin:end].count(letter)
            if kind != "equal" and more:
                where = f"before {_whose(of_common[end])}" if end < len(of_common) else "at its end"
                yield f"{_amount(more)} of the {side} {where}"


def _amount(more: int) -> str:
    if abs(more) > 1:
        return f"{abs(more)} ACKs {'more' if more > 0 else 'fewer'}"
    return "an ACK more" if more > 0 else "no ACK"


def _order(common: Sequence[str], other: Sequence[str]) -> str:
    """Return the first packet that comes in another order."""
    at = next(
        (at for at, (left, right) in enumerate(zip(common, other, strict=False)) if left != right), min(len(common), len(other))
    )
    if at >= min(len(common), len(other)):
        return "cut short" if len(other) < len(common) else "with more at its end"
    usual, actual = common[at], other[at]
    if usual[0] == actual[0]:
        return f"{_whose(actual[0])} in {'several packets' if actual.endswith('+') else 'one packet'}"
    return f"{_whose(actual[0])} before {_whose(usual[0])}"
