# /// script
# requires-python = ">=3.11"
# dependencies = ["pyte>=0.8.2"]
# ///
"""Draw docs/film.svg, a film of a session, from docs/film.cast: ``uv run manual/draw_film.py``.

pyte is the terminal: it turns cursor movements into a screen. A picture is taken whenever the screen has changed and stays so
for a moment; pauses are shortened. Pictures are next to each other, and CSS moves them past the window, so that a browser
suffices. Browsers that ask for no motion show the last picture. A line is drawn once, however many pictures show it.
"""

from __future__ import annotations

import html
import itertools
import json
from collections.abc import Iterator, Sequence
from pathlib import Path

import pyte

CAST = Path(__file__).parents[1] / "docs/film.cast"
WIDTH, HEIGHT, FONT_SIZE = 8.4, 18, 14
"""Pixels of a character."""
MARGIN = 14
MOST_S, LAST_S = 1.2, 6.0
"""How long a picture is shown at most, and the last one."""
STEP_S = 0.4
"""Pictures that are shown more briefly are left out."""
BACKGROUND, FOREGROUND = "#16191d", "#d8dee4"
COLOURS = {
    "black": "#5c6370",
    "red": "#ef6b73",
    "green": "#8fce7a",
    "brown": "#e0b35a",
    "blue": "#6cb2f5",
    "magenta": "#c98fe6",
    "cyan": "#57c4cf",
    "white": "#e6e9ed",
}

Line = tuple[tuple[int, str, str, bool], ...]
"""Runs of one style: column, text, colour, bold."""


def pictures(cast: Path) -> tuple[list[tuple[Sequence[Line], float]], int, int]:
    """Return the screens with the seconds that each is shown for, and the terminal's columns and rows."""
    header, *events = (json.loads(line) for line in cast.read_text().splitlines())
    columns, rows = header["width"], header["height"]
    screen = pyte.Screen(columns, rows)
    stream = pyte.Stream(screen)
    shown: list[tuple[Sequence[Line], float]] = []
    waited = 0.0
    for (at, _, text), (until, *_) in itertools.pairwise([*events, [events[-1][0] + LAST_S, "", ""]]):
        stream.feed(text)
        waited += min(until - at, MOST_S)
        if waited >= STEP_S:
            lines = [line(screen, row) for row in range(rows)]
            shown.append((lines, waited))
            waited = 0.0
    merged: list[tuple[Sequence[Line], float]] = []
    for lines, seconds in shown:
        if merged and merged[-1][0] == lines:
            merged[-1] = lines, min(merged[-1][1] + seconds, MOST_S)
        else:
            merged.append((lines, seconds))
    merged[-1] = merged[-1][0], LAST_S
    return merged, columns, rows


def line(screen: pyte.Screen, row: int) -> Line:
    cells = [(column, screen.buffer[row][column]) for column in range(screen.columns)]
    runs: list[tuple[int, str, str, bool]] = []
    for (colour, bold), group in itertools.groupby(cells, key=lambda cell: (cell[1].fg, cell[1].bold)):
        inside = list(group)
        text = "".join(character.data for _, character in inside)
        begin = len(text) - len(text.lstrip(" "))
        if text.strip():
            runs.append((inside[0][0] + begin, text.strip(" "), colour, bold))
    return tuple(runs)


def drawn(runs: Line, name: str) -> str:
    return f'<g id="{name}">' + "".join(texts(runs)) + "</g>"


def texts(runs: Line) -> Iterator[str]:
    for column, text, colour, bold in runs:
        fill = "" if colour == "default" else f' fill="{COLOURS.get(colour, f"#{colour}")}"'
        weight = ' font-weight="bold"' if bold else ""
        width = f' textLength="{len(text) * WIDTH:.1f}" lengthAdjust="spacingAndGlyphs"'
        yield f'<text x="{column * WIDTH:.1f}"{width}{fill}{weight}>{html.escape(text, quote=False)}</text>'


def svg(shown: Sequence[tuple[Sequence[Line], float]], columns: int, rows: int) -> str:
    width, height = columns * WIDTH + 2 * MARGIN, rows * HEIGHT + 2 * MARGIN
    names: dict[Line, str] = {}
    strip = []
    for number, (lines, _) in enumerate(shown):
        uses = "".join(
            f'<use href="#{names.setdefault(each, f"l{len(names)}")}" y="{(row + 1) * HEIGHT - 4}"/>'
            for row, each in enumerate(lines)
            if each
        )
        strip.append(f'<g transform="translate({number * width:.1f} 0)">{uses}</g>')
    total = sum(seconds for _, seconds in shown)
    begins = itertools.accumulate((seconds for _, seconds in shown), initial=0.0)
    frames = "".join(
        f"{100 * begin / total:.3f}%{{transform:translateX(-{number * width:.1f}px)}}"
        for number, (begin, _) in enumerate(zip(begins, shown, strict=False))
    )
    last = f"translateX(-{(len(shown) - 1) * width:.1f}px)"
    style = (
        f"text{{white-space:pre}}#film{{transform:{last};animation:film {total:.1f}s step-end infinite}}"
        f"@keyframes film{{{frames}100%{{transform:{last}}}}}"
        "@media (prefers-reduced-motion:reduce){#film{animation:none}}"
    )
    defined = "\n".join(drawn(runs, name) for runs, name in names.items())
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width:.1f} {height}" width="{width:.0f}" height="{height}" '
        f'font-family="DejaVu Sans Mono,Menlo,Consolas,monospace" font-size="{FONT_SIZE}" fill="{FOREGROUND}">\n'
        f"<title>A session of twinbed in a terminal</title>\n<style>{style}</style>\n<defs>\n{defined}\n</defs>\n"
        f'<rect width="100%" height="100%" rx="8" fill="{BACKGROUND}"/>\n'
        f'<svg x="{MARGIN}" y="{MARGIN}" width="{columns * WIDTH:.1f}" height="{rows * HEIGHT}">'
        f'<g id="film">\n' + "\n".join(strip) + "\n</g></svg>\n</svg>\n"
    )


if __name__ == "__main__":
    CAST.with_suffix(".svg").write_text(svg(*pictures(CAST)))
