"""What the anatomy says, in sentences."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from twinbed.analyses.anatomy.result import BETWEEN, TOTAL, Anatomy, Difference
from twinbed.model.run import Level
from twinbed.show.quantities import number, plus_minus, unit_scale
from twinbed.show.words import cell_title

MOST = 3
"""Steps that a sentence names."""
LEAST = 0.05
"""Share of the difference from which a step is worth naming."""


def sentences(result: Anatomy) -> Iterator[str]:
    """One for each testbed and cell: ``payload 500B: a request takes 1.9 ± 0.2 ms longer on virtio than on container, of
    which 1.2 ms are the server's (request in, first byte out), ...``"""
    if not result.differences:
        yield "Only one testbed has requests in its captures: there is nothing to compare."
    seen: list[tuple[Mapping[str, Level], str]] = []
    for each in result.differences:
        if (each.cell, each.testbed) not in seen:
            seen.append((each.cell, each.testbed))
            yield sentence(result, each.cell, each.testbed)


def sentence(result: Anatomy, cell: Mapping[str, Level], testbed: str) -> str:
    own = {each.step: each for each in result.differences if each.cell == cell and each.testbed == testbed}
    total = own.get(TOTAL)
    between = own.get(BETWEEN)
    if total is None:
        return ""
    where = f"{cell_title(cell)}: " if cell else ""
    parts = [each for step, each in own.items() if step not in (TOTAL, BETWEEN)]
    text = f"{where}a request takes {_longer(total)} on {testbed} than on {total.reference}"
    named = _named(parts, total)
    if named:
        text += f"; {_list([_part(result, each) for each in named])}"
    finer = _named(list(result.parts_of(cell, testbed).values()), total)
    if finer:
        text += f"; of the hosts' time, {_list([_part(result, each) for each in finer])}"
    if between is not None and _is_clear(between):
        text += f"; and its client {_longer(between)} between requests"
    return text + "."


def _is_clear(each: Difference) -> bool:
    """The interval of the difference does not hold 0."""
    return each.interval is not None and (each.interval.low > 0 or each.interval.high < 0)


def _longer(each: Difference) -> str:
    scale = unit_scale("s", [each.seconds])
    half = (each.interval.high - each.interval.low) / 2 / scale.factor if each.interval else None
    if not _is_clear(each):
        amount = plus_minus(each.seconds / scale.factor, half)
        return f"neither clearly longer nor shorter ({amount} {scale.unit})"
    word = "longer" if each.seconds > 0 else "shorter"
    return f"{plus_minus(abs(each.seconds) / scale.factor, half)} {scale.unit} {word}"


def _named(parts: list[Difference], total: Difference) -> list[Difference]:
    """The steps that make most of the difference, largest first."""
    whole = sum(abs(each.seconds) for each in parts)
    clear = [each for each in parts if _is_clear(each) and abs(each.seconds) >= LEAST * whole]
    return sorted(clear, key=lambda each: -abs(each.seconds))[:MOST]


def _part(result: Anatomy, each: Difference) -> str:
    scale = unit_scale("s", [each.seconds])
    sign = "more" if each.seconds > 0 else "less"
    half = (each.interval.high - each.interval.low) / 2 / scale.factor if each.interval else None
    title = result.titles.get(each.step) or _of_step(result, each.step)
    return f"{number(abs(each.seconds) / scale.factor, half)} {scale.unit} {sign} in “{title}”"


def _of_step(result: Anatomy, part: str) -> str:
    step = next(step for step, parts in result.parts.items() if part in parts)
    return f"{result.part_titles[part]}” of “{result.titles[step]}"


def _list(texts: list[str]) -> str:
    return texts[0] if len(texts) == 1 else f"{', '.join(texts[:-1])} and {texts[-1]}"
