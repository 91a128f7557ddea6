"""Settings that a study declares for its own programs, and texts in which ``{name}`` stands for one.

A value is a number, a text, a switch (``on``, ``off``), or a quantity with a unit: a size, duration, rate or share.  ``{name}``
is the value as written.  ``{name.FORM}`` is a quantity as a number in the unit of the form, without a unit: programs ask for
one or the other.  ``{{`` and ``}}`` are braces.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from decimal import Decimal

from twinbed.model.error import TwinbedError
from twinbed.model.near import Near, nearest
from twinbed.model.run import Level, level_text
from twinbed.model.units import QuantityError, parse_duration, parse_rate, parse_share, parse_size

_KINDS: Mapping[str, tuple[Callable[[object], float], Mapping[str, Decimal]]] = {
    "size": (parse_size, {"bytes": Decimal(1), "kib": Decimal(2**10), "mib": Decimal(2**20)}),
    "duration": (parse_duration, {"seconds": Decimal(1), "ms": Decimal("1e-3"), "us": Decimal("1e-6")}),
    "rate": (parse_rate, {"bits": Decimal(1), "kbit": Decimal(10**3), "mbit": Decimal(10**6), "gbit": Decimal(10**9)}),
    "share": (parse_share, {"fraction": Decimal(1), "percent": Decimal("0.01")}),
}
"""Kind of quantity -> how it is read, and its forms, each with its size in base units."""
_WITH_UNIT = re.compile(r"\s*[\d.]+\s*[A-Za-zµμ%].*", re.ASCII)
_SWITCH = {"on": True, "off": False, True: True, False: False}
_PART = re.compile(r"\{\{|\}\}|\{([^{}]*)\}|[{}]")


class TemplateError(TwinbedError):
    """A text that cannot be filled in; ``near`` is what was probably meant."""

    def __init__(self, message: str, allowed: str = "", near: Near = ()) -> None:
        super().__init__(message)
        self.allowed, self.near = allowed, near


@dataclass(frozen=True, slots=True)
class Given:
    """A value with its kind."""

    kind: str
    """number, text, switch, or a kind of quantity."""
    written: str
    forms: Mapping[str, str]
    """Form -> the value in it."""


def given(value: Level) -> Given:
    """Recognise the kind of a value. A text is a quantity only if it has a unit that twinbed knows."""
    if isinstance(value, bool) or value in ("on", "off"):
        on = _SWITCH[value]
        return Given("switch", "on" if on else "off", {"number": str(int(on))})
    if isinstance(value, int | float):
        return Given("number", level_text(value) if isinstance(value, int) else repr(value), {})
    text = "" if value is None else value
    for kind, (parse, sizes) in _KINDS.items():
        try:
            amount = Decimal(repr(parse(text))) if _WITH_UNIT.fullmatch(text) else None
        except QuantityError:
            amount = None
        if amount is not None:
            return Given(kind, text, {form: _plain(amount / size) for form, size in sizes.items()})
    return Given("text", text, {})


def _plain(number: Decimal) -> str:
    """Return a number without an exponent and without zeros at its end."""
    digits = format(number, "f")
    return (digits.rstrip("0").rstrip(".") if "." in digits else digits) or "0"


def names(text: str) -> Iterator[str]:
    """Yield the names in a text. Raises TemplateError for a brace without its other."""
    for match in _PART.finditer(text):
        if match[0] in ("{", "}"):
            raise TemplateError(f"{text!r} has a brace without its other", "double a brace that is meant: {{ and }}")
        if match[1] is not None:
            yield match[1]


def filled(text: str, known: Mapping[str, Level]) -> str:
    """Return a text with its names filled in. Raises TemplateError for an unknown name or form."""
    for name in names(text):
        _value(name, known)
    return _PART.sub(lambda match: match[0][0] if match[1] is None else _value(match[1], known), text)


def _value(name: str, known: Mapping[str, Level]) -> str:
    setting, dot, form = name.partition(".")
    if setting not in known:
        raise TemplateError(
            f"{{{name}}} is not known",
            ", ".join(f"{{{known_name}}}" for known_name in known),
            nearest(setting, known) if setting else (),
        )
    value = given(known[setting])
    if not dot:
        return value.written
    if form not in value.forms:
        forms = [f"{{{setting}.{form}}}" for form in value.forms]
        allowed = ", ".join([f"{{{setting}}}", *forms]) + ("" if forms else "; a form needs a unit, such as 64KiB or 10ms")
        raise TemplateError(f"{{{name}}}: {setting} is a {value.kind} ({value.written})", allowed)
    return value.forms[form]
