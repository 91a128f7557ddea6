"""A ladder for the terminal: a line a packet, with its time, its arrow, how long it was on its way, and the steps that it
ends."""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence

from twinbed.analyses.anatomy.ladder import Rung, band_lines, caption, label, rungs, time_text
from twinbed.analyses.anatomy.ladders import Ladder
from twinbed.analyses.anatomy.result import TOTAL, Anatomy
from twinbed.analyses.anatomy.sampled import Packet, Request
from twinbed.analyses.anatomy.steps import Seen
from twinbed.show.words import cell_title

ARROW, TIME = 42, 9
"""Characters between the lifelines, and of a time."""

MOST_SHOWN = 16
"""Lines of packets of a ladder that is shown unasked."""


def shown(result: Anatomy, *, all_of_them: bool) -> Iterator[str]:
    """Yield every ladder; unasked those of the largest difference, the reference's first, where they are short."""
    if all_of_them:
        found = list(result.ladders)
    else:
        found = _of_the_largest(result)
        if not is_short(found):
            if found:
                yield "--ladder shows a request of each testbed packet by packet."
            return
    for each in found:
        yield ""
        yield from ladder_lines(each, result.titles)
    if found:
        yield ""


def is_short(ladders: Sequence[Ladder]) -> bool:
    """Return whether there is one, and each can be shown beside other things."""
    return bool(ladders) and all(len(rungs(each.request)) <= MOST_SHOWN for each in ladders)


def ladder_lines(each: Ladder, titles: Mapping[str, str]) -> Iterator[str]:
    """Yield one ladder, below a line that says what it is."""
    yield f"{f'{cell_title(each.cell)}, ' if each.cell else ''}{caption(each)}"
    yield from lines(each.request, titles)


def _of_the_largest(result: Anatomy) -> list[Ladder]:
    """Of the cell and testbed whose request differs most from the reference's, by ratio; of the first cell without a
    reference."""
    totals = [each for each in result.differences if each.step == TOTAL and each.ratio]
    if not totals:
        return list(result.ladders_of(result.ladders[0].cell)) if result.ladders else []
    most = max(totals, key=lambda each: abs(math.log(each.ratio or 1.0)))
    pair = (most.reference, most.testbed)
    return sorted(
        (each for each in result.ladders_of(most.cell) if each.testbed in pair), key=lambda each: pair.index(each.testbed)
    )


def lines(request: Request, titles: Mapping[str, str]) -> Iterator[str]:
    """Yield one ladder, 80 characters wide but for what steps are called. ``titles``: step -> what it is."""
    of_all = rungs(request)
    right = "" if request.seen is Seen.CLIENT else "server's link"
    yield f"{'':{TIME}}  client's link{right:>{ARROW - 11}}   steps"
    ended = _ended(request, of_all)
    for at, rung in enumerate(of_all):
        first, *others = _arrows(rung, request.seen)
        notes = [f"{titles[step]}: {time_text(request.durations_ns[step])}" for step in ended[at]]
        yield f"{time_text(rung.begin_ns):>{TIME}}  {first}  {notes[0] if notes else ''}".rstrip()
        for each in others:
            yield f"{'':{TIME}}  {each}"
        for note in notes[1:]:
            yield f"{'':{TIME}}  |{'':{ARROW}}|  {note}"


def _ended(request: Request, of_all: tuple[Rung, ...]) -> Mapping[int, list[str]]:
    """Which rung's packet ends which steps; the last span of each, which is the last to end."""
    found: dict[int, list[str]] = defaultdict(list)
    for step, span in {span.step: span for span in request.spans}.items():
        at = max(
            (at for at, rung in enumerate(of_all) if rung.begin_ns <= span.end_ns),
            key=lambda at: of_all[at].begin_ns,
            default=0,
        )
        found[at].append(step)
    return found


def _arrows(rung: Rung, seen: Seen) -> list[str]:
    if rung.is_band:
        return [f":{line:^{ARROW}}:" for line in band_lines(rung.packets)]
    return [_arrow(rung.packets[0], seen)]


def _arrow(packet: Packet, seen: Seen) -> str:
    text = label(packet)
    if packet.arrived_ns is not None and packet.was_seen_sent:
        text += f", {time_text(max(0, packet.arrived_ns - packet.sent_ns))}"
    elif seen is not Seen.CLIENT:
        text += ", lost" if packet.was_seen_sent else ", not seen when sent"
    shown = f" {text[: ARROW - 6]} "
    return f"|{f'--{shown}':-<{ARROW - 1}}>|" if packet.from_client else f"|<{f'{shown}--':->{ARROW - 1}}|"
