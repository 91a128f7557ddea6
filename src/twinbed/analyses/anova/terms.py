"""The terms of a model from a formula in Wilkinson & Rogers's (1973) notation, as R and statsmodels read it.

``a + b`` is both; ``a:b`` is their interaction; ``a * b`` is ``a + b + a:b``; ``(a + b + c)^2`` is all up to pairs; ``- a:b``
leaves a term out.
A response may stand before ``~``, as ``y`` or ``log(y)``.  Names that are no plain words are written in backquotes.
"""

from __future__ import annotations

import itertools
import re
from collections.abc import Sequence
from dataclasses import dataclass

from twinbed.analyses.anova.result import Term
from twinbed.model.error import TwinbedError

TOKEN = re.compile(r"\s*(?:`(?P<quoted>[^`]+)`|(?P<name>[^\W\d][\w.@]*)|(?P<number>\d+)|(?P<sign>\*\*|[-+:*^()]))")
Terms = list[frozenset[str]]


@dataclass(frozen=True, slots=True)
class Formula:
    """``response`` None where there is none; ``logarithm`` whether it is log(response)."""

    response: str | None
    logarithm: bool
    terms: tuple[Term, ...]
    """Sorted by order, then as written."""

    @property
    def factors(self) -> tuple[str, ...]:
        return tuple(dict.fromkeys(name for term in self.terms for name in term))


def parse(text: str) -> Formula:
    """Reads a formula. Raises TwinbedError where the text is none."""
    left, tilde, right = text.rpartition("~")
    response, logarithm = _response(left.strip(), text) if tilde else (None, False)
    reader = _Reader(text, right)
    terms = reader.sum()
    if reader.at < len(reader.tokens):
        raise reader.error(f"{reader.tokens[reader.at]!r} is not expected")
    if not terms:
        raise reader.error("it has no terms")
    names = reader.names
    ordered = sorted(terms, key=len)
    return Formula(response, logarithm, tuple(tuple(sorted(term, key=names.index)) for term in ordered))


def factorial(factors: Sequence[str], highest: int) -> tuple[Term, ...]:
    """All main effects and interactions of up to ``highest`` factors."""
    return tuple(term for size in range(1, highest + 1) for term in itertools.combinations(factors, size))


def _response(text: str, whole: str) -> tuple[str, bool]:
    match = re.fullmatch(r"(?:(log)\s*\(\s*)?(?:`([^`]+)`|([^\W\d][\w.@]*))\s*(\))?", text)
    if not match or bool(match[1]) != bool(match[4]):
        raise TwinbedError(f"the formula {whole!r} has no response before ~ that can be read", advice="y ~ ... or log(y) ~ ...")
    return match[2] or match[3], bool(match[1])


class _Reader:
    """Recursive descent; each method reads one level of precedence: sum, product, interaction, power, atom."""

    def __init__(self, whole: str, text: str) -> None:
        self.whole = whole
        self.tokens: list[str] = []
        self.names: list[str] = []
        self.at = 0
        place = 0
        while text[place:].strip():
            match = TOKEN.match(text, place)
            if not match:
                raise self.error(f"{text[place:].strip()[0]!r} is not expected")
            name = match["quoted"] or match["name"]
            self.tokens.append(f"`{name}" if name else "^" if match["sign"] == "**" else match["sign"] or match["number"])
            if name and name not in self.names:
                self.names.append(name)
            place = match.end()

    def error(self, why: str) -> TwinbedError:
        return TwinbedError(
            f"the formula {self.whole!r} cannot be read: {why}", advice="such as testbed * payload, or a + b + a:b"
        )

    def take(self, *signs: str) -> str | None:
        if self.at < len(self.tokens) and self.tokens[self.at] in signs:
            self.at += 1
            return self.tokens[self.at - 1]
        return None

    def sum(self) -> Terms:
        terms = self.product()
        while sign := self.take("+", "-"):
            right = self.product()
            terms = _joined(terms, right) if sign == "+" else [term for term in terms if term not in right]
        return terms

    def product(self) -> Terms:
        terms = self.interaction()
        while self.take("*"):
            right = self.interaction()
            terms = _joined(_joined(terms, right), _crossed(terms, right))
        return terms

    def interaction(self) -> Terms:
        terms = self.power()
        while self.take(":"):
            terms = _crossed(terms, self.power())
        return terms

    def power(self) -> Terms:
        base = terms = self.atom()
        if self.take("^"):
            exponent = self.tokens[self.at] if self.at < len(self.tokens) else ""
            if not exponent.isdigit() or int(exponent) < 1:
                raise self.error("^ needs a whole number after it")
            self.at += 1
            for _ in range(min(int(exponent), len(base)) - 1):
                terms = _joined(terms, _crossed(terms, base))
        return terms

    def atom(self) -> Terms:
        if self.take("("):
            terms = self.sum()
            if not self.take(")"):
                raise self.error("a closing parenthesis is missing")
            return terms
        if self.at >= len(self.tokens):
            raise self.error("it ends where a factor is expected")
        token = self.tokens[self.at]
        if not token.startswith("`"):
            raise self.error(f"{token!r} is not expected")
        self.at += 1
        return [frozenset((token[1:],))]


def _joined(one: Terms, two: Terms) -> Terms:
    return list(dict.fromkeys([*one, *two]))


def _crossed(one: Terms, two: Terms) -> Terms:
    return list(dict.fromkeys(a | b for a in one for b in two))
