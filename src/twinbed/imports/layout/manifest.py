"""Manifests: a CSV with a row a file, or YAML with patterns, formats and facts of the testbeds."""

from __future__ import annotations

import csv
import io
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

from pydantic import BaseModel, ConfigDict, Field, JsonValue, ValidationError

from twinbed.contracts.format import FormatError
from twinbed.imports.layout.names import shown
from twinbed.imports.layout.pattern import compile_pattern, compile_regex
from twinbed.imports.layout.run_key import Assigner, FileKey, FirstOf, ImportRefused, NotAssigned, snapshot_of
from twinbed.imports.text.column_mapping import row_keys_of
from twinbed.imports.text.levels import RESERVED, is_plain, number_or_text, replicate_of
from twinbed.metrics.metric import Scale
from twinbed.metrics.own import OwnMetric
from twinbed.model.run import Level
from twinbed.model.units import Rate
from twinbed.study.document import Entries, Node, Position, Problem, parse, place_of, plain

MOST_BYTES = 64 * 2**20
Fact = str | int | float | bool


class _Strict(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid")


class Files(_Strict):
    """Some of the files, by their paths."""

    pattern: str | None = None
    regex: str | None = None
    format: str = ""
    options: dict[str, JsonValue] = Field(default_factory=dict)
    metrics: tuple[OwnMetric, ...] = ()
    host: str = ""
    snapshot: Literal["", "before", "after"] = ""
    testbed: str = ""
    levels: dict[str, Fact | None] = Field(default_factory=dict)

    def assigner(self) -> Assigner:
        if (self.pattern is None) == (self.regex is None):
            raise ImportRefused("each entry of 'files' needs either a pattern or a regex")
        reserved = [name for name in self.levels if name in RESERVED]
        if reserved:
            raise ImportRefused(f"{reserved[0]} is no factor; write it as a key of the entry, not below 'levels'")
        fixed = FileKey(
            testbed=self.testbed,
            levels=self.levels,
            host=self.host,
            format=self.format,
            options=self.options,
            metrics=self.metrics,
            snapshot=self.snapshot,
            within=self._within(),
        )
        self._words_have_a_scale()
        if self.pattern is not None:
            return compile_pattern(self.pattern, fixed)
        return compile_regex(self.regex or "", fixed)

    def _within(self) -> tuple[str, ...]:
        """Return the keys that options read from files. Raises ImportRefused where the entry gives one too."""
        try:
            within = row_keys_of(self.options)
        except FormatError as error:
            raise ImportRefused(str(error)) from None
        both = [name for name in (*(["testbed"] if self.testbed else []), *self.levels) if name in within]
        if both:
            raise ImportRefused(
                f"the entry gives {both[0]}, and its options read it from the file too", advice="keep one of the two"
            )
        return within

    def _words_have_a_scale(self) -> None:
        """Check that words have a metric of names or order. Raises ImportRefused."""
        words, *named = (self.options.get(key) for key in ("words", "columns", "paths"))
        places = {place: metric for each in named if isinstance(each, dict) for place, metric in each.items()}
        scales = {metric.name: metric.scale for metric in self.metrics}
        for place in words if isinstance(words, dict) else ():
            metric = places.get(place)
            if metric is not None and scales.get(str(metric)) not in (Scale.NOMINAL, Scale.ORDINAL):
                raise ImportRefused(
                    f"{place} holds words, but {metric} is declared as a number",
                    advice=f"declare it below metrics: {{name: {metric}, scale: ordinal}} for ordered words, nominal for names",
                )


class LinkFacts(_Strict):
    """The rate and MTU of links, as far as they are known."""

    rate: Rate | None = Field(None, gt=0)
    mtu: int = Field(1500, ge=576, le=9000)


class Described(_Strict):
    """Known facts of a testbed."""

    facts: dict[str, JsonValue] = Field(default_factory=dict)
    link: LinkFacts | None = None


class Manifest(_Strict):
    """A manifest in YAML."""

    files: tuple[Files, ...] = Field(min_length=1)
    testbeds: dict[str, Described | None] = Field(default_factory=dict)
    reference: str | None = None

    def assigner(self) -> Assigner:
        return FirstOf([each.assigner() for each in self.files])

    @property
    def expressions(self) -> bool:
        """True if it has regular expressions, which need a limit."""
        return any(each.regex is not None for each in self.files)


def read_yaml(text: str, name: str) -> Manifest:
    """Read a manifest. Raises ImportRefused with every problem and its place."""
    problems: list[Problem] = []
    root = parse(text, name, problems)
    if root is not None and not isinstance(root, Entries):
        problems.append(Problem(name, 1, 1, "", "is not a mapping"))
    if root is None and not problems:
        problems.append(Problem(name, 1, 1, "", "is empty"))
    if problems or root is None:
        raise _wrong(problems)
    manifest = validated(Manifest, root, name)
    for index, each in enumerate(manifest.files):
        try:
            each.assigner()
        except ImportRefused as error:
            place = place_of(root, ["files", index])
            raise ImportRefused(f"{place}: {error.message}", advice=error.advice) from None
    return manifest


def read_passport(text: str, name: str) -> dict[str, Described]:
    """Read a description of testbeds: ``testbed: {fact: value}``. Raises ImportRefused."""
    problems: list[Problem] = []
    root = parse(text, name, problems)
    if problems or not isinstance(root, Entries):
        raise _wrong(problems or [Problem(name, 1, 1, "", "is not a mapping of testbeds to facts")])
    described: dict[str, Described] = {}
    for testbed, node in root.entries.items():
        if not isinstance(node, Entries):
            problems.append(Problem.at(node.place, testbed, "is not a mapping of facts", "such as {kernel: 4.9.0, nic: mlx5}"))
            continue
        facts = {fact: plain(value) for fact, value in node.entries.items()}
        bad = [fact for fact, value in facts.items() if not _is_fact(value)]
        problems += [Problem.at(node.keys[fact], f"{testbed}.{fact}", "is no text, number or mapping of such") for fact in bad]
        described[testbed] = Described(facts=facts)
    if problems:
        raise _wrong(problems)
    return described


def _is_fact(value: object) -> bool:
    if isinstance(value, Mapping):
        return all(_is_fact(each) for each in value.values())
    return isinstance(value, str | int | float | bool)


def validated(model: type[Manifest], root: Node, name: str) -> Manifest:
    try:
        return model.model_validate(plain(root))
    except ValidationError as error:
        problems = []
        wrong = error.errors()
        for each in wrong:
            if any(len(other["loc"]) > len(each["loc"]) and other["loc"][: len(each["loc"])] == each["loc"] for other in wrong):
                continue  # the problem inside it is the reason
            steps = [step for step in each["loc"] if isinstance(step, str | int)]
            place = place_of(root, steps) if steps else Position(name, 1, 1)
            problems.append(Problem.at(place, ".".join(str(step) for step in steps), each["msg"]))
        raise _wrong(problems) from None


def _wrong(problems: Iterable[Problem]) -> ImportRefused:
    return ImportRefused("\n".join(shown_problem(each) for each in problems), advice="docs/import.md describes every key")


def shown_problem(problem: Problem) -> str:
    return shown(str(problem))


@dataclass(frozen=True)
class Listed:
    """A manifest in CSV: an ``Assigner`` of the files that it lists."""

    rows: Mapping[str, FileKey]

    def assign(self, path: str) -> FileKey:
        if path not in self.rows:
            raise NotAssigned("is not in the manifest")
        return self.rows[path]


def read_csv(text: str, name: str, testbed: str = "") -> Listed:
    """Read a CSV with the columns ``path``, ``testbed``, ``replicate``, ``host``, ``snapshot``, ``format``, and a factor each.

    Cells are separated by ``,``, ``;`` or tab. ``testbed`` is for all files where there is no such column. Raises
    ImportRefused.
    """
    head = text.lstrip("\ufeff").partition("\n")[0]
    delimiter = max(",;\t", key=head.count)
    try:
        rows = list(csv.reader(io.StringIO(text.lstrip("\ufeff"), newline=""), delimiter=delimiter, strict=True))
    except csv.Error as error:
        raise ImportRefused(f"{name} is not CSV: {error}") from None
    columns = [column.strip() for column in rows[0]] if rows else []
    _check_columns(columns, name, testbed)
    keys: dict[str, FileKey] = {}
    problems: list[str] = []
    for line, row in enumerate(rows[1:], start=2):
        if not any(row):
            continue
        if len(row) != len(columns):
            problems.append(f"row {line} has {len(row)} columns, the header {len(columns)}")
            continue
        cells = {column: cell.strip() for column, cell in zip(columns, row, strict=True)}
        path = cells["path"].removeprefix("./")
        wrong = unsafe(path) or ("is in it twice" if path in keys else "")
        wrong = wrong or next((f"has no plain text as {key}" for key, cell in cells.items() if not is_plain(cell)), "")
        own = cells.get("testbed", "") or testbed
        if wrong or not own:
            problems.append(f"row {line}: {shown(path)[:200]} {wrong or 'has no testbed'}")
            continue
        levels: dict[str, Level] = {
            column: number_or_text(cell) if cell else None
            for column, cell in cells.items()
            if column != "path" and column not in RESERVED
        }
        replicate = replicate_of(cells.get("replicate", ""))
        try:
            snapshot = snapshot_of(cells.get("snapshot", ""))
        except NotAssigned as error:
            problems.append(f"row {line}: {shown(path)[:200]} {error}")
            continue
        keys[path] = FileKey(own, levels, replicate, cells.get("host", ""), cells.get("format", ""), snapshot=snapshot)
    if problems:
        more = f"\nand {len(problems) - 20} more" if len(problems) > 20 else ""
        raise ImportRefused("\n".join(f"{name}: {each}" for each in problems[:20]) + more)
    return Listed(keys)


def _check_columns(columns: Sequence[str], name: str, testbed: str) -> None:
    wanted = ["path"] if testbed else ["path", "testbed"]
    for column in wanted:
        if column not in columns:
            raise ImportRefused(
                f"{name} has no column {column!r}; its header is {shown(', '.join(columns))[:200] or 'empty'}",
                advice="the first line names the columns: path, testbed, replicate, host, snapshot, format, and any factor",
            )
    twice = next((column for column in columns if columns.count(column) > 1), None)
    if twice is not None or "" in columns or not all(is_plain(column) for column in columns):
        raise ImportRefused(f"{name}: {f'the column {shown(twice)!r} is there twice' if twice else 'a column has no name'}")


def unsafe(path: str) -> str:
    """Return why a manifest may not name this path; empty if it may."""
    if not path:
        return "has no path"
    if path.startswith("/") or "\\" in path or "\0" in path:
        return "is no path below the folder; write it with slashes and without a leading one"
    return "leads out of the folder" if ".." in path.split("/") else ""
