"""`twinbed` as whoever calls it sees it, in this process: a program of its own takes a second to start, which is for tests of
what processes do (signals, streams, limits, environments)."""

from __future__ import annotations

import contextlib
import io
import subprocess
from pathlib import Path

from twinbed.cli.main import run


def twinbed(*arguments: object, cwd: Path | None = None) -> subprocess.CompletedProcess[str]:
    """Its exit code, and what it wrote."""
    words = [str(argument) for argument in arguments]
    out, err = (io.TextIOWrapper(io.BytesIO(), encoding="utf-8", write_through=True) for _ in range(2))
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err), contextlib.chdir(cwd or Path.cwd()):
        code = run(words)
    return subprocess.CompletedProcess(words, code, *(stream.buffer.getvalue().decode() for stream in (out, err)))  # type: ignore[attr-defined]
