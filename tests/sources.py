"""The program's own sources, parsed once in each process: parsing all of them takes a second or more."""

from __future__ import annotations

import ast
import functools
import gc
from pathlib import Path

PACKAGE = Path(__file__).parents[1] / "src/twinbed"


@functools.cache
def parsed(file: Path) -> ast.Module:
    return ast.parse(file.read_bytes())


@functools.cache
def nodes() -> dict[str, list[ast.AST]]:
    """Return all nodes of each file, by its name in the package."""
    enabled = gc.isenabled()
    gc.disable()  # it would search a million nodes again and again
    try:
        return {str(file.relative_to(PACKAGE)): list(ast.walk(parsed(file))) for file in sorted(PACKAGE.rglob("*.py"))}
    finally:
        if enabled:
            gc.enable()
