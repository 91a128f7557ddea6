"""Reader of model formulas in the notation of Wilkinson and Rogers (1973), as in R.

``response ~ terms``. Between terms ``+`` adds and ``-`` takes away. Term ``a:b`` is the interaction of a and b, ``a*b`` is a +
b + a:b, ``(a + b)^2`` all interactions up to two. Either ``0 +`` or ``- 1`` leaves the constant out.  ``:`` binds closer than
``*``, and that closer than ``+``.  Within a function's brackets the signs are arithmetic: ``I(x^2)``, ``log(bytes / seconds)``,
``centre(x)`` (at its mean), ``centre(x, 1)`` (at 1), ``C(host, base=physical)`` (categorical).  A name with characters other
than letters, digits, _, . and @ is written in backquotes. No part of a formula is evaluated as a program.

Limits: no nesting ``/``, no ``%in%``, no offsets.  Terms are ordered by their number of factors, as in R.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from twinbed.statistics.regression.error import FormulaError
from twinbed.statistics.regression.expression import BOX_COX, NAME, Expression, calls, function, read_expression

Term = tuple[Expression, ...]
"""The factors of a term, in the order of the text."""
_Terms = dict[frozenset[str], Term]
"""Terms by the texts of their factors; the constant has none."""
_CONSTANT = frozenset[str]()
_NO_CONSTANT = frozenset({"0"})
_TOKEN = re.compile(rf"\s*(?:(?P<number>\d+(?![\w.]))|(?P<name>{NAME})|(?P<sign>\*\*|[-+*^:()]))")
_BRACKETS = re.compile(r"""'[^']*'|"[^"]*"|`[^`]*`|[()]""")
_MOST_POWER = 8


@dataclass(frozen=True, slots=True)
class Formula:
    """A formula as read."""

    text: str
    response: Expression
    terms: tuple[Term, ...]
    """Without the constant, in order, each once."""
    constant: bool

    @property
    def names(self) -> tuple[str, ...]:
        """Return the data's columns that it uses, those of the response first."""
        used = (self.response, *(factor for term in self.terms for factor in term))
        return tuple(dict.fromkeys(name for factor in used for name in factor.names))


def read(text: str) -> Formula:
    """Read ``response ~ terms``. Raises FormulaError with the place of the error."""
    left, tilde, _ = text.partition("~")
    if not tilde:
        raise FormulaError("a formula is RESPONSE ~ TERMS", text, len(text), "such as: log(bandwidth) ~ payload * nic")
    response = read_expression(text, 0, len(left))
    terms = read_terms(text, len(left) + 1)
    for factor in (factor for term in terms.values() for factor in term):
        if any(function(call) == BOX_COX for call in calls(factor)):
            raise FormulaError(f"{BOX_COX} is for the response", text, factor.position)
        if factor.text == response.text:
            raise FormulaError("the response cannot explain itself", text, factor.position)
    return Formula(text, response, tuple(sorted(filter(None, terms.values()), key=len)), _CONSTANT in terms)


def read_terms(text: str, start: int = 0) -> _Terms:
    """Read the terms of ``text`` from ``start`` on; the constant is first if it is in the model."""
    reader = _Reader(text, start)
    terms = reader.sum({_CONSTANT: ()})
    if reader.token:
        raise reader.error(f"{reader.token!r} is not allowed here")
    terms.pop(_NO_CONSTANT, None)
    return terms


class _Reader:
    """Recursive descent; each method reads one level of precedence: sum, product, interaction, power, group."""

    def __init__(self, text: str, start: int) -> None:
        self.text, self.end = text, start
        self.advance()

    def advance(self) -> None:
        """Go to the next token; a function's token ends with its closing bracket."""
        match = _TOKEN.match(self.text, self.end)
        rest = self.text[self.end :]
        self.at = len(self.text) - len(rest.lstrip()) if match is None else match.end() - len(match[0].lstrip())
        self.kind, self.token, self.end = (str(match.lastgroup), match[0].strip(), match.end()) if match else ("", "", self.at)
        if match is None and rest.strip():
            advice = "write a column with such characters in backquotes: `a b`"
            raise self.error(f"{self.text[self.at]!r} has no meaning here", advice=advice)
        if self.kind == "name" and not self.token.startswith("`") and re.match(r"\s*\(", self.text[self.end :]):
            depth = 0
            for bracket in _BRACKETS.finditer(self.text, self.end):
                depth += {"(": 1, ")": -1}.get(bracket[0], 0)
                if depth == 0:
                    self.end = bracket.end()
                    return
            raise self.error("expected ')', but the formula ends", len(self.text))

    def error(self, message: str, at: int | None = None, advice: str = "") -> FormulaError:
        """Return the error at a place, by default that of the next token."""
        return FormulaError(message, self.text, self.at if at is None else at, advice)

    def instead(self) -> str:
        """Return what the formula has instead of what is wanted."""
        return f"not {self.token!r}" if self.token else "but the formula ends"

    def take(self, *signs: str) -> str:
        """Return the next token and go on if it is one of these signs, else nothing."""
        sign = self.token if self.kind == "sign" and self.token in signs else ""
        if sign:
            self.advance()
        return sign

    def sum(self, terms: _Terms) -> _Terms:
        """Add terms to ``terms``, and take away those behind a minus."""
        sign = self.take("-") or "+"
        while sign:
            start, more = self.at, self.product()
            if more.pop(_NO_CONSTANT, None) is not None and terms.pop(_CONSTANT, None) is None:
                terms[_NO_CONSTANT] = ()  # In brackets: the constant is outside of them.
            if sign == "+":
                terms = _joined(terms, more)
            elif missing := [key for key in more if key not in terms and key != _CONSTANT]:
                raise self.error(f"cannot remove a term that is not there: {':'.join(sorted(missing[0]))}", start)
            else:
                terms = {key: term for key, term in terms.items() if key not in more}
            sign = self.take("+", "-")
        return terms

    def product(self) -> _Terms:
        """Read ``a * b``."""
        terms = self.interaction()
        while self.take("*"):
            other = self.interaction()
            terms = _joined(_joined(terms, other), _crossed(terms, other))
        return terms

    def interaction(self) -> _Terms:
        """Read ``a:b``."""
        terms = self.power()
        while self.take(":"):
            terms = _crossed(terms, self.power())
        return terms

    def power(self) -> _Terms:
        """Read ``a^2``."""
        start, base = self.at, self.group()
        terms = base
        if self.take("^", "**"):
            if self.kind != "number" or not 1 <= int(self.token) <= _MOST_POWER:
                raise self.error(f"expected a whole power from 1 to {_MOST_POWER}, {self.instead()}")
            if len(base) == 1:
                square = f"I({self.text[start : self.end].strip()})"
                raise self.error("one term to a power is itself", start, f"for its square as a number write {square}")
            for _ in range(int(self.token) - 1):
                terms = _joined(terms, _crossed(terms, base))
            self.advance()
        return terms

    def group(self) -> _Terms:
        """Read brackets, a number or a variable."""
        if self.take("("):
            terms = self.sum({})
            if not self.take(")"):
                raise self.error(f"expected ')', {self.instead()}")
            return terms
        if self.kind == "number" and self.token not in ("0", "1"):
            raise self.error("the only numbers among terms are 1 and 0: with or without the constant")
        if self.kind not in ("number", "name"):
            raise self.error(f"expected a column or function, {self.instead()}")
        kind, token, start, end = self.kind, self.token, self.at, self.end
        self.advance()
        if kind == "number":
            return {_NO_CONSTANT if token == "0" else _CONSTANT: ()}
        variable = read_expression(self.text, start, end)
        return {frozenset({variable.text}): (variable,)}


def _joined(terms: _Terms, others: _Terms) -> _Terms:
    """Return the terms of both, each as it was first written."""
    return terms | {key: term for key, term in others.items() if key not in terms}


def _crossed(terms: _Terms, others: _Terms) -> _Terms:
    """Return each term of one with each of the other, each as it was first written."""
    crossed: _Terms = {}
    for known, term in terms.items():
        for key, other in others.items():
            if _NO_CONSTANT in (known, key):
                continue
            crossed.setdefault(known | key, (*term, *(factor for factor in other if factor.text not in known)))
    return crossed
