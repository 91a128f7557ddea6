"""Record docs/film.cast, a session in a terminal, as asciicast v2: ``python -m manual.record_film``, as root.

The commands are run as anybody would run them, in a new folder, in a terminal of their own; nothing is cut or changed. The
image of hosts should be there, or its building is filmed too. ``manual/draw_film.py`` draws what was recorded.

Source of the format: docs.asciinema.org/manual/asciicast/v2.
"""

from __future__ import annotations

import fcntl
import json
import os
import pty
import select
import struct
import sys
import tempfile
import termios
import time
from collections.abc import Iterator
from pathlib import Path

COLUMNS, ROWS = 100, 30
COMMANDS = (
    "twinbed plan offload --profile quick",
    "twinbed run offload --profile quick",
    "twinbed compare results/offload-quick -q",
)
CAST = Path(__file__).parents[1] / "docs/film.cast"
_PROGRAM = "import sys; from twinbed.cli.main import main; sys.exit(main())"
_EVERY_S = 0.1
"""Output within this time is one event."""


def output(command: str, folder: Path) -> Iterator[bytes]:
    """Yield what a command writes to its terminal, piece by piece."""
    _, *words = command.split()
    child, terminal = pty.fork()
    if child == 0:
        os.chdir(folder)
        os.environ["TERM"] = "xterm-256color"
        for name in ("NO_COLOR", "COLORTERM", "COLUMNS", "LINES"):
            os.environ.pop(name, None)
        os.execv(sys.executable, [sys.executable, "-c", _PROGRAM, *words])
    fcntl.ioctl(terminal, termios.TIOCSWINSZ, struct.pack("HHHH", ROWS, COLUMNS, 0, 0))
    while True:
        select.select([terminal], [], [])
        time.sleep(_EVERY_S)
        try:
            yield os.read(terminal, 1 << 16)
        except OSError:  # Linux's end of a terminal
            break
    os.close(terminal)
    _, status = os.waitpid(child, 0)
    code = os.waitstatus_to_exitcode(status)
    if code not in (0, 4, 5):  # equivalent, different, inconclusive
        raise SystemExit(f"{command}: exit code {code}")


def events(folder: Path) -> Iterator[tuple[float, str, str]]:
    begun = time.monotonic()
    for command in COMMANDS:
        yield time.monotonic() - begun, "o", f"\x1b[1m$ {command}\x1b[0m\r\n"
        rest = b""
        for piece in output(command, folder):
            text = (rest + piece).decode(errors="ignore")  # a character cut in two
            rest = (rest + piece)[len(text.encode()) :]
            yield time.monotonic() - begun, "o", text
        yield time.monotonic() - begun, "o", "\r\n"


def main() -> None:
    header = {"version": 2, "width": COLUMNS, "height": ROWS, "title": "twinbed", "env": {"TERM": "xterm-256color"}}
    with tempfile.TemporaryDirectory() as folder:
        lines = [json.dumps(header)]
        lines += [json.dumps([round(at, 1), kind, text], ensure_ascii=False) for at, kind, text in events(Path(folder))]
    CAST.write_text("\n".join(lines) + "\n")


if __name__ == "__main__":
    main()
