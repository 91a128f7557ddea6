"""Texts as names of files."""

from __future__ import annotations

import re

_LONGEST_NAME = 120
_OTHERS = re.compile(r"[^A-Za-z0-9.+]+")


def plain(text: str) -> str:
    """Return a text as a file's name: ASCII letters, digits, ``.``, ``+`` and ``-``.

    >>> plain("payload 1MiB, switch ovs: requests/s")
    'payload-1MiB-switch-ovs-requests-s'
    """
    words = _OTHERS.sub("-", text).strip("-.")
    return words if len(words) <= _LONGEST_NAME else words[:_LONGEST_NAME].rpartition("-")[0] or words[:_LONGEST_NAME]


class Names:
    """File names that differ from each other, on file systems that do not tell capitals apart too."""

    def __init__(self) -> None:
        self._taken: set[str] = set()

    def of(self, text: str) -> str:
        """``plain(text)``, numbered from the second on."""
        name = plain(text) or "unnamed"
        number = 2
        chosen = name
        while chosen.lower() in self._taken:
            chosen = f"{name}-{number}"
            number += 1
        self._taken.add(chosen.lower())
        return chosen
