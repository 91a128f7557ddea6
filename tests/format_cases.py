"""The cases of formats: ``tests/golden/formats/<format>/<case>/`` holds ``input*`` (one file), ``expected.json``, ``how.md``,
which says how the expected values were got (from where the text is, and by what other means the numbers were read).

``expected.json``: a list, an object a measurement.  ``values`` (metric, or metric@host, or metric>direction -> number or null)
is exact: a value that it does not name must be null or not there at all.  ``others`` names further values that must be numbers:
those numbers are not held here, since nothing but this code has worked them out from this input; how.md names each and says
why.  Of ``tables`` (name -> number of rows), ``cautions`` (kinds, in order), ``flaws`` (lines, null where there are
none), ``facts``, ``started_s`` and ``of`` (testbed, levels, replicate; null where it is of no run), what is not named is not
looked at.  ``{"error": "text"}`` instead of the list: it is refused, and the reason has the text in it.  ``options.json``: the
manifest's options.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

FOLDER = Path(__file__).parent / "golden" / "formats"


@dataclass(frozen=True)
class Case:
    format: str
    folder: Path

    @property
    def input(self) -> Path:
        (found,) = self.folder.glob("input*")
        return found

    @property
    def expected(self) -> Any:
        return json.loads((self.folder / "expected.json").read_text())

    @property
    def options(self) -> dict[str, Any]:
        file = self.folder / "options.json"
        return json.loads(file.read_text()) if file.exists() else {}

    def __str__(self) -> str:
        return f"{self.format}/{self.folder.name}"


def cases() -> Iterator[Case]:
    for folder in sorted(FOLDER.glob("*/*/")):
        yield Case(folder.parent.name, folder)
