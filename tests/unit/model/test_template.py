"""Settings of a study's own programs: the kinds of their values, and texts with names in braces."""

from __future__ import annotations

import pytest

from twinbed.model.run import Level
from twinbed.model.template import TemplateError, filled, given

KNOWN: dict[str, Level] = {"payload": "1KiB", "pause": "1500us", "link": "10mbit", "part": "5%", "requests": 200, "tls": "on"}


@pytest.mark.parametrize(
    ("value", "kind"),
    [
        *((value, "size") for value in ("64B", "1KiB", "1.5MiB", "0B")),
        *((value, "duration") for value in ("10ms", "2 s", "1h", "5µs")),
        *((value, "rate") for value in ("10mbit", "1Gbit/s")),
        *((value, "switch") for value in ("on", "off", True, False)),
        *((value, "number") for value in (3, 0.5, -2, 0)),
        *((value, "text") for value in ("abc", "64k", "10", "1.2.3B", "", "10 requests", "s")),
        ("10%", "share"),
    ],
)
def test_the_kind_of_a_value(value: Level, kind: str) -> None:
    assert given(value).kind == kind


@pytest.mark.parametrize(
    ("text", "result"),
    [
        ("-n {requests} -d {payload}", "-n 200 -d 1KiB"),
        ("{payload.bytes} {payload.kib} {payload.mib}", "1024 1 0.0009765625"),
        ("{pause} {pause.seconds} {pause.ms} {pause.us}", "1500us 0.0015 1.5 1500"),
        ("{link.bits} {link.kbit} {link.mbit} {link.gbit}", "10000000 10000 10 0.01"),
        ("{part.fraction} {part.percent} {tls} {tls.number}", "0.05 5 on 1"),
        ('{{"a": {requests}}}', '{"a": 200}'),
        ("{{requests}}", "{requests}"),
        ("nothing", "nothing"),
    ],
)
def test_names_are_filled_in(text: str, result: str) -> None:
    assert filled(text, KNOWN) == result


def test_what_is_filled_in_is_not_filled_in_again() -> None:
    assert filled("{a}", {"a": "{b}", "b": "no"}) == "{b}"


@pytest.mark.parametrize(
    ("text", "message", "allowed"),
    [
        ("{paylod}", "{paylod} is not known", "{payload}"),
        ("{}", "{} is not known", "{payload}"),
        ("{payload.ms}", "{payload.ms}: payload is a size (1KiB)", "{payload}, {payload.bytes}, {payload.kib}, {payload.mib}"),
        ("{requests.bytes}", "{requests.bytes}: requests is a number (200)", "a form needs a unit"),
        ("{payload", "has a brace without its other", "double a brace"),
        ("a } b", "has a brace without its other", "double a brace"),
    ],
)
def test_a_wrong_name_is_an_error_with_what_would_be_right(text: str, message: str, allowed: str) -> None:
    with pytest.raises(TemplateError) as error:
        filled(text, KNOWN)
    assert message in error.value.message and allowed in error.value.allowed
    assert text != "{paylod}" or error.value.near == ("payload",)
