"""The base of every error that is the user's or the system's, not a bug: a message, an exit code, advice."""

from __future__ import annotations


class TwinbedError(Exception):
    """Shown as a message on standard error, without a traceback; in Python the advice is a note below it."""

    exit_code = 2

    def __init__(self, message: str, *, exit_code: int | None = None, advice: str = "") -> None:
        super().__init__(message)
        self.message = message
        self.advice = advice
        if advice:
            self.add_note(advice)
        if exit_code is not None:
            self.exit_code = exit_code
