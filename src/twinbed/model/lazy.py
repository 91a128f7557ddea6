"""Lists and objects of a JSON text that are read when asked for: most belong to one run record among a million."""

from __future__ import annotations

from collections.abc import Callable, ItemsView, Iterator, Mapping, Sequence, ValuesView
from typing import Generic, TypeVar, overload

from twinbed.model.error import TwinbedError
from twinbed.model.json import WRONG, Document, document, parsed, why

T = TypeVar("T")


def _read(text: str, read: Callable[[Document], T]) -> T:
    try:
        return read(document(parsed(text)))
    except WRONG as error:
        raise TwinbedError(f"a run's record cannot be read: {why(error)}", advice="publish the results again") from error


class LazySequence(Sequence[T], Generic[T]):
    """A list that ``read`` makes of ``text``, again each time: a million of them would not fit if kept."""

    __slots__ = ("_read", "_text")

    def __init__(self, text: str, read: Callable[[Document], Sequence[T]]) -> None:
        self._text = text
        self._read = read

    def _all(self) -> Sequence[T]:
        return _read(self._text, self._read)

    @overload
    def __getitem__(self, index: int) -> T: ...
    @overload
    def __getitem__(self, index: slice[int | None, int | None, int | None]) -> Sequence[T]: ...
    def __getitem__(self, index: int | slice[int | None, int | None, int | None]) -> T | Sequence[T]:
        return self._all()[index]

    def __iter__(self) -> Iterator[T]:
        return iter(self._all())

    def __len__(self) -> int:
        return len(self._all())

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Sequence) and list(self) == list(other)

    __hash__ = None  # type: ignore[assignment]  # as of a list

    def __deepcopy__(self, memo: object) -> list[T]:
        return list(self)


class LazyMapping(Mapping[str, T], Generic[T]):
    """The same for an object."""

    __slots__ = ("_read", "_text")

    def __init__(self, text: str, read: Callable[[Document], Mapping[str, T]]) -> None:
        self._text = text
        self._read = read

    def _all(self) -> Mapping[str, T]:
        return _read(self._text, self._read)

    def __getitem__(self, name: str) -> T:
        return self._all()[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._all())

    def __len__(self) -> int:
        return len(self._all())

    def values(self) -> ValuesView[T]:
        return ValuesView(self._all())

    def items(self) -> ItemsView[str, T]:
        return ItemsView(self._all())

    def __deepcopy__(self, memo: object) -> dict[str, T]:
        return dict(self._all())
