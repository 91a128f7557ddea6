"""Checks of how twinbed speaks: banned words, long and fronted sentences, docstrings without a verb.

A sentence of more than 35 words is read twice; one that begins with Of, What or Whether names its subject too late; one thing
has one word. The rules are for texts that a person reads: strings of the program, docstrings, pages.
"""

from __future__ import annotations

import ast
import inspect
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

MOST_WORDS = 35
"""Of a sentence."""
BANNED = {
    r"dear(er|est)?": "expensive",
    r"h[eo]ld against": "compared with",
    r"beside": "compared with, next to",
    r"tol[d]|tells? (of|apart)": "reported, printed, distinguished",
    r"(is|are|was|were|be|as) said": "is reported, printed, shown",
    r"what is lef[t]": "leftover, remaining",
    r"what stays": "leftover",
    r"mend(s|ed|ing)?": "fix, remedy",
    r"anew": "again, from scratch",
    r"undecided": "inconclusive, cannot tell",
    r"flaws?": "diagnostic",
    r"st(ood|ands?) still": "stalled",
    r"h[au]ngs? on": "depends on",
    r"bears? (it|this|that|a|an|the|no)": "tolerate",
}
"""The words that the glossary replaces, and those to use."""
KEPT = "cannot be " + "told"
"""A verdict of link checks in results that are kept: it cannot change."""
_BANNED = re.compile(rf"(?<!-)\b(?:{'|'.join(f'(?:{each})' for each in BANNED)})\b", re.IGNORECASE)
_ENDS = (r"(?<=[.!?:])", r"(?<=[.!?:][\"')*_])", r"(?<=[.!?:]\*\*)")
_SENTENCES = re.compile(rf"(?:{'|'.join(_ENDS)})\s+(?=[A-Z`\"'(\[{{*])|\n\s*\n|\n\s*(?=[-*|#>]|\d+\. )")
_FRONTED = re.compile(r"^(Of|What|Whether|That|Those)\b(?!.*\?$)", re.DOTALL)
_NO_VERB = re.compile(
    r"^(What|Of|Whether|Those|That|Where|With|Which|How|A|An|The|One|For|From|In|All|Each|Every|No|If|When|Who|By|At|On|As|To|"
    r"Two|Per|Its|Their|This|It|Is|Are|Not|Only|Here|Both|Some|Any|Nothing|Such|Whose|Why|Same)\b"
)
_QUESTION = re.compile(r"[^.:;]*\?(?=\s|\Z)")
"""A question says what a command or an analysis answers, as well as a verb would."""
_CODE = re.compile(r"```.*?```|~~~.*?~~~|<!--.*?-->|^(?: {4}|\t).*$", re.DOTALL | re.MULTILINE)
_INLINE = re.compile(r"`+[^`]*`+|\]\([^)]*\)|<[^>]*>")
_DISPLAYS = re.compile(r"^\x08\n(?:.+(?:\n|\Z))*|^ {2,}.*$", re.MULTILINE)
"""Examples and tables in docstrings: the paragraphs that click keeps as they are, and indented lines."""
_SCRIPT = re.compile(r'"\$[0-9a-z@]')
"""A shell script, which is no text to read."""


@dataclass(frozen=True, slots=True)
class Text:
    """A text that a person reads, and where it is."""

    path: Path
    line: int
    text: str
    docstring: bool = False
    function: bool = False
    """True for the docstring of a function, which begins with a verb."""

    @property
    def problems(self) -> list[str]:
        """Return what is wrong with the text, empty where nothing is."""
        found = problems(self.text)
        if self.function and _NO_VERB.match(self.text) and not _QUESTION.match(self.text):
            found.append("docstring without a verb first")
        return found


def problems(text: str) -> list[str]:
    """Return the problems of ``text``: banned words, sentences of more than ``MOST_WORDS`` words, fronted sentences."""
    plain = _INLINE.sub("X", text)  # a capital, as a sentence may begin with code
    found = [f"banned: {match[0]}" for match in _BANNED.finditer(plain) if plain != KEPT]
    for sentence in (each.strip() for each in _SENTENCES.split(plain)):
        if (count := len([word for word in sentence.split() if any(map(str.isalnum, word))])) > MOST_WORDS:
            found.append(f"{count} words: {sentence[:50]}...")
        if len(sentence.split()) > 3 and sentence[-1] in ".:;" and _FRONTED.match(sentence):
            found.append(f"fronted: {sentence[:50]}")
    return found


def of_python(path: Path, *, docstrings: bool = True) -> Iterator[Text]:
    """Yield the texts of a Python file: strings of three words and more, and docstrings."""
    tree = ast.parse(path.read_text(encoding="utf-8"))
    inside: set[int] = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef | ast.Module):
            yield from _docstrings(path, node, inside, docstrings)
        elif isinstance(node, ast.JoinedStr):
            text = "".join(_part(each) for each in node.values)
            inside.update(id(each) for each in ast.walk(node))
            yield from _string(path, node.lineno, text)
        elif isinstance(node, ast.Constant) and isinstance(node.value, str) and id(node) not in inside:
            yield from _string(path, node.lineno, _DISPLAYS.sub("", node.value))


def _docstrings(
    path: Path, node: ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef | ast.Module, inside: set[int], wanted: bool
) -> Iterator[Text]:
    for number, each in enumerate(node.body):
        if isinstance(each, ast.Expr) and isinstance(each.value, ast.Constant) and isinstance(each.value.value, str):
            inside.add(id(each.value))
            if wanted:
                prose = _DISPLAYS.sub("", inspect.cleandoc(each.value.value))
                yield Text(path, each.lineno, prose, docstring=True, function=number == 0 and _is_called(node))


def _is_called(node: ast.AST) -> bool:
    """Return whether it is a function that is called; a property is read, so that its docstring names what it holds."""
    if not isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
        return False
    return not any("property" in ast.unparse(each) for each in node.decorator_list)


def _part(node: ast.expr) -> str:
    return str(node.value) if isinstance(node, ast.Constant) else "{}"


def _string(path: Path, line: int, text: str) -> Iterator[Text]:
    if len(re.findall(r"[A-Za-z]{2,}", text)) >= 3 and " " in text.strip() and not _SCRIPT.search(text):
        yield Text(path, line, text)


def of_page(path: Path) -> Text:
    """Return the prose of a Markdown page, without code, tables and addresses."""
    prose = _CODE.sub("\n", path.read_text(encoding="utf-8"))
    return Text(path, 1, "\n".join("\n" if line.lstrip().startswith("|") else line for line in prose.splitlines()))


def texts(paths: Sequence[Path], *, docstrings: bool = True) -> Iterator[Text]:
    """Yield the texts of files and of folders: of Python files and of Markdown pages."""
    for path in paths:
        for file in sorted(path.rglob("*")) if path.is_dir() else [path]:
            if file.suffix == ".py":
                yield from of_python(file, docstrings=docstrings)
            elif file.suffix == ".md":
                yield of_page(file)
