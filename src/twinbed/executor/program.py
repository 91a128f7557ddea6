"""The identity of this program: another one may behave differently, even with the same version."""

from __future__ import annotations

import hashlib
import platform
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path

import twinbed


@dataclass(frozen=True, slots=True)
class Program:
    version: str
    digest: str
    """The digest of its files."""
    host: str = field(compare=False)

    def __str__(self) -> str:
        return f"twinbed {self.version} ({self.digest}) on {self.host}"


@cache
def program() -> Program:
    """Return the running program."""
    root = Path(twinbed.__file__).parent
    digest = hashlib.blake2b(digest_size=6)
    for file in sorted(path for path in root.rglob("*") if path.suffix in (".py", ".so") or path.parent.name == "bin"):
        if file.is_file():
            digest.update(f"{file.relative_to(root)}\0".encode())
            digest.update(hashlib.blake2b(file.read_bytes()).digest())
    return Program(twinbed.__version__, digest.hexdigest(), platform.node())
