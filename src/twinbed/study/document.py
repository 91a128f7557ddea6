"""YAML 1.2 text as a tree that knows the line and column of everything in it.

Scalars follow the core schema of YAML 1.2: ``on``, ``off``, ``yes`` and dates are text.  Keys are text as written.
Syntax errors, duplicate keys and tags outside the core schema become problems with their place, not exceptions.
A text with more than MOST_VALUES keys and values, or aliases that expand to more, is refused at once.
A ``Problem`` says what is wrong, where, at which key, and what would be right; all problems are reported together.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import TypeAlias

from ruamel.yaml import YAML
from ruamel.yaml.composer import Composer, ComposerError
from ruamel.yaml.error import MarkedYAMLError, YAMLError
from ruamel.yaml.nodes import MappingNode, ScalarNode, SequenceNode
from ruamel.yaml.nodes import Node as YamlNode
from ruamel.yaml.reader import ReaderError

from twinbed.model.error import TwinbedError
from twinbed.model.json import Json
from twinbed.model.near import Near, did_you_mean
from twinbed.model.run import Level
from twinbed.terminal import visible

_MOST_NAMES = 20
"""Names that are listed although a near one is known."""


@dataclass(frozen=True, slots=True, order=True)
class Position:
    """A place in a file. Line and column count from 1."""

    file: str
    line: int
    column: int

    def __str__(self) -> str:
        return f"{self.file}:{self.line}:{self.column}"


@dataclass(frozen=True, slots=True)
class Problem:
    """One error, printed as ``file:line:column: key: message; allowed: ...; did you mean 'x'?``.

    The value of an option, such as ``--profile``, has no line and column."""

    file: str
    line: int
    column: int
    key: str
    """Dotted path of the key; empty for the whole file."""
    message: str
    allowed: str = ""
    nearest: Near = ()

    @classmethod
    def at(cls, place: Position, key: str, message: str, allowed: str = "", nearest: Near = ()) -> Problem:
        return cls(place.file, place.line, place.column, key, message, allowed, nearest)

    def __str__(self) -> str:
        place = self.file if self.file.startswith("--") else f"{self.file}:{self.line}:{self.column}"
        text = f"{place}: " + (f"{self.key}: " if self.key else "") + self.message
        if self.allowed:
            names = self.allowed.split(", ")
            text += f"; allowed: {f'{len(names)} names' if self.nearest and len(names) > _MOST_NAMES else self.allowed}"
        if self.nearest:
            text += f"; {did_you_mean(self.nearest)}"
        return text


class StudyError(TwinbedError):
    """A study that cannot be used. ``problems`` holds every problem, in the order of the file.

    Several problems of one key at one place are one: the first is kept, as the others follow from it or repeat it.
    """

    def __init__(self, problems: Iterable[Problem]) -> None:
        first: dict[tuple[str, int, int, str], Problem] = {}
        for problem in problems:
            first.setdefault((problem.file, problem.line, problem.column, problem.key), problem)
        self.problems: list[Problem] = sorted(first.values(), key=lambda p: (p.file == "-s", p.file, p.line, p.column, p.key))
        super().__init__("\n".join(str(problem) for problem in self.problems))


def listed(names: Iterable[str]) -> str:
    """Join names for ``allowed``, in their order."""
    return ", ".join(names)


MOST_VALUES = 10_000
"""The longest study of twinbed's own has 233."""

_DEEPEST = 50
_CORE = "tag:yaml.org,2002:"
_MERGE = _CORE + "merge"
_PLAIN_TEXT = {_CORE + "str", _CORE + "timestamp"}


@dataclass(frozen=True, slots=True)
class Scalar:
    value: Level
    place: Position


@dataclass(frozen=True, slots=True)
class Items:
    """A YAML sequence."""

    items: Sequence[Node]
    place: Position


@dataclass(frozen=True, slots=True)
class Entries:
    """A YAML mapping; ``keys`` says where each key stands."""

    entries: Mapping[str, Node]
    keys: Mapping[str, Position]
    place: Position


Node: TypeAlias = Scalar | Items | Entries


def plain(node: Node) -> Json:
    """Return the tree as plain Python data."""
    if isinstance(node, Scalar):
        return node.value
    if isinstance(node, Items):
        return [plain(item) for item in node.items]
    return {key: plain(value) for key, value in node.entries.items()}


def is_absent(node: Node | None) -> bool:
    """Return whether a node is missing or has no value."""
    return node is None or (isinstance(node, Scalar) and node.value is None)


def node_at(node: Node | None, path: Sequence[str | int]) -> Node | None:
    """Return the node at ``path``; None where there is none."""
    for step in path:
        if isinstance(node, Entries):
            node = node.entries.get(str(step))
        elif isinstance(node, Items) and isinstance(step, int) and step < len(node.items):
            node = node.items[step]
        else:
            return None
    return node


def place_of(node: Node, path: Sequence[str | int]) -> Position:
    """Return the position of the value at ``path``, or of the deepest part of the path that exists."""
    for step in path:
        below = node_at(node, (step,))
        if below is None:
            break
        node = below
    return node.place


def parse(text: str, file: str, problems: list[Problem], *, line: int = 1, column: int = 1) -> Node | None:
    """Return the tree of ``text``, or None where it has none; errors are appended to ``problems``.

    ``line`` and ``column`` are the position at which the text begins for the user.
    """
    tree, new_problems = _parsed(text, Position(file, line, column))
    problems += new_problems
    return tree


@lru_cache(maxsize=128)
def _parsed(text: str, start: Position) -> tuple[Node | None, Sequence[Problem]]:
    """Return the tree and its problems. Programs that read one study several times, such as tests, parse it once."""
    problems: list[Problem] = []
    return _composed(text, start, problems), problems


def _composed(text: str, start: Position, problems: list[Problem]) -> Node | None:
    yaml = YAML(typ="safe", pure=True)
    yaml.Composer = _Limited
    try:
        root = yaml.compose(text)
        if root is None:
            return None
        reader = _Reader(yaml, start, problems)
        tree = reader.read(root, "")
        count = _values(tree, {})
        if count <= MOST_VALUES:
            return tree
        problems.append(Problem.at(start, "", f"its aliases expand to {count:,} values", f"at most {MOST_VALUES:,}"))
    except MarkedYAMLError as error:
        mark = error.problem_mark or error.context_mark
        place = start if mark is None else _shifted(start, mark.line, mark.column)
        problems.append(Problem.at(place, "", ", ".join(filter(None, (f"not YAML: {error.problem}", error.context)))))
    except ReaderError as error:
        before = text[: error.position]
        place = _shifted(start, before.count("\n"), len(before) - before.rfind("\n") - 1)
        problems.append(Problem.at(place, "", f"not YAML: the character {error.character!r} is not allowed"))
    except YAMLError as error:
        problems.append(Problem.at(start, "", f"not YAML: {error}"))
    except RecursionError:
        problems.append(Problem.at(start, "", "nested too deeply"))
    return None


class _Limited(Composer):
    """A composer that stops at the first node that is one too many, or too deep."""

    composed = 0

    def compose_node(self, parent: object, index: object) -> YamlNode:
        self.composed += 1
        wrong = f"more than {MOST_VALUES:,} keys and values" if self.composed > MOST_VALUES else ""
        wrong = "nested too deeply" if self.depth > _DEEPEST else wrong
        if wrong:
            raise ComposerError(None, None, wrong, self.parser.peek_event().start_mark)
        node: YamlNode = super().compose_node(parent, index)
        return node


def _values(node: Node, known: dict[int, int]) -> int:
    """Count the values of a tree, with every alias expanded. ``known``: counts by the node's id."""
    below: Sequence[Node] = ()
    if isinstance(node, Items):
        below = node.items
    elif isinstance(node, Entries):
        below = list(node.entries.values())
    if id(node) not in known:
        known[id(node)] = 1 + sum(_values(part, known) for part in below)
    return known[id(node)]


def _shifted(start: Position, line: int, column: int) -> Position:
    """Return the place ``line`` lines and ``column`` columns (from 0) after ``start``."""
    return Position(start.file, start.line + line, column + (start.column if line == 0 else 1))


class _Reader:
    """A reader of ruamel's nodes. It reads an anchored node once, so that aliases cannot multiply the work."""

    def __init__(self, yaml: YAML, start: Position, problems: list[Problem]) -> None:
        self.construct = yaml.constructor.construct_object
        self.start = start
        self.problems = problems
        self.known: dict[int, Node] = {}
        self.open: set[int] = set()

    def place(self, node: YamlNode) -> Position:
        return _shifted(self.start, node.start_mark.line, node.start_mark.column)

    def read(self, node: YamlNode, key: str) -> Node:
        if id(node) in self.known:
            return self.known[id(node)]
        place = self.place(node)
        if id(node) in self.open:
            self.problems.append(Problem.at(place, key, "contains itself"))
            return Scalar(None, place)
        self.open.add(id(node))
        result = self._read(node, key, place)
        self.open.discard(id(node))
        self.known[id(node)] = result
        return result

    def _read(self, node: YamlNode, key: str, place: Position) -> Node:
        if isinstance(node, MappingNode):
            return self._entries(node, key, place)
        if isinstance(node, SequenceNode):
            return Items([self.read(item, f"{key}[{index}]") for index, item in enumerate(node.value)], place)
        return Scalar(self._scalar(node, key, place), place)

    def _entries(self, node: MappingNode, key: str, place: Position) -> Entries:
        entries: dict[str, Node] = {}
        keys: dict[str, Position] = {}
        merged: list[Entries] = []
        for key_node, value_node in node.value:
            where = self.place(key_node)
            if key_node.tag == _MERGE:
                merged += self._merged(value_node, f"{key}.<<" if key else "<<", where)
                continue
            if not isinstance(key_node, ScalarNode):
                self.problems.append(Problem.at(where, key, "a key cannot be a list or a mapping", "a name"))
                continue
            name = str(key_node.value)
            path = f"{key}.{name}" if key else name
            if name in entries:
                first = keys[name]
                self.problems.append(Problem.at(where, path, f"is given twice; the first is at {first.line}:{first.column}"))
                continue
            self._refuse_unseen(name, path, where)
            keys[name] = where
            entries[name] = self.read(value_node, path)
        for other in merged:  # what is written here wins, then what is merged first
            entries = {**other.entries, **entries}
            keys = {**other.keys, **keys}
        return Entries(entries, keys, place)

    def _refuse_unseen(self, text: str, key: str, where: Position) -> None:
        """Report a character that terminals obey or readers cannot see: names and texts of a study are printed everywhere."""
        unseen = next((character for character in text if visible(character) != character), None)
        if unseen is not None:
            problem = f"contains the invisible character U+{ord(unseen):04X}"
            self.problems.append(Problem.at(where, key, problem, "printable characters, newlines and tabs"))

    def _merged(self, node: YamlNode, key: str, where: Position) -> list[Entries]:
        """Return the mappings that a merge key (https://yaml.org/type/merge.html) names; the first of a list wins."""
        wanted = [self.read(item, key) for item in (node.value if isinstance(node, SequenceNode) else [node])]
        mappings = [mapping for mapping in wanted if isinstance(mapping, Entries)]
        if len(mappings) < len(wanted):
            self.problems.append(
                Problem.at(where, key, "merges something that is not a mapping", "*NAME of a mapping, or a list of them")
            )
        return mappings

    def _scalar(self, node: YamlNode, key: str, place: Position) -> Level:
        tag, text = str(node.tag), str(node.value)
        self._refuse_unseen(text, key, place)
        if tag in _PLAIN_TEXT:
            return text
        if tag == _CORE + "bool":
            # A %YAML 1.1 directive would make on and off booleans.
            return text.lower() == "true" if text.lower() in {"true", "false"} else text
        if tag in {_CORE + "int", _CORE + "float", _CORE + "null"}:
            try:
                value: Level = self.construct(node)
            except ValueError:
                self.problems.append(Problem.at(place, key, f"{text!r} does not match its tag {tag.replace(_CORE, '!!')}"))
                return text
            return value
        self.problems.append(Problem.at(place, key, f"has the tag {tag.replace(_CORE, '!!')}", "no tags"))
        return text
