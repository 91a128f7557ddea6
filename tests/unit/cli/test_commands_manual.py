"""The reference of commands and their man pages are what the commands say of themselves."""

from __future__ import annotations

import runpy
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

DOCS = Path(__file__).parents[3] / "docs"
MADE = runpy.run_path(str(DOCS / "make_commands.py"))


def test_the_reference_is_what_commands_say() -> None:
    """In a process of its own: click keeps the names of a command's help option from whoever asked first."""
    made = "import runpy, sys; sys.stdout.write(runpy.run_path(sys.argv[1])['text']())"
    command = [sys.executable, "-c", made, str(DOCS / "make_commands.py")]
    text = subprocess.run(command, capture_output=True, text=True, check=True, encoding="utf-8").stdout
    assert (DOCS / "commands.md").read_text(encoding="utf-8") == text, "run: python docs/make_commands.py"


def test_examples_keep_their_lines() -> None:
    (plan,) = (page for page in MADE["pages"]() if page.name == "twinbed plan")
    assert "\ntwinbed plan studies/quickstart.yaml -s replicates=20 " in "\n".join(
        line.strip() for line in MADE["_section"](plan).splitlines()
    )
    assert ".nf\nExamples:\n" in MADE["man"](plan)


@pytest.mark.skipif(shutil.which("groff") is None, reason="no groff, which reads man pages")
def test_man_pages_have_no_fault(tmp_path: Path) -> None:
    """groff(1) warns of all that is odd with -ww, and shows what the help has: its last word too."""
    MADE["main"](["--man", str(tmp_path)])
    pages = {page.name.replace(" ", "-"): page for page in MADE["pages"]()}
    assert sorted(file.stem for file in tmp_path.iterdir()) == sorted(pages)
    files = [str(tmp_path / f"{name}.1") for name in pages]
    groff = ["groff", "-man", "-ww", "-Kutf8", "-Tutf8", "-P-cbou", "-rLL=1000n"]
    shown = subprocess.run([*groff, *files], capture_output=True, text=True, check=True)
    assert shown.stderr == ""
    words = " ".join(shown.stdout.replace("‐", "-").replace("−", "-").split())
    for page in pages.values():
        for names, text in page.options:
            assert names.split(",")[0] in words and text.split()[-1].strip("'\"") in words, (page.name, names)
