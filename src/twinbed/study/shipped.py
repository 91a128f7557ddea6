"""The studies that come with twinbed: the folder studies/ of the repository, which every installation has."""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path

FOLDER = Path(__file__).parents[1] / "studies"
_QUICK = re.compile(r"^profiles:\n(?:  .*\n)*?  quick:", re.MULTILINE)
_QUESTION = re.compile(r"(?:# yaml-language-server:.*\n)?# The question: ([^?]*\?)")


def names() -> Sequence[str]:
    return sorted(path.stem for path in FOLDER.glob("*.yaml"))


def file_of(name: str) -> Path | None:
    """The file of the study of this name; None where there is none."""
    return FOLDER / f"{name}.yaml" if name in names() else None


def profile(text: str) -> str | None:
    """The profile for a small machine; None for a study that has none."""
    return "quick" if _QUICK.search(text) else None


def question(text: str) -> str:
    """The question with which each of them begins, on one line; empty where the text begins otherwise."""
    asked = _QUESTION.match(text)
    return " ".join(asked[1].replace("\n#", " ").split()) if asked else ""
