"""Patterns that read factors out of paths: ``{testbed}_{direction}_parallel-{parallel:int}_{replicate:int}.txt``.

``{name}`` is a word, ``{name:int}`` a whole number, ``{name:float}`` any number, ``{_}`` a word that means nothing; ``{{`` and
``}}`` are braces.  A word never holds a slash.  A pattern with n slashes is compared with the last n + 1 parts of a path.

A path is read from its end: a word begins where the text before it in the pattern last comes.  Where a path has more
separators than the pattern, the first word has the rest: ``{testbed}_{peer}_{direction}`` reads ``docker_nat_host_send`` as
docker_nat, host, send.  Only where that fails is a path read from its beginning.  Where the two differ, both are reported.

Words are matched possessively, so that the time a pattern takes grows with the length of a path and no faster.  A regular
expression of a user's own may backtrack without end: it is given a limit of CPU time.
"""

from __future__ import annotations

import contextlib
import re
import signal
import threading
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import pairwise

from twinbed.imports.layout.names import shown
from twinbed.imports.layout.run_key import FileKey, ImportRefused, NotAssigned, snapshot_of
from twinbed.imports.text.levels import RESERVED, is_plain, padded_number_or_text, replicate_of
from twinbed.model.near import did_you_mean, nearest
from twinbed.model.run import Level
from twinbed.study.document import listed

TYPES = {"int": r"[+-]?\d{1,18}+", "float": r"[+-]?\d{1,18}+(?:\.\d{1,18}+)?(?:[eE][+-]?\d{1,3}+)?", "word": ""}
_FROM_END = {"int": r"\d{1,18}+[+-]?", "float": r"(?:\d{1,3}+[+-]?[eE])?(?:\d{1,18}+\.)?\d{1,18}+[+-]?", "word": ""}
"""The same of text whose characters are in reverse order."""
REGEX_CPU_SECONDS = 10.0
"""The limit for all paths together; a regular expression without nested repetitions takes microseconds a path."""
_FIELD = re.compile(r"\{([^{}:]*)(?::([^{}]*))?\}")
_NAME = re.compile(r"[A-Za-z][A-Za-z0-9_]*")
EXAMPLE = "such as '{testbed}_{direction}_parallel-{parallel:int}_{replicate:int}.txt'"


@dataclass(frozen=True)
class Pattern:
    """A compiled pattern or regular expression. ``fixed`` holds for every file, whatever the path."""

    text: str
    regex: re.Pattern[str]
    parts: int
    """The number of a path's last parts that are compared; 0 for the whole path."""
    types: Mapping[str, str] = field(default_factory=dict)
    """The kinds of a pattern's fields; a regular expression's fields are read by their look."""
    fixed: FileKey = field(default_factory=lambda: FileKey("", {}))
    from_end: re.Pattern[str] | None = None
    """The expression of a pattern, for the characters of a path in reverse order."""

    def assign(self, path: str) -> FileKey:
        tail = "/".join(path.split("/")[-self.parts :]) if self.parts else path
        texts, others = self._readings(tail)
        values: dict[str, Level] = {}
        for name, text in texts.items():
            if text is None:
                values[name] = None
            elif not is_plain(text):
                raise NotAssigned(f"{{{name}}} would be '{shown(text)[:60]}', which is not plain text")
            else:
                values[name] = self._typed(name, text)
        own = {name: "" if values.get(name) is None else str(values[name]) for name in RESERVED}
        testbed = own["testbed"] or self.fixed.testbed
        if not testbed and "testbed" not in self.fixed.within:
            raise NotAssigned(f"has no testbed by {self.text}")
        return FileKey(
            testbed=testbed,
            levels={
                **self.fixed.levels,
                **{name: level for name, level in values.items() if name not in RESERVED},
            },
            replicate=replicate_of(texts.get("replicate") or ""),
            host=own["host"] or self.fixed.host,
            snapshot=snapshot_of(own["snapshot"]) or self.fixed.snapshot,
            format=own["format"] or self.fixed.format,
            options=self.fixed.options,
            metrics=self.fixed.metrics,
            within=self.fixed.within,
            otherwise=tuple((name, text, others[name]) for name, text in texts.items() if others.get(name, text) != text),
        )

    def _readings(self, tail: str) -> tuple[dict[str, str], dict[str, str]]:
        """Return the text of each field, and of another reading of the path, where there is one. Raises NotAssigned."""
        first = self.regex.fullmatch(tail)
        last = self.from_end.fullmatch(tail[::-1]) if self.from_end is not None else None
        forwards = first.groupdict() if first is not None else {}
        if last is not None:
            return {name: last[name][::-1] for name in self.types}, forwards
        if first is None:
            raise NotAssigned(f"does not match {self.text}")
        return forwards, {}

    def _typed(self, name: str, text: str) -> Level:
        kind = self.types.get(name)
        if name in RESERVED:
            return text
        if kind is None:
            return padded_number_or_text(text)
        if kind == "word":
            return text
        return int(text) if kind == "int" else float(text)


def compile_pattern(text: str, fixed: FileKey | None = None) -> Pattern:
    """Compile a pattern. Raises ImportRefused with what is wrong in it and what would be right."""
    fixed = fixed or FileKey("", {})
    pieces, types = _pieces(text)
    for (name, _), after in ((piece, following) for piece, following in pairwise(pieces) if not isinstance(piece, str)):
        if not isinstance(after, str):
            raise ImportRefused(
                f"--pattern: in {text!r} nothing separates {{{name}}} from {{{after[0]}}}",
                advice="write the text that paths have between them, or use --regex",
            )
    if not types and not fixed.testbed and "testbed" not in fixed.within:
        raise ImportRefused(
            f"--pattern: {text!r} has no {{field}}, and nothing else gives the testbed of such a file",
            advice=f"write fields, {EXAMPLE}; or give testbed in a manifest; or a table's option testbed or wide",
        )
    _needs_testbed(text, types, fixed)
    reversed_pieces = [piece[::-1] if isinstance(piece, str) else piece for piece in reversed(pieces)]
    return Pattern(text, _compiled(pieces, TYPES), text.count("/") + 1, types, fixed, _compiled(reversed_pieces, _FROM_END))


def _compiled(pieces: Sequence[str | tuple[str, str]], expressions: Mapping[str, str]) -> re.Pattern[str]:
    whole: list[str] = []
    for index, piece in enumerate(pieces):
        if isinstance(piece, str):
            whole.append(re.escape(piece))
            continue
        name, kind = piece
        after = pieces[index + 1] if index + 1 < len(pieces) else ""
        assert isinstance(after, str)
        expression = expressions[kind] or _word(after, last=index + 2 >= len(pieces))
        whole.append(expression if name == "_" else f"(?P<{name}>{expression})")
    return re.compile("".join(whole))


def _word(after: str, *, last: bool) -> str:
    """Return the expression of a word, which ends where the text after it first comes, or with its part of the path."""
    if last or "/" in after:
        return r"[^/]+"
    if len(after) == 1:
        return f"[^/{re.escape(after)}]++"
    return f"(?:(?!{re.escape(after)})[^/])++"


def _pieces(text: str) -> tuple[list[str | tuple[str, str]], dict[str, str]]:
    """Return literal texts and (name, type) of fields, in order, and the type of each name."""
    pieces: list[str | tuple[str, str]] = []
    types: dict[str, str] = {}
    position = 0

    def literal(part: str) -> None:
        if pieces and isinstance(pieces[-1], str):
            pieces[-1] += part
        else:
            pieces.append(part)

    while position < len(text):
        if text.startswith(("{{", "}}"), position):
            literal(text[position])
            position += 2
        elif text[position] in "{}":
            match = _FIELD.match(text, position)
            if match is None:
                raise ImportRefused(f"--pattern: {text!r} has a lone brace at {position + 1}", advice="write {{ or }} for one")
            name, kind = match[1], match[2] or "word"
            _check_field(text, name, kind, types)
            if name != "_":
                types[name] = kind
            pieces.append((name, kind))
            position = match.end()
        else:
            literal(text[position])
            position += 1
    return pieces, types


def _check_field(text: str, name: str, kind: str, types: Mapping[str, str]) -> None:
    if kind not in TYPES:
        near = nearest(kind, TYPES)
        hint = f"; {did_you_mean(near)}" if near else ""
        raise ImportRefused(f"--pattern: {{{name}:{kind}}} has no type {kind!r}{hint}", advice=f"there are {listed(TYPES)}")
    if name != "_" and not _NAME.fullmatch(name):
        raise ImportRefused(
            f"--pattern: {name!r} in {text!r} is not a valid name", advice="use letters, digits and underscores, or {_}"
        )
    if name in types:
        raise ImportRefused(f"--pattern: {text!r} has {{{name}}} twice", advice="give one of them another name, or write {_}")


def compile_regex(text: str, fixed: FileKey | None = None) -> Pattern:
    """Compile a user's own expression, which is matched with whole paths. Raises ImportRefused."""
    fixed = fixed or FileKey("", {})
    try:
        regex = re.compile(text)
    except (re.error, OverflowError, RecursionError) as error:
        raise ImportRefused(f"--regex: {shown(text)!r} is not a regular expression: {error}") from error
    _needs_testbed(text, regex.groupindex, fixed)
    return Pattern(text, regex, 0, {}, fixed)


def _needs_testbed(text: str, names: Mapping[str, object], fixed: FileKey) -> None:
    if "testbed" in names and fixed.testbed:
        raise ImportRefused(f"{text!r} reads the testbed, and --testbed gives one too", advice="keep one of the two")
    both = [name for name in names if name in fixed.within]
    if both:
        raise ImportRefused(
            f"{text!r} reads {both[0]}, and the options read it from the file too", advice="keep one of the two"
        )
    if "testbed" not in names and not fixed.testbed and "testbed" not in fixed.within:
        near = nearest("testbed", names)
        hint = f"; did you mean {near[0]!r}?" if near else ""
        raise ImportRefused(
            f"{text!r} gives no testbed{hint}",
            advice="call the testbed's part of the path 'testbed', or give --testbed NAME if all files are from one testbed",
        )


@contextlib.contextmanager
def cpu_limit(limit: float | None = None) -> Iterator[None]:
    """Limit the CPU time of the main thread: regular expressions look for signals. Raises ImportRefused above it."""
    seconds = REGEX_CPU_SECONDS if limit is None else limit
    if threading.current_thread() is not threading.main_thread():
        raise ImportRefused("regular expressions have a time limit only in the main thread", advice="use a pattern")

    def too_long(_signal: int, _frame: object) -> None:
        raise ImportRefused(
            f"--regex takes more than {seconds:g} s of CPU time: it tries the same path in more and more ways",
            advice="nested repetitions such as (a+)+ do that; write possessive ones, (a++)+, or use --pattern",
        )

    before = signal.signal(signal.SIGVTALRM, too_long)
    signal.setitimer(signal.ITIMER_VIRTUAL, seconds)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_VIRTUAL, 0)
        signal.signal(signal.SIGVTALRM, before)
