"""Addresses of published results: ``s3://bucket/prefix``, ``gs://``, ``az://``, ``file:///folder``."""

from __future__ import annotations

from pathlib import Path, PosixPath

_SCHEMES = {"s3": "//", "gs": "//", "az": "//", "file": "///"}


class Address(PosixPath):
    """An address that is passed on and joined like a path, and shown as it was given.

    A path joins slashes, including the two of an address: they are restored when it is shown.
    """

    def __str__(self) -> str:
        joined = super().__str__()
        scheme, _, rest = joined.partition(":/")
        return f"{scheme}:{_SCHEMES[scheme]}{rest}" if rest else joined

    def resolve(self, strict: bool = False) -> Address:
        return self

    def absolute(self) -> Address:
        return self


def address_of(path: Path | str) -> Address | None:
    """Return the address that a path is, as given on a command line or in Python; None for a file of this machine."""
    scheme, colon, rest = str(path).partition(":/")
    return Address(f"{scheme}:/{rest.lstrip('/')}") if colon and scheme in _SCHEMES and rest.strip("/") else None
