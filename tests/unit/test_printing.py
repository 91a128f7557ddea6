"""One module writes texts to terminals; a second makes consoles with styles. Nothing else prints."""

from __future__ import annotations

import ast
import json
import unicodedata
from collections.abc import Iterable, Iterator

import pytest

from sources import nodes
from twinbed.render.html import html
from twinbed.render.latex_text import escape
from twinbed.render.markdown import code, plain
from twinbed.render.spreadsheet import csv_text
from twinbed.render.terminal import Terminal
from twinbed.terminal import as_json, one_line, say, say_error, visible

WRITER, CONSOLE = "terminal.py", "render/terminal.py"
PASSED_ON = {"render/output.py", "cli/envelope.py"}
"""They hand standard output on to what writes bytes: Parquet, and JSON in its envelope."""
PRINTERS = ("print", "pprint", "pprint.pprint", "click.echo", "click.secho", "click.echo_via_pager", "traceback.print_exc")
BUFFERS = ("sys.stdout.buffer", "sys.stderr.buffer")
STREAMS = ("stdout", "stderr", "__stdout__", "__stderr__")


def printing(nodes: Iterable[ast.AST], name: str) -> Iterator[str]:
    """What of a module writes to a terminal past the writer."""
    for node in nodes:
        words = ast.unparse(node.func) if isinstance(node, ast.Call) else ""
        if name != WRITER and (
            words in PRINTERS
            or any(words.startswith(f"sys.{stream}.") and words.endswith(("write", "writelines")) for stream in STREAMS)
            or (words == "os.write" and isinstance(node, ast.Call) and ast.unparse(node.args[0]) in ("1", "2"))
            or (words == "sys.exit" and isinstance(node, ast.Call) and isinstance(node.args[0], ast.JoinedStr))
        ):
            yield f"{name}:{node.lineno}: {words}"  # type: ignore[attr-defined]
        if name not in PASSED_ON and isinstance(node, ast.Attribute) and node.attr == "buffer" and ast.unparse(node) in BUFFERS:
            yield f"{name}:{node.lineno}: {ast.unparse(node)}"
        if isinstance(node, ast.ImportFrom | ast.Import) and name != CONSOLE:
            names = {f"{getattr(node, 'module', None) or ''}.{each.name}".strip(".") for each in node.names}
            if names & {"rich.console.Console", "rich.console", "rich.print", "rich.get_console"}:
                yield f"{name}:{node.lineno}: rich's console"


def test_nothing_else_prints() -> None:
    assert [found for name, each in nodes().items() for found in printing(each, name)] == []
    assert {WRITER, CONSOLE} <= nodes().keys()


@pytest.mark.parametrize(
    "source",
    [
        "print('x')",
        "click.echo('x')",
        "def f():\n    click.secho('x', err=True)",
        "sys.stdout.write('x')",
        "sys.stderr.write('x')",
        "sys.stdout.buffer.write(b'x')",
        "os.write(2, b'x')",
        "sys.exit(f'{error}')",
        "from rich.console import Console",
        "from rich import print",
    ],
)
def test_what_prints_is_found(source: str) -> None:
    assert list(printing(ast.walk(ast.parse(source)), "cli/new.py"))


EVERY = "".join(map(chr, range(0x110000)))


def test_every_character_that_is_not_seen_is_escaped() -> None:
    left = set(visible(EVERY))
    categories = {each: unicodedata.category(each) for each in left}
    assert {each for each, kind in categories.items() if kind[0] == "C" or kind in ("Zl", "Zp")} == {"\n", "\t"}
    assert left >= set("aé日😀\u0301\u00a0")
    shown = "".join(left)
    assert visible(shown) == shown
    assert visible("\x1b[2J\x9b\u202e\udcff\U000e0041") == r"\x1b[2J\x9b\u202e\udcff\U000e0041"


def test_one_line_is_one() -> None:
    assert one_line("a\nb\tc\r\u2028d") == r"a\nb\tc\x0d\u2028d"


def test_json_holds_the_same() -> None:
    data = {"\x9b": ["\u202e", "\udcff", "\U000e0041😀", {"\x7f": None}]}
    assert json.loads(as_json(data)) == data
    assert visible(as_json(data)) == as_json(data)


def test_a_line_stays_one_and_nothing_is_obeyed(capsys: pytest.CaptureFixture[str]) -> None:
    say("a\nverdict: equivalent", "[red]b[/red]")
    say_error("no\ntwinbed: all is well", "do\nthis")
    Terminal(width=80).say("[red]c\nd\x1b[2J", "red")
    Terminal(width=80).print("[bold]e[/bold] :smile: \x9b")
    shown = capsys.readouterr()
    assert shown.out == "a\\nverdict: equivalent\n[red]b[/red]\n[red]c\\nd\\x1b[2J\n[bold]e[/bold] :smile: \\x9b\n"
    assert shown.err == "twinbed: no\n  twinbed: all is well\n  do\n  this\n"


def test_styles_are_applied_after_escaping(capsys: pytest.CaptureFixture[str]) -> None:
    Terminal(width=80, force_terminal=True, environ={"TERM": "xterm"}).say("a\x1b[0m", "red")
    assert capsys.readouterr().out == "\x1b[31ma\\x1b[0m\x1b[0m\n"


def test_headers_of_csv_are_no_formulas() -> None:
    shown = csv_text(["=cmd()", "+1", "@a", "\tb", "\rc", "＝d", "plain"], [["-2+3", "-2", -2, None, "\x1b", "e", "f"]])
    assert shown == "'=cmd(),+1,'@a,'\tb,\"'\nc\",'＝d,plain\n'-2+3,-2,-2,,\\x1b,e,f\n"


def test_markdown_latex_and_html_print_a_name_as_itself() -> None:
    assert plain("[a](http://x) |`*_<b>&lt; $x$ & c") == r"\[a\](http\://x) \|\`\*\_\<b\>\&lt; \$x\$ & c"
    assert code("a `b`` c") == "``` a `b`` c ```"
    assert escape("\x1b\\x{}%") == r"\textbackslash{}x1b\textbackslash{}x\{\}\%"
    assert html("<p>{}</p>", "<\x1b\u202e{0}>") == r"<p>&lt;\x1b\u202e{0}&gt;</p>"
