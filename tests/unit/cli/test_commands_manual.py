"""The page of commands and their man pages have all that the help has."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import pytest
from manual import commands


def test_examples_keep_their_lines() -> None:
    (plan,) = (page for page in commands.pages() if page.name == "twinbed plan")
    lines = [line.strip() for line in commands.section(plan).splitlines()]
    assert any(line.startswith("twinbed plan studies/quickstart.yaml -s replicates=20 ") for line in lines)
    assert ".nf\nExamples:\n" in commands.man(plan)


@pytest.mark.skipif(shutil.which("groff") is None, reason="no groff, which reads man pages")
def test_man_pages_have_no_fault(tmp_path: Path) -> None:
    """groff(1) warns of all that is odd with -ww, and shows what the help has: its last word too."""
    commands.write_man(tmp_path)
    pages = {page.name.replace(" ", "-"): page for page in commands.pages()}
    assert sorted(file.stem for file in tmp_path.iterdir()) == sorted(pages)
    files = [str(tmp_path / f"{name}.1") for name in pages]
    groff = ["groff", "-man", "-ww", "-Kutf8", "-Tutf8", "-P-cbou", "-rLL=1000n"]
    shown = subprocess.run([*groff, *files], capture_output=True, text=True, check=True)
    assert shown.stderr == ""
    words = " ".join(shown.stdout.replace("‐", "-").replace("−", "-").split())
    for page in pages.values():
        for names, text in (row for rows in page.options.values() for row in rows):
            assert names.split(",")[0] in words and text.split()[-1].strip("'\"") in words, (page.name, names)
