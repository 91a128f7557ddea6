"""Reads a model formula in the notation of Wilkinson and Rogers (1973), as R does.

``response ~ terms``. Between terms ``+`` adds, ``-`` takes away, ``a:b`` is the interaction of a and b, ``a*b`` is a + b + a:b,
``(a + b)^2`` all interactions up to two; ``0 +`` or ``- 1`` leaves the constant out.  ``:`` binds closer than ``*``, and that
closer than ``+``.  Within a function's brackets the signs are arithmetic: ``I(x^2)``, ``log(bytes / seconds)``, ``centre(x)``
(at its mean), ``centre(x, 1)`` (at 1), ``C(host, base=physical)`` (categorical).  A name with characters other than letters,
digits, _ and . is written in backquotes. No part of a formula is evaluated as a program.

Limits: no nesting ``/``, no ``%in%``, no offsets.  Terms are ordered by their number of factors, as in R.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from twinbed.statistics.regression.error import FormulaError
from twinbed.statistics.regression.expression import (
    BOX_COX,
    CATEGORICAL,
    FUNCTIONS,
    Call,
    Expression,
    Name,
    Number,
    Operation,
    calls,
)

Term = tuple[Expression, ...]
"""The factors of a term, in the order of the text. The constant is ()."""
_NO_CONSTANT: Term = (Number(0.0),)
_TOKEN = re.compile(
    r"(?P<number>(\d+\.?\d*|\.\d+)([eE][+-]?\d+)?(?![\w.]))|(?P<name>[^\W\d][\w.]*|`[^`]+`)|(?P<sign>\*\*|[-+*/^:~(),=])"
)
_LEVEL = re.compile(r"""\s*(?:"([^"]*)"|'([^']*)'|([^,()"'\s](?:[^,()"']*[^,()"'\s])?))\s*""")
_OTHER_NAMES = {"center": "centre", "c": CATEGORICAL, "factor": CATEGORICAL, "ln": "log"}
_MOST_POWER = 8


@dataclass(frozen=True, slots=True)
class Formula:
    """A formula as read."""

    text: str
    response: Expression
    terms: tuple[Term, ...]
    """Without the constant, in order, each once."""
    constant: bool


def read(text: str) -> Formula:
    """Reads ``response ~ terms``. Raises FormulaError with the place of what is wrong."""
    return _Reader(text).formula()


class _Reader:
    def __init__(self, text: str) -> None:
        self.text = text
        self.at = 0
        self.kind = self.token = ""
        self.position = 0
        self._next()

    def _next(self) -> None:
        while self.at < len(self.text) and self.text[self.at].isspace():
            self.at += 1
        self.position = self.at
        if self.at == len(self.text):
            self.kind = self.token = ""
            return
        match = _TOKEN.match(self.text, self.at)
        if match is None:
            raise self._error(
                f"{self.text[self.at]!r} means nothing here", advice="a column with such characters stands in backquotes: `a b`"
            )
        self.kind, self.token, self.at = str(match.lastgroup), match.group(), match.end()

    def _error(self, message: str, position: int | None = None, advice: str = "") -> FormulaError:
        return FormulaError(message, self.text, self.position if position is None else position, advice)

    def _take(self, *signs: str) -> str:
        """The next sign if it is one of these, else nothing."""
        if self.kind == "sign" and self.token in signs:
            sign = self.token
            self._next()
            return sign
        return ""

    def _want(self, sign: str) -> None:
        if not self._take(sign):
            raise self._error(f"{sign!r} is wanted, {self._there()}")

    def _there(self) -> str:
        return f"not {self.token!r}" if self.token else "but the formula ends"

    def formula(self) -> Formula:
        if "~" not in self.text:
            raise self._error("a formula is RESPONSE ~ TERMS", len(self.text), "such as: log(bandwidth) ~ payload * nic")
        response = self._sum()
        self._want("~")
        terms = self._terms()
        if self.token:
            raise self._error(f"{self.token!r} is not wanted here")
        for term in terms:
            for factor in term:
                if any(call.function == BOX_COX for call in calls(factor)):
                    raise self._error(f"{BOX_COX} is for the response", factor.position)
                if str(factor) == str(response):
                    raise self._error("the response cannot explain itself", factor.position)
        constant = () in terms
        ordered = sorted((term for term in terms if term), key=len)
        return Formula(self.text, response, tuple(ordered), constant)

    def _terms(self) -> list[Term]:
        """The terms of the right side; the constant, (), is first if it is in the model."""
        terms: list[Term] = [()]
        add = not self._take("-")
        while True:
            start = self.position
            for term in self._product():
                if term == _NO_CONSTANT:
                    terms = _without(terms, ())
                elif add:
                    terms = _joined(terms, [term])
                elif not _held(terms, term):
                    raise self._error("a term is taken away that is not there", start)
                else:
                    terms = _without(terms, term)
            sign = self._take("+", "-")
            if not sign:
                return terms
            add = sign == "+"

    def _product(self) -> list[Term]:
        terms = self._interaction()
        while self._take("*"):
            other = self._interaction()
            terms = _joined(_joined(terms, other), [_crossed(one, two) for one in terms for two in other])
        return terms

    def _interaction(self) -> list[Term]:
        terms = self._power()
        while self._take(":"):
            other = self._power()
            terms = _joined([], [_crossed(one, two) for one in terms for two in other])
        return terms

    def _power(self) -> list[Term]:
        start = self.position
        base = terms = self._group()
        if self._take("^", "**"):
            power = float(self.token) if self.kind == "number" else 0.0
            if not power.is_integer() or not 1 <= power <= _MOST_POWER:
                raise self._error(f"a whole power from 1 to {_MOST_POWER} is wanted, {self._there()}")
            if len(base) == 1:
                square = f"I({base[0][0]}^{power:g})" if base[0] else "1"
                raise self._error("one term to a power is itself", start, f"for its square as a number write {square}")
            self._next()
            for _ in range(int(power) - 1):
                terms = _joined(terms, [_crossed(one, two) for one in terms for two in base])
        return terms

    def _group(self) -> list[Term]:
        if self._take("("):
            terms = self._product()
            while self._take("+"):
                terms = _joined(terms, self._product())
            self._want(")")
            return terms
        if self.kind == "number":
            value, start = float(self.token), self.position
            self._next()
            if value == 1:
                return [()]
            if value == 0:
                return [_NO_CONSTANT]
            raise self._error("a number among terms is 1 or 0: with or without the constant", start)
        return [(self._atom(),)]

    def _sum(self) -> Expression:
        position = self.position
        if self._take("-"):
            expression: Expression = Operation("-", Number(0.0, position), self._times(), position)
        else:
            expression = self._times()
        while True:
            position = self.position
            sign = self._take("+", "-")
            if not sign:
                return expression
            expression = Operation(sign, expression, self._times(), position)

    def _times(self) -> Expression:
        expression = self._raised()
        while True:
            position = self.position
            sign = self._take("*", "/")
            if not sign:
                return expression
            expression = Operation(sign, expression, self._raised(), position)

    def _raised(self) -> Expression:
        expression = self._atom()
        position = self.position
        if self._take("^", "**"):
            expression = Operation("^", expression, self._raised(), position)
        return expression

    def _atom(self) -> Expression:
        position = self.position
        if self._take("("):
            expression = self._sum()
            self._want(")")
            return expression
        if self.kind == "number":
            value = float(self.token)
            self._next()
            return Number(value, position)
        if self.kind != "name":
            raise self._error(f"a column or function is wanted, {self._there()}")
        word = self.token
        self._next()
        if word.startswith("`"):
            return Name(word.strip("`"), position)
        return self._call(word, position) if self._take("(") else Name(word, position)

    def _call(self, word: str, position: int) -> Expression:
        known = (*FUNCTIONS, CATEGORICAL, BOX_COX)
        function = _OTHER_NAMES.get(word, word)
        if function not in known:
            advice = f"there are {', '.join(known)}"
            raise FormulaError(f"there is no function {word!r}", self.text, position, advice, name=word, known=known)
        argument = self._sum()
        if function == CATEGORICAL and not isinstance(argument, Name):
            raise self._error("C takes the name of a column", argument.position)
        at, base = None, None
        if self._take(","):
            if function == CATEGORICAL:
                base = self._base()
            elif function in ("centre", BOX_COX):
                at = self._value()
            else:
                raise self._error(f"{function} takes one number")
        self._want(")")
        # I() only marks its content as arithmetic.
        return argument if function == "I" and isinstance(argument, Name) else Call(function, argument, at, base, position)

    def _value(self) -> float:
        sign = -1.0 if self._take("-") else 1.0
        if self.kind != "number":
            raise self._error(f"a number is wanted, {self._there()}")
        value = sign * float(self.token)
        self._next()
        return value

    def _base(self) -> str:
        if (self.kind, self.token) != ("name", "base"):
            raise self._error(f"base=LEVEL is wanted, {self._there()}")
        self._next()
        if (self.kind, self.token) != ("sign", "="):
            raise self._error(f"'=' is wanted, {self._there()}")
        match = _LEVEL.match(self.text, self.at)
        if match is None:
            raise self._error("a level is wanted", self.at)
        self.at = match.end()
        self._next()
        return next(group for group in match.groups() if group is not None)


def _texts(term: Term) -> frozenset[str]:
    return frozenset(map(str, term))


def _held(terms: list[Term], term: Term) -> bool:
    return any(_texts(each) == _texts(term) for each in terms)


def _joined(terms: list[Term], more: list[Term]) -> list[Term]:
    joined = list(terms)
    for term in more:
        if not _held(joined, term):
            joined.append(term)
    return joined


def _without(terms: list[Term], term: Term) -> list[Term]:
    return [each for each in terms if _texts(each) != _texts(term)]


def _crossed(one: Term, two: Term) -> Term:
    known = _texts(one)
    return (*one, *(factor for factor in two if str(factor) not in known))
