"""HTML in which everything that is not marked safe is escaped (markupsafe)."""

from __future__ import annotations

import re
from collections.abc import Sequence

from markupsafe import Markup

from twinbed.terminal import visible

_OPTION = re.compile(r"(?<![\w-])(--[a-z][a-z-]*)")


def html(template: str, *values: object) -> Markup:
    """Return the template, a literal of this code, with each ``{}`` filled in: ``Markup`` as it is, anything else escaped.

    >>> html("<p>{}, {}</p>", Markup("<b>1</b>"), "<2>")
    Markup('<p><b>1</b>, &lt;2&gt;</p>')
    """
    return Markup(template).format(*(visible(value) if type(value) is str else value for value in values))


def notes(sentences: Sequence[str]) -> Markup:
    """Return a list of sentences, with options of commands as code."""
    items = Markup().join(html("<li>{}</li>", as_code(_OPTION, sentence)) for sentence in sentences)
    return html('<ul class="notes">{}</ul>', items) if sentences else Markup()


def as_code(pattern: re.Pattern[str], text: str) -> Markup:
    """Return the text with each match as code: what the pattern's one group is of."""
    # Of the parts the odd ones are the groups.
    parts = pattern.split(text)
    return Markup().join(html("<code>{}</code>", part) if at % 2 else part for at, part in enumerate(parts))
