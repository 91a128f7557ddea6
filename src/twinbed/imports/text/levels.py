"""Levels as text: which text may be a level, and which levels are numbers."""

from __future__ import annotations

import re

from twinbed.model.run import Level

RESERVED = ("testbed", "replicate", "host", "format", "snapshot")
"""Names in patterns, manifests and tables that are no factors."""
MOST_TEXT = 200
"""Characters of a level: it heads a column."""
_WHOLE = re.compile(r"-?(0|[1-9]\d{0,17})")
_DECIMAL = re.compile(r"-?(0|[1-9]\d{0,17})\.\d{1,17}")
_PADDED = re.compile(r"(-?)0+(\d{1,18}(?:\.\d{1,17})?)")
_EXPONENT = re.compile(r"-?\d(\.\d{1,17})?[eE][+-]\d{2}")
"""As C, Python and R write small or large numbers. Without a sign it may be anything, such as a commit's name."""


def is_plain(text: str) -> bool:
    """Return whether a text may be a level or a testbed's name."""
    return text.isprintable() and len(text) <= MOST_TEXT


def number_or_text(text: str) -> Level:
    """Return a number where it is written as programs write numbers (``7`` and ``1e-05``, not ``007``); else the text."""
    if _WHOLE.fullmatch(text):
        return int(text)
    return float(text) if _DECIMAL.fullmatch(text) or _EXPONENT.fullmatch(text) else text


def padded_number_or_text(text: str) -> Level:
    """Return the same for a word of a path, where leading zeros only make names sort: ``02`` is 2."""
    padded = _PADDED.fullmatch(text)
    return number_or_text(padded[1] + padded[2] if padded is not None else text)


def replicate_of(text: str) -> str | None:
    """Return a replicate's name, without leading zeros where it is a number; None for an empty text."""
    return str(int(text)) if text.isdecimal() else text or None
