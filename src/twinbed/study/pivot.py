"""The section ``tables`` of a study file: additional tables of the report, with the rows and columns to print.

Each number of a table belongs to one cell on one testbed. So each factor that varies is in the rows, is the columns, or has
one level by ``where``.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Literal

from pydantic import BaseModel, ConfigDict, Field, StrictStr

from twinbed.model.near import nearest
from twinbed.model.run import Level, level_text
from twinbed.study.document import Entries, Items, Node, Position, Problem, Scalar, is_absent, listed, node_at, plain
from twinbed.study.factor import TESTBED, Factor, match_level
from twinbed.study.params import Section, shown

TABLES = "tables"
UNITS: Mapping[str, tuple[str, float]] = {
    "s": ("s", 1.0),
    "ms": ("s", 1e-3),
    "us": ("s", 1e-6),
    "B": ("bytes", 1.0),
    "kB": ("bytes", 1e3),
    "MB": ("bytes", 1e6),
    "kbit/s": ("bit/s", 1e3),
    "Mbit/s": ("bit/s", 1e6),
    "Gbit/s": ("bit/s", 1e9),
    "%": ("1", 0.01),
}
"""Unit of a table -> the metric's base unit, and the size in it."""
Unit = Literal["s", "ms", "us", "B", "kB", "MB", "kbit/s", "Mbit/s", "Gbit/s", "%"]


class Pivot(BaseModel):
    """One table."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    title: StrictStr = Field(examples=["Requests per second"], description="heading of the table")
    metric: StrictStr = Field(examples=["requests_per_second"], description="metric to show, by its name in `twinbed describe`")
    host: StrictStr = Field("", examples=["client"], description="client, server or machine; empty: the value of the whole run")
    direction: Literal["", "client_to_server", "server_to_client"] = Field(
        "", description="direction, for a metric that is measured in both"
    )
    rows: tuple[StrictStr, ...] = Field(examples=[["payload"]], description="factors whose levels are the rows")
    columns: StrictStr = Field(TESTBED, description="the factor whose levels are the columns")
    where: dict[str, Any] = Field(
        {},
        examples=[{"payload": "1MiB"}],
        description="factor -> its level, or a list of levels; runs with other levels are left out",
    )
    show: Literal["mean", "change"] = Field(
        "mean", description="mean: means; change: differences from the column that `against` names"
    )
    against: Any = Field(
        None, examples=["off"], description="level of the column that changes are relative to; null: the reference"
    )
    spread: Literal["interval", "stdev", "none"] = Field(
        "interval", description="number after ±: half the mean's confidence interval, or the standard deviation"
    )
    unit: Unit | None = Field(None, description="unit, such as ms; null: chosen to suit the numbers")
    published: StrictStr | None = Field(
        None, examples=["ICNC-II"], description="a table of `twinbed published list` to print next to this one"
    )


class PivotReader:
    """A reader of the section ``tables``. Errors are appended to ``problems``, and a table with an error is left out."""

    def __init__(
        self,
        factors: Sequence[Factor],
        whole: Entries,
        reference: str,
        metrics: Mapping[str, str],
        printed: Sequence[str],
        problems: list[Problem],
    ) -> None:
        """Prepare to read. ``whole`` is the study without a profile's changes, ``metrics`` maps names to units, ``printed``
        names the printed tables; empty: names are not checked."""
        self.by_name = {factor.target: factor for factor in factors} | {factor.name: factor for factor in factors}
        self.names = [factor.name for factor in factors]
        self.whole = whole
        self.reference = reference
        self.metrics = metrics
        self.printed = printed
        self.problems = problems

    def read(self, node: Node | None) -> tuple[Pivot, ...]:
        if node is None or is_absent(node):
            return ()
        if not isinstance(node, Items):
            self.problems.append(Problem.at(node.place, TABLES, "is not a list", "a list of tables, each a mapping"))
            return ()
        tables = (self._table(f"{TABLES}[{index}]", item) for index, item in enumerate(node.items))
        return tuple(table for table in tables if table is not None)

    def _table(self, path: str, node: Node) -> Pivot | None:
        if not isinstance(node, Entries):
            allowed = "a mapping such as {title: Requests per second, metric: requests_per_second, rows: [payload]}"
            self.problems.append(Problem.at(node.place, path, "is not a mapping", allowed))
            return None
        before = len(self.problems)
        section = Section(path, Pivot, node)
        self.problems.extend(section.unknown_keys())
        table = section.check({}, self.problems)
        rows = self._rows(f"{path}.rows", node.entries.get("rows"))
        columns = self._factor(f"{path}.columns", node.entries.get("columns", Scalar(TESTBED, node.place)))
        where, absent = self._where(f"{path}.where", node.entries.get("where"))
        if not isinstance(table, Pivot) or columns is None:
            return None
        self._check_metric(path, table, node)
        self._check_printed(path, table, node)
        against = self._against(f"{path}.against", table, columns, node)
        self._check_held(path, node.place, [factor.name for factor in (*rows, columns)], where)
        if absent or len(self.problems) > before:
            return None
        names = tuple(factor.name for factor in rows)
        return table.model_copy(update={"rows": names, "columns": columns.name, "where": where, "against": against})

    def _rows(self, key: str, node: Node | None) -> list[Factor]:
        items = node.items if isinstance(node, Items) else ()
        if isinstance(node, Items) and not items:
            self.problems.append(Problem.at(node.place, key, "names no factor", listed(self.names)))
        factors = (self._factor(key, item) for item in items)
        return [factor for factor in factors if factor is not None]

    def _check_metric(self, path: str, table: Pivot, node: Entries) -> None:
        if not self.metrics:
            return
        place = node.entries["metric"].place
        unit = self.metrics.get(table.metric)
        if unit is None:
            near = nearest(table.metric, self.metrics)
            message = f"{table.metric!r} is measured by neither the workload nor an instrument of this study"
            self.problems.append(Problem.at(place, f"{path}.metric", message, "a metric that `twinbed describe` lists", near))
        elif table.unit is not None and UNITS[table.unit][0] != unit.partition("/")[0] and UNITS[table.unit][0] != unit:
            fitting = [name for name, (base, _) in UNITS.items() if base in (unit, unit.partition("/")[0])]
            message = f"{table.metric} is in {unit} and cannot be shown in {table.unit}"
            self.problems.append(Problem.at(node.entries["unit"].place, f"{path}.unit", message, listed(fitting) or "none"))

    def _check_printed(self, path: str, table: Pivot, node: Entries) -> None:
        if self.printed and table.published is not None and table.published not in self.printed:
            near = nearest(table.published, self.printed)
            message = f"{table.published!r} is not a printed table"
            place = node.entries["published"].place
            self.problems.append(Problem.at(place, f"{path}.published", message, listed(self.printed), near))

    def _factor(self, key: str, node: Node) -> Factor | None:
        """Return the factor of this name. A value that is not a name is reported elsewhere."""
        if not isinstance(node, Scalar) or not isinstance(node.value, str):
            return None
        factor = self.by_name.get(node.value)
        if factor is None:
            message = f"{node.value!r} is not a factor"
            self.problems.append(Problem.at(node.place, key, message, listed(self.names), nearest(node.value, self.names)))
        return factor

    def _where(self, key: str, node: Node | None) -> tuple[dict[str, list[Level]], bool]:
        """Return factor -> the levels in the table, and whether a profile leaves out all levels of a factor."""
        levels_of: dict[str, list[Level]] = {}
        absent = False
        for name, value in node.entries.items() if isinstance(node, Entries) else ():
            place = node.keys[name] if isinstance(node, Entries) else value.place
            factor = self._factor(f"{key}.{name}", Scalar(name, place))
            if factor is None:
                continue
            single = match_level(value, factor)
            items = value.items if isinstance(value, Items) and single is None else (value,)
            levels: list[Level] = []
            for item in items:
                level = match_level(item, factor)
                if level is not None:
                    levels.append(level.value)
                elif not self._left_out(factor, item):
                    self._not_a_level(f"{key}.{name}", factor, item)
            levels_of[factor.name] = levels
            absent = absent or not levels
        return levels_of, absent

    def _against(self, key: str, table: Pivot, columns: Factor, whole: Entries) -> Level:
        node = whole.entries.get("against")
        if node is None or is_absent(node):
            if table.show == "change" and columns.name != TESTBED:
                levels = listed(level_text(level.value) for level in columns.levels)
                self.problems.append(
                    Problem.at(whole.place, key, "is required: the level that changes are relative to", levels)
                )
            return self.reference if table.show == "change" else None
        if table.show == "mean":
            self.problems.append(Problem.at(node.place, key, "has no effect on means", "against only with show: change"))
            return None
        level = match_level(node, columns)
        if level is None and not self._left_out(columns, node):
            self._not_a_level(key, columns, node)
        return None if level is None else level.value

    def _left_out(self, factor: Factor, item: Node) -> bool:
        """Return whether it is a level of the study without a profile."""
        written = node_at(self.whole, ("factors", factor.name))
        return isinstance(written, Items) and any(plain(level) == plain(item) for level in written.items)

    def _not_a_level(self, key: str, factor: Factor, item: Node) -> None:
        levels = [level_text(level.value) for level in factor.levels]
        written = shown(item.value) if isinstance(item, Scalar) else "a list or mapping"
        near = nearest(level_text(item.value), levels) if isinstance(item, Scalar) else ()
        self.problems.append(Problem.at(item.place, key, f"{written} is not a level of {factor.name}", listed(levels), near))

    def _check_held(self, path: str, place: Position, shown_by: Sequence[str], where: Mapping[str, Sequence[Level]]) -> None:
        for name in dict.fromkeys(name_shown for name_shown in shown_by if shown_by.count(name_shown) > 1):
            self.problems.append(Problem.at(place, path, f"uses {name} twice", "each factor once, in rows or as columns"))
        for factor in {factor.name: factor for factor in self.by_name.values()}.values():
            held = where.get(factor.name)
            several = len(factor.levels) > 1 if held is None else len(held) > 1
            if factor.name not in shown_by and several:
                allowed = f"{factor.name} in rows or as columns, or one level of it in where"
                self.problems.append(Problem.at(place, path, f"mixes several levels of {factor.name}", allowed))
