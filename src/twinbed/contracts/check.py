"""One thing that preflight tried."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Trial:
    """A program that this machine must have: preflight runs it."""

    argv: tuple[str, ...]
    """Such as for its version; it must end with code 0."""
    mend: str
    """How to get it."""


@dataclass(frozen=True, slots=True)
class Check:
    """One thing that preflight tried: what, whether it works, what it found, and the command that would mend it."""

    what: str
    works: bool
    found: str
    mend: str = ""
    required: bool = True
    group: str = ""
    """What kind of thing it is, for a matrix of them; empty for what only one study asks."""
    tried: bool = True
    """False for what cannot be tried as things stand; it then counts as not working."""
