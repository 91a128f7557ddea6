"""The one writer of texts: all text for a terminal or a plain file goes through here.

Names, reasons and versions come from hosts and from files of strangers. Characters that a terminal obeys, or that a reader
cannot see, are written as escapes (``\\x1b``, ``\\u202e``). These are control, format and bidirectional characters, line
separators, unassigned code points, and the lone surrogates of names that are not UTF-8. Styles are applied after that
(``render/terminal``). Only newlines, tabs and spaces are layout.
"""

from __future__ import annotations

import codecs
import json
import os
import re
import shutil
import sys
import unicodedata
from typing import IO, TextIO

WIDTH = 80
"""Columns where there is no terminal and no COLUMNS."""
NARROWEST, WIDEST = 40, 1000
"""Limits of the columns for which a text is laid out, whatever COLUMNS says."""
PLAIN = {
    **dict(zip("≠–±µ×→≤≥…", ("x", "-", "+-", "u", "x", "->", "<=", ">=", "..."), strict=True)),
    **dict(zip("░│├┤─●◄►━", ".|||-o<>-", strict=True)),
}
"""Characters of our texts -> replacements for encodings without them; those of pictures keep their width."""
STANDARD_OUTPUT = "standard output"
_ERRORS = "twinbed-plain"
_SUSPECT = re.compile(r"[^\n\t -~]")
"""All characters that may need an escape; most texts have none."""
_BREAKS = str.maketrans({"\n": "\\n"})
_TABS = str.maketrans({"\t": "\\t"})


def visible(text: str) -> str:
    r"""Return the text with an escape for each character that is not printed as itself; newlines and tabs stay.

    >>> print(visible("a\x1b[2Jb\u202ec"))
    a\x1b[2Jb\u202ec
    """
    return _SUSPECT.sub(_escaped, text)


def one_line(text: str) -> str:
    r"""Return the text as one line without tabs, for a cell, a heading or a sentence.

    >>> print(one_line("a\nb"))
    a\nb
    """
    return visible(text).translate(_BREAKS).translate(_TABS)


def _escaped(match: re.Match[str]) -> str:
    character = match.group()
    if character.isprintable() or unicodedata.category(character) == "Zs":
        return character
    code = ord(character)
    return f"\\x{code:02x}" if code < 0x100 else f"\\u{code:04x}" if code < 0x10000 else f"\\U{code:08x}"


def everywhere(data: object) -> object:
    """Return JSON data with every text in it, keys too, made ``visible``: for programs that such characters would crash."""
    if isinstance(data, str):
        return visible(data)
    if isinstance(data, dict):
        return {visible(key) if isinstance(key, str) else key: everywhere(value) for key, value in data.items()}
    if isinstance(data, list | tuple):
        return [everywhere(item) for item in data]
    return data


def as_json(data: object, indent: int | None = 1, *, allow_nan: bool = True) -> str:
    r"""Return JSON that holds the same data, with JSON's own escapes where ``visible`` escapes.

    >>> print(as_json("\x9b\u202e\U000e0041"))
    "\u009b\u202e\udb40\udc41"
    """
    return _SUSPECT.sub(_json_escaped, json.dumps(data, indent=indent, ensure_ascii=False, allow_nan=allow_nan))


def _json_escaped(match: re.Match[str]) -> str:
    character = match.group()
    return character if _escaped(match) == character else json.dumps(character)[1:-1]


def say(*lines: str, err: bool = False) -> None:
    """Print each text as one line, on standard output, or on standard error with ``err``."""
    say_text("".join(f"{line.translate(_BREAKS)}\n" for line in lines), err=err)


def say_text(text: str, *, err: bool = False) -> None:
    """Print a text of several lines as it is laid out."""
    stream: TextIO = sys.stderr if err else sys.stdout
    try:
        stream.write(visible(text))
        stream.flush()
    except OSError as error:
        error.filename = error.filename or ("standard error" if err else STANDARD_OUTPUT)
        raise


def say_progress(what: str, done: int, total: int, of: str = "", *, stays: bool = False) -> None:
    """Print ``done`` of ``total`` over the previous line, if standard error is a terminal. At the end the line is erased unless
    it ``stays``."""
    if not sys.stderr.isatty():
        return
    sys.stderr.write(f"\r{one_line(f'{what}: {done} of {total} {of}'.rstrip())}")
    if done >= total:
        sys.stderr.write("\n" if stays else f"\r{'':<60}\r")
    sys.stderr.flush()


def say_error(message: str, advice: str = "", *, before: str = "twinbed: ") -> None:
    """Print an error and its advice on standard error. Later lines are indented, so none looks like another message."""
    first, *rest = message.split("\n")
    say(f"{before}{first}", *(f"  {line}" for line in rest), *(f"  {line}" for line in advice.split("\n") if line), err=True)


def columns(stream: IO[str] | None = None) -> int:
    """Return the columns for which a text is laid out: of the stream's terminal, or COLUMNS, within limits."""
    asked = (stream or sys.stdout).isatty() or os.environ.get("COLUMNS")
    wide = shutil.get_terminal_size((WIDTH, 24)).columns if asked else WIDTH
    return max(NARROWEST, min(WIDEST, wide))


def make_plain_where_needed() -> None:
    """Replace characters that an output's encoding lacks by those of PLAIN, or by a question mark."""
    codecs.register_error(_ERRORS, _plain)
    for stream in (sys.stdout, sys.stderr):
        if (reconfigure := getattr(stream, "reconfigure", None)) and not _is_unicode(stream.encoding):
            reconfigure(errors=_ERRORS)


def _is_unicode(encoding: str) -> bool:
    return encoding.lower().startswith("utf")


def _plain(error: UnicodeError) -> tuple[str, int]:
    if not isinstance(error, UnicodeEncodeError):
        raise error
    missing = error.object[error.start : error.end]
    return "".join(PLAIN.get(character, "?") for character in missing), error.end
