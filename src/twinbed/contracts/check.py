"""The results of preflight."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Trial:
    """A program that this machine must have; preflight runs it."""

    argv: tuple[str, ...]
    """A call, such as for its version, that must end with code 0."""
    mend: str
    """The command that installs it."""


@dataclass(frozen=True, slots=True)
class Check:
    """One thing that preflight tried: what, whether it works, what it found, and the command that fixes it (``mend``)."""

    what: str
    works: bool
    found: str
    mend: str = ""
    required: bool = True
    group: str = ""
    """Its row group in a matrix of checks; empty for a check of one study."""
    tried: bool = True
    """False if it cannot be tried at present; it then counts as not working."""
