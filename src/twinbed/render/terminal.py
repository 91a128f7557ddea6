"""The terminal that text is written for: how wide it is, and what it cannot show.

Colours are rich's matter: none where standard output is no terminal, or NO_COLOR is set.
"""

from __future__ import annotations

import codecs
import os
import sys
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from rich.console import Console

WIDTH = 80
"""Columns where there is no terminal to ask, and COLUMNS does not say."""
PLAIN = {
    **dict(zip("≠–±µ×→≤≥…", ("x", "-", "+-", "u", "x", "->", "<=", ">=", "..."), strict=True)),
    **dict(zip("░│├┤─●◄►━", ".|||-o<>-", strict=True)),
}
"""Characters of our texts -> what stands for them where they are lacking; those of pictures are as wide as they were."""
_ERRORS = "twinbed-plain"


def console() -> Console:
    """Standard output, as wide as its terminal."""
    from rich.console import Console

    return Console(width=None if sys.stdout.isatty() or os.environ.get("COLUMNS") else WIDTH)


def make_plain_where_needed() -> None:
    """What an output's encoding does not have is written as PLAIN has it, or as a question mark."""
    codecs.register_error(_ERRORS, _plain)
    for stream in (sys.stdout, sys.stderr):
        if (reconfigure := getattr(stream, "reconfigure", None)) and not _is_unicode(stream.encoding):
            reconfigure(errors=_ERRORS)


def _is_unicode(encoding: str) -> bool:
    return encoding.lower().startswith("utf")


def _plain(error: UnicodeError) -> tuple[str, int]:
    if not isinstance(error, UnicodeEncodeError):
        raise error
    lacking = error.object[error.start : error.end]
    return "".join(PLAIN.get(character, "?") for character in lacking), error.end
