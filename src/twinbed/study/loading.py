"""From the text of a study file to a Study: as it stands, or with one of its profiles, and with overrides.

Every profile is read, so that all problems of a file are reported at once.  The folder studies/ of the repository comes with
every installation: ``shipped_names`` lists its studies.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path

from twinbed.study.catalogue import Catalogue
from twinbed.study.document import Entries, Position, Problem, StudyError, listed, parse
from twinbed.study.profile import FIXED, Profile, chosen, override, read_profiles
from twinbed.study.reader import StudyReader
from twinbed.study.study import KEYS, Study


def load(text: str, filename: str, catalogue: Catalogue, overrides: Sequence[str] = (), profile: str | None = None) -> Study:
    """Return the study that ``text`` describes, changed by one of its profiles and then by ``-s`` overrides.

    Raises StudyError with all problems, those of other profiles too."""
    problems: list[Problem] = []
    start = Position(filename, 1, 1)
    root = parse(text, filename, problems)
    if root is None:
        raise StudyError(problems or [Problem.at(start, "", "is empty", f"a mapping with the keys {listed(KEYS)}")])
    if not isinstance(root, Entries):
        raise StudyError([*problems, Problem.at(root.place, "", "is not a mapping", f"a mapping with the keys {listed(KEYS)}")])
    profiles = read_profiles(root, problems)
    wanted = chosen(profile, profiles, problems)
    study = None
    # Overrides may fix or break the chosen profile; they say nothing about others.
    for tried in (wanted,) if overrides else (None, *profiles.values()):
        of_profile: list[Problem] = []
        made = _read_with(tried, root, filename, text, catalogue, overrides, of_profile)
        study = made if tried is wanted else study
        known = {(problem.file, problem.line, problem.column, problem.key) for problem in problems}
        fresh = [problem for problem in of_profile if (problem.file, problem.line, problem.column, problem.key) not in known]
        problems += fresh if tried is None else map(tried.named_in, fresh)
    if problems or study is None:
        raise StudyError(problems)
    return study


def _read_with(
    profile: Profile | None,
    root: Entries,
    filename: str,
    text: str,
    catalogue: Catalogue,
    overrides: Sequence[str],
    problems: list[Problem],
) -> Study | None:
    """Return the study with a profile's changes, if one is given, and then with the overrides."""
    changeable = tuple(key for key in KEYS if key not in FIXED)
    changed = root if profile is None else profile.put_in(root, changeable, problems)
    for number, item in enumerate(overrides, start=1):
        changed = override(changed, item, number, ("study", *changeable), problems)
    return StudyReader(changed, root, catalogue, problems).study(filename, text, tuple(overrides), profile)


SHIPPED = Path(__file__).parents[1] / "studies"
_QUICK = re.compile(r"^profiles:\n(?:  .*\n)*?  quick:", re.MULTILINE)
_QUESTION = re.compile(r"^# The question: ([^?]*\?)", re.MULTILINE)


def shipped_names() -> Sequence[str]:
    return sorted(path.stem for path in SHIPPED.glob("*.yaml"))


def shipped_file(name: str) -> Path | None:
    """Return the file of the shipped study of this name; None where there is none."""
    return SHIPPED / f"{name}.yaml" if name in shipped_names() else None


def quick_profile(text: str) -> str | None:
    """Return the name of a study's profile for small machines; None where it has none."""
    return "quick" if _QUICK.search(text) else None


def question_of(text: str) -> str:
    """Return the question with which a shipped study begins, on one line; empty where it does not begin with one."""
    asked = _QUESTION.search(text)
    return " ".join(asked[1].replace("\n#", " ").split()) if asked else ""
