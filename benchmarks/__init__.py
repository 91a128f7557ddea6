"""The cost of twinbed itself, compared with its stated limits. Run by ``make bench``; nothing here is a test."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Figure:
    """One measured cost: what, its typical value, the least and the most seen, and what it may typically be."""

    what: str
    value: float
    spread: tuple[float, float]
    unit: str
    limit: float | None = None
    """The most. None promises nothing."""
    least: float | None = None
    """Of what is better the more there is of it."""

    @property
    def kept(self) -> bool:
        return (self.limit is None or self.value <= self.limit) and (self.least is None or self.value >= self.least)


def twinbed(*arguments: str, env: Mapping[str, str] | None = None, allowed: Sequence[int] = (0,)) -> str:
    """Run the command as a user would; returns its standard output. Its progress goes to our standard error.

    ``allowed``: exit codes. Raises CalledProcessError on others."""
    argv = [sys.executable, "-m", "twinbed.cli.main", *arguments]
    done = subprocess.run(argv, env={**os.environ, **(env or {})}, stdout=subprocess.PIPE, check=False)
    if done.returncode not in allowed:
        raise subprocess.CalledProcessError(done.returncode, argv, done.stdout)
    return done.stdout.decode()
