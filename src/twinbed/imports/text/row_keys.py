"""Which run each row of a table or document belongs to, by its own columns or paths: testbed, levels, replicate.

Nothing is guessed: a row without a testbed, or with a level that is no plain text, is of no run, and a flaw says so.
"""

from __future__ import annotations

from pydantic import BaseModel, ConfigDict, Field, field_validator, model_validator

from twinbed.contracts.format import Diagnostic, RunKey
from twinbed.imports.text.figures import of_json
from twinbed.imports.text.levels import RESERVED, is_plain, number_or_text, replicate_of
from twinbed.model.json import Document, Json
from twinbed.model.run import Level

_NOBODY = RunKey(known=False)


class RowKeys(BaseModel):
    """Options that name the columns or paths."""

    model_config = ConfigDict(frozen=True, extra="ignore")

    testbed: str = Field("", description="the column or path that says of which testbed a row is")
    levels: dict[str, str] = Field(
        {}, description="column or path -> factor; or a list of those that are called what their factors are"
    )
    replicate: str = Field("", description="the column or path that says which replicate of its cell a row is of")

    @field_validator("levels", mode="before")
    @classmethod
    def _listed(cls, levels: object) -> object:
        if not isinstance(levels, list | tuple) or not all(isinstance(place, str) for place in levels):
            return levels
        if len(set(levels)) < len(levels):
            raise ValueError("one of them is there twice")
        return {place: place for place in levels}

    @model_validator(mode="after")
    def _factors(self) -> RowKeys:
        for place, factor in self.levels.items():
            if factor in RESERVED:
                raise ValueError(
                    f"levels: {factor} is no factor, but has a meaning of its own; call it otherwise: {place}: name"
                )
            if not place or not factor or not is_plain(factor):
                raise ValueError(f"levels: {place!r}: {factor!r} is no name of a factor")
        if len(set(self.levels.values())) < len(self.levels):
            raise ValueError("levels: two of them are the same factor")
        places = self.key_places()
        if twice := next((place for place in places if places.count(place) > 1), None):
            raise ValueError(f"{twice} is two of testbed, replicate and levels")
        return self

    def key_places(self) -> list[str]:
        """The columns or paths."""
        return [place for place in (self.testbed, *self.levels, self.replicate) if place]

    def of(self, cells: Document, line: int | None, diagnostics: list[Diagnostic]) -> RunKey | None:
        """``cells`` has what stands in them, as far as they are there. None where nothing is asked."""
        if not self.key_places():
            return None
        wrong = next((f"{place} {why}" for place in self.key_places() if (why := self._wrong(place, cells))), "")
        if wrong:
            diagnostics.append(Diagnostic(f"{wrong}, so that it is of no run", line))
            return _NOBODY
        replicate = cells.get(self.replicate)
        return RunKey(
            str(cells.get(self.testbed, "")),
            {factor: _level(cells[place]) for place, factor in self.levels.items()},
            None if replicate is None else replicate_of(str(replicate)),
        )

    def _wrong(self, place: str, cells: Document) -> str:
        """Why a row cannot be of what stands there; empty if it can."""
        if place not in cells:
            return "is not there"
        value = cells[place]
        if isinstance(value, str) and not is_plain(value):
            return "is no plain text"
        if place == self.testbed:
            return "is empty" if value in (None, "") else "" if isinstance(value, str) else "is no text"
        if value is None or isinstance(value, str):
            return ""
        if isinstance(value, bool) and place != self.replicate:
            return ""
        return "is no plain text or number" if of_json(value) is None else ""


def _level(value: Json) -> Level:
    if isinstance(value, str):
        return number_or_text(value) if value else None
    return value if isinstance(value, int | float) else None
