"""Console examples: a page has the commands, and what they print is put in when the site is made.

A fenced block that begins with ```` ```console executed ```` holds command lines after ``$``. The commands of a page run one
after another in one folder. The folder has ``results/NAME`` from the kept archive ``NAME.zip``, and the captures of
tests/golden that the page names. ``head=N`` keeps the first N lines of what each command prints, and ``from=WORD`` leaves out
what comes before the first line with WORD.
"""

from __future__ import annotations

import contextlib
import io
import os
import re
import shlex
import shutil
import tempfile
import textwrap
import zipfile
from collections.abc import Iterator
from contextlib import redirect_stderr, redirect_stdout
from pathlib import Path
from unittest import mock

from manual.handbook import MEASURED
from twinbed.cli.main import run

ROOT = Path(__file__).parents[1]
EXAMPLES = tuple(sorted((ROOT / "docs/examples").glob("*.zip")))
"""Archives of results that examples are about."""
CAPTURES = tuple(sorted((ROOT / "tests/golden/captures").glob("*.pcap")))
ACCEPTED = (0, 3, 4, 5)
"""Exit codes of an example: done, something is missing on this machine, different, inconclusive."""
WIDTH = 100
"""Characters of a line of prose; longer ones are wrapped, as a terminal does. Tables are not."""
_BLOCK = re.compile(r"^(?P<indent> *)```console executed(?P<options>[^\n]*)\n(?P<body>.*?)^ *```$", re.DOTALL | re.MULTILINE)
_TERMINAL = {"COLUMNS": "80", "NO_COLOR": "1"}


def filled(page: str, *, keep_mark: bool = False) -> str:
    """Return a page with the output below the commands of each marked block; ``keep_mark`` so that it can be filled again."""
    if not _BLOCK.search(page):
        return page
    with tempfile.TemporaryDirectory(prefix="twinbed-examples-") as folder, contextlib.chdir(folder):
        for archive in (*EXAMPLES, *MEASURED):
            if f"results/{archive.stem}" in page:
                with zipfile.ZipFile(archive) as packed:
                    packed.extractall(Path("results") / archive.stem)
        for capture in CAPTURES:
            if capture.name in page:
                shutil.copyfile(capture, capture.name)
        return _BLOCK.sub(lambda block: _filled(block, keep_mark=keep_mark), page)


def _filled(block: re.Match[str], *, keep_mark: bool) -> str:
    options = dict(each.split("=", 1) for each in shlex.split(block["options"]))
    mark = f" executed{block['options']}" if keep_mark else ""
    lines = [f"```console{mark}"]
    commands = [line.strip() for line in block["body"].splitlines() if line.strip().startswith("$ twinbed ")]
    for command in commands:
        lines += [command, *_shown(output(command.removeprefix("$ twinbed ")), options)]
    lines.append("```")
    return "\n".join(f"{block['indent']}{line}".rstrip() for line in lines)


def _shown(text: str, options: dict[str, str]) -> Iterator[str]:
    lines = text.rstrip().splitlines()
    if "from" in options:
        first = next((number for number, line in enumerate(lines) if options["from"] in line), None)
        if first is None:
            raise ValueError(f"no line of an example has {options['from']!r}; it printed:\n{text}")
        lines = lines[first:]
        yield "..."
    most = int(options.get("head", len(lines)))
    for line in lines[:most]:
        is_prose = "  " not in line.strip()
        yield from textwrap.wrap(line, WIDTH) if is_prose and len(line) > WIDTH else [line]
    if len(lines) > most:
        yield "..."


def output(command: str) -> str:
    """Return what a command line prints to standard output, as a terminal of 80 columns without colours shows it."""
    taken = io.TextIOWrapper(io.BytesIO(), encoding="utf-8", write_through=True)
    with mock.patch.dict(os.environ, _TERMINAL), redirect_stdout(taken), redirect_stderr(io.StringIO()) as errors:
        code = run(shlex.split(command))
    if code not in ACCEPTED:
        raise ValueError(f"twinbed {command}: exit code {code}: {errors.getvalue()}")
    return taken.buffer.getvalue().decode()
