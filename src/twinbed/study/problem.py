"""What is wrong with a study file: where, which key, what would have been right.  They are reported all at once."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from twinbed.model.error import TwinbedError
from twinbed.model.near import Near, did_you_mean

_MOST_NAMES = 20
"""Names that are listed although a near one is known."""


@dataclass(frozen=True, slots=True, order=True)
class Position:
    """Where something stands. Line and column count from 1."""

    file: str
    line: int
    column: int

    def __str__(self) -> str:
        return f"{self.file}:{self.line}:{self.column}"


@dataclass(frozen=True, slots=True)
class Problem:
    """One mistake; printed as ``file:line:column: key: message; allowed: ...; did you mean 'x'?``. An option that holds a
    name, such as ``--profile``, has no line and column."""

    file: str
    line: int
    column: int
    key: str
    """Dotted path of the key it is about; empty for the file as a whole."""
    message: str
    allowed: str = ""
    nearest: Near = ()

    @classmethod
    def at(cls, place: Position, key: str, message: str, allowed: str = "", nearest: Near = ()) -> Problem:
        return cls(place.file, place.line, place.column, key, message, allowed, nearest)

    def __str__(self) -> str:
        place = self.file if self.file.startswith("--") else f"{self.file}:{self.line}:{self.column}"
        text = f"{place}: " + (f"{self.key}: " if self.key else "") + self.message
        if self.allowed:
            names = self.allowed.split(", ")
            text += f"; allowed: {f'{len(names)} names' if self.nearest and len(names) > _MOST_NAMES else self.allowed}"
        if self.nearest:
            text += f"; {did_you_mean(self.nearest)}"
        return text


class StudyError(TwinbedError):
    """A study that cannot be used. ``problems`` holds every one of them, in the order of the file.

    Of several about the same key at the same place, the first is kept: the others follow from it or repeat it.
    """

    def __init__(self, problems: Iterable[Problem]) -> None:
        first: dict[tuple[str, int, int, str], Problem] = {}
        for problem in problems:
            first.setdefault((problem.file, problem.line, problem.column, problem.key), problem)
        self.problems: list[Problem] = sorted(first.values(), key=lambda p: (p.file == "-s", p.file, p.line, p.column, p.key))
        super().__init__("\n".join(str(problem) for problem in self.problems))


def listed(names: Iterable[str]) -> str:
    """Names for ``allowed``, in their given order."""
    return ", ".join(names)
