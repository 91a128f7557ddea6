"""One way to write each level, over all sources: a factor that a source lacks is looked up in the settings of its runs."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Mapping, Sequence

from twinbed.model.run import Level, level_text
from twinbed.model.tables import TESTBED
from twinbed.model.units import QuantityError, parse_duration, parse_rate, parse_size
from twinbed.results.merge.sources import Source


class UnifiedLevels:
    """The levels of all runs, each written as its first source writes it."""

    def __init__(self, of: Sequence[Source]) -> None:
        self.factors: list[str] = []
        for source in of:
            names = (name for record in source.store.records for name in record.levels)
            self.factors += [name for name in dict.fromkeys((*names, *source.given)) if name not in (*self.factors, TESTBED)]
        self._written: dict[str, dict[str, Level]] = {factor: {} for factor in self.factors}
        self._settings = {(source.name, factor) for source in of for factor in self.factors if _sets(source, factor)}
        self.notes: list[str] = []

    def of(self, source: Source, own: Mapping[str, Level], settings: Mapping[str, object]) -> dict[str, Level]:
        """Return the level of every factor in a run; None for an unknown one."""
        if TESTBED in own:
            testbed = source.testbeds.get(str(own.get(TESTBED)), "")
        else:
            made = settings.get("testbed")
            testbed = source.testbeds[str(made["name"]) if isinstance(made, Mapping) else next(iter(source.testbeds))]
        return {TESTBED: testbed, **{factor: self._one(factor, source, own, settings) for factor in self.factors}}

    def _one(self, factor: str, source: Source, own: Mapping[str, Level], settings: Mapping[str, object]) -> Level:
        level = own.get(factor)
        value = _setting(settings, factor) if (source.name, factor) in self._settings else None
        if factor in source.given:
            level, value = source.given[factor], None
        elif factor not in own:
            if value is None:
                self._note(
                    f"{source.name} does not have {factor}: give it with --level, or its runs stay in cells of their own"
                )
                return None
            level = value
            self._note(f"{source.name}: {factor} is {level_text(value)}, from its runs' settings")
        written = self._written[factor]
        keys = [*([] if value is None else [_key(value)]), *_keys(level)]
        known = next((key for key in keys if key in written), None)
        if known is None:
            written.update(dict.fromkeys(keys, level))
            return level
        return written[known]

    def _note(self, text: str) -> None:
        if text not in self.notes:
            self.notes.append(text)


def _sets(source: Source, factor: str) -> bool:
    """Return whether a factor of a source is the setting of that name.

    Each value of the setting must go with one level, or the source must have no such factor.
    """
    levels_of: dict[str, set[str]] = {}
    for record in source.store.records:
        value = _setting(record.settings, factor)
        if value is not None and factor in record.levels:
            levels_of.setdefault(_key(value), set()).add(_key(record.levels[factor]))
    return all(len(levels) == 1 for levels in levels_of.values())


def _setting(settings: Mapping[str, object], factor: str) -> Level:
    """Return the value of the one setting of that name; None if there is none, or several."""
    leaves = dict(_leaves({part: settings[part] for part in settings if part != "levels"}))
    values = [value for name, value in leaves.items() if name == factor or name.endswith(f".{factor}")]
    present = [value for value in values if value is not None]
    return present[0] if len(present) == 1 else None


def _leaves(data: Mapping[str, object], above: str = "") -> Iterator[tuple[str, Level]]:
    for name, value in data.items():
        if isinstance(value, Mapping):
            yield from _leaves(value, f"{above}{name}.")
        elif isinstance(value, str | int | float | bool):
            yield f"{above}{name}", value


def _key(value: Level) -> str:
    return level_text(value)


def _keys(level: Level) -> Iterator[str]:
    """Yield all that a level may mean: ``500B`` means 500 too."""
    yield _key(level)
    if isinstance(level, str):
        for parse in (parse_size, parse_rate, parse_duration):
            with contextlib.suppress(QuantityError):
                yield _key(parse(level))
