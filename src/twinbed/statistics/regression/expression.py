"""The variables of a formula: a column, a call of a function, or arithmetic, read by Python's own parser and checked by ours.

``text`` of an expression is its only spelling: two expressions are the same variable if their texts are equal. Nothing of an
expression is run: a tree that has anything but what ``_check`` knows is refused.
"""

from __future__ import annotations

import ast
import copy
import re
from collections.abc import Iterator
from dataclasses import dataclass

from twinbed.statistics.regression.error import FormulaError

FUNCTIONS = ("log", "log2", "log10", "exp", "sqrt", "abs", "I", "centre")
"""Functions of one number; ``centre`` may have the value to centre at as a second argument."""
CATEGORICAL = "C"
BOX_COX = "boxcox"
KNOWN = (*FUNCTIONS, CATEGORICAL, BOX_COX)
NAME = r"[^\W\d][\w.@]*|`[^`]+`"
_OTHER_NAMES = {"center": "centre", "c": CATEGORICAL, "factor": CATEGORICAL, "ln": "log"}
_LEVEL = r"""\bbase\s*=\s*(?:"(?P<double>[^"]*)"|'(?P<single>[^']*)'|(?P<plain>[^,()"'\s](?:[^,()"']*[^,()"'\s])?))"""
_PIECE = re.compile(rf"(?P<base>{_LEVEL})|(?P<name>{NAME})|(?P<power>\^)|.", re.S)
_OPERATORS = (ast.Add, ast.Sub, ast.Mult, ast.Div, ast.Pow)


@dataclass(frozen=True, slots=True)
class Expression:
    """One variable. Names in ``tree`` are the columns' own; ``names`` are in the order of the text."""

    text: str
    tree: ast.expr
    names: tuple[str, ...]
    position: int

    def __str__(self) -> str:
        return self.text

    @property
    def function(self) -> str:
        """Return the function that it calls; empty for a column or arithmetic."""
        return function(self.tree)

    @property
    def argument(self) -> str:
        """Return the text of its function's argument."""
        return spelling(self.tree.args[0]) if isinstance(self.tree, ast.Call) else self.text


def function(tree: ast.AST) -> str:
    """Return the function that a tree calls; empty where it calls none."""
    return tree.func.id if isinstance(tree, ast.Call) and isinstance(tree.func, ast.Name) else ""


def calls(expression: Expression) -> Iterator[ast.Call]:
    """Yield every call in an expression, outer ones first."""
    return (node for node in ast.walk(expression.tree) if isinstance(node, ast.Call))


def second(call: ast.Call) -> float | None:
    """Return the value that centre subtracts, or boxcox's lambda; None if it is not given."""
    return float(ast.literal_eval(call.args[1])) if len(call.args) > 1 else None


def base(call: ast.Call) -> str | None:
    """Return the base level that C is given."""
    return str(ast.literal_eval(call.keywords[0].value)) if call.keywords else None


def read_expression(text: str, start: int, end: int) -> Expression:
    """Read the variable at ``text[start:end]``. Raises FormulaError with the place of the error."""
    source, places, columns = "(", [start], dict[int, str]()
    for piece in _PIECE.finditer(text, start, end):
        shown = piece.group()
        if piece["base"]:
            shown = f"base={piece['double'] or piece['single'] or piece['plain'] or ''!r}"
        elif piece["name"]:
            columns[len(source)] = shown.strip("`")
            shown = re.sub(r"[^A-Za-z0-9_]", "_", shown)
        elif piece["power"]:
            shown = "**"
        source += shown
        places += [piece.start()] * len(shown)
    try:
        tree = ast.parse(f"{source})", mode="eval").body
    except SyntaxError as error:
        at = min((error.offset or 1) - 1, len(places) - 1)
        raise FormulaError(f"{text[start:end].strip()!r} cannot be read", text, places[at]) from error
    for node in ast.walk(tree):
        _check(node, text, places, columns)
    if function(tree) == "I" and isinstance(tree, ast.Call) and isinstance(tree.args[0], ast.Name):
        tree = tree.args[0]  # I() only marks its content as arithmetic.
    return Expression(spelling(tree), tree, tuple(dict.fromkeys(node.id for node in _columns(tree))), start)


def _check(node: ast.AST, text: str, places: list[int], columns: dict[int, str]) -> None:
    """Refuse everything but arithmetic, and give names and functions their own spelling. Calls come before their arguments."""

    def wrong(message: str, at: ast.AST = node, **more: object) -> FormulaError:
        return FormulaError(message, text, places[getattr(at, "col_offset", 0)], **more)  # type: ignore[arg-type]

    if isinstance(node, ast.Call) and isinstance(node.func, ast.Name):
        word = columns.pop(node.func.col_offset, node.func.id)
        node.func.id = name = _OTHER_NAMES.get(word, word)
        if name not in KNOWN:
            raise wrong(f"there is no function {word!r}", advice=f"there are {', '.join(KNOWN)}", name=word, known=KNOWN)
        if not node.args:
            raise wrong(f"{name} takes a column")
        if name == CATEGORICAL and not isinstance(node.args[0], ast.Name):
            raise wrong("C takes the name of a column", node.args[0])
        if name == CATEGORICAL and (len(node.args) > 1 or [keyword.arg for keyword in node.keywords] not in ([], ["base"])):
            raise wrong("give base=LEVEL", (node.args[1:] or node.keywords)[0])
        if name != CATEGORICAL and (node.keywords or len(node.args) > (2 if name in ("centre", BOX_COX) else 1)):
            raise wrong(f"{name} takes one number", (node.args[1:] or node.keywords)[0])
        if len(node.args) > 1 and not re.fullmatch(r"-?[\d.e+-]+", ast.unparse(node.args[1])):
            raise wrong("give a number", node.args[1])
    elif isinstance(node, ast.Name):
        node.id = columns.get(node.col_offset, node.id)
    elif isinstance(node, ast.Constant):
        # The only text is a base level, which the reader of C(x, base=...) has put in quotes itself.
        quoted = isinstance(node.value, str) and text[places[node.col_offset] :].startswith("base")
        if not quoted and type(node.value) not in (int, float):
            raise wrong(f"{node.value!r} has no meaning here")
    elif not isinstance(node, ast.BinOp | ast.UnaryOp | ast.operator | ast.USub | ast.UAdd | ast.Load | ast.keyword) or (
        isinstance(node, ast.BinOp) and not isinstance(node.op, _OPERATORS)
    ):
        raise wrong(f"{ast.unparse(node)!r} has no meaning here")


def _columns(tree: ast.expr) -> list[ast.Name]:
    """Return the names of columns in a tree, in the order of the text."""
    called = {id(node.func) for node in ast.walk(tree) if isinstance(node, ast.Call)}
    names = [node for node in ast.walk(tree) if isinstance(node, ast.Name) and id(node) not in called]
    return sorted(names, key=lambda node: node.col_offset)


def spelling(tree: ast.expr) -> str:
    """Return the spelling of a tree: powers with ^, odd names in backquotes, base levels without quotes."""
    spelled = copy.deepcopy(tree)
    for node in _columns(spelled):
        node.id = node.id if re.fullmatch(NAME, node.id) else f"`{node.id}`"
    return re.sub(r"base='([^']*)'", r"base=\1", ast.unparse(spelled).replace(" ** ", "^"))
