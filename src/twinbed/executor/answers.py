"""A worker's answers, as bytes: a kind, then what the task's function returned or raised.

An answer is data. It is parsed against the function's declared type, and nothing of it is run: a worker is trusted with
results, not with this machine. A function that returns ``bytes`` answers with them; any other value is JSON, as pydantic writes
and checks it.
"""

from __future__ import annotations

import hashlib
import platform
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Annotated, Any, TypeVar, get_type_hints

from pydantic import BaseModel, ConfigDict, Field, TypeAdapter, ValidationError

import twinbed
from twinbed.executor.protocol import BadAnswer, NoExecutor
from twinbed.model.error import TwinbedError

T = TypeVar("T")
R = TypeVar("R")
VALUE, FAILURE = b"V", b"F"
JSON_BYTES = 64 * 2**20
"""The most bytes of a JSON value, which takes several times as much memory. Larger values are declared as ``bytes``."""
_MESSAGE, _ADVICE, _FILE = 100_000, 10_000, 10_000
"""The most characters of each."""


class _Failure(BaseModel):
    """An exception of a function. ``kind`` is its class, if it is neither ours nor an OSError."""

    model_config = ConfigDict(extra="forbid", strict=True)

    message: str = Field(max_length=_MESSAGE)
    kind: str = Field("", max_length=200)
    advice: str = Field("", max_length=_ADVICE)
    exit_code: Annotated[int, Field(ge=1, le=125)] = 1
    errno: int | None = None
    file: str | None = Field(None, max_length=_FILE)

    @classmethod
    def of(cls, error: Exception) -> _Failure:
        if isinstance(error, TwinbedError):
            return cls(message=_cut(error.message, _MESSAGE), advice=_cut(error.advice, _ADVICE), exit_code=error.exit_code)
        if isinstance(error, OSError) and error.errno:
            file = None if error.filename is None else _cut(str(error.filename), _FILE)
            return cls(message=_cut(error.strerror or "", _MESSAGE), errno=error.errno, file=file)
        return cls(message=_cut(str(error), _MESSAGE), kind=type(error).__name__[:200])

    def error(self) -> Exception:
        if self.errno is not None:
            return OSError(self.errno, self.message, self.file)
        message = f"{self.kind}: {self.message}" if self.kind else self.message
        return TwinbedError(message, advice=self.advice, exit_code=self.exit_code)


def _cut(text: str, most: int) -> str:
    """Cut a text, without halves of surrogates, which JSON does not have."""
    return text[:most].encode("utf-8", "backslashreplace").decode()[:most]


def carried_out(own: Program, function: Callable[[T], R], argument: T) -> bytes:
    """Carry out a task in a worker, which refuses tasks of another program than its own. An exception is an answer too, since
    dask would pickle it."""
    try:
        if (here := program()) != own:
            raise NoExecutor(f"a worker has {here}, this is {own}", advice="install the same twinbed on all of them")
        value = function(argument)
        return VALUE + (value if isinstance(value, bytes) else _adapter(function).dump_json((value,)))
    except Exception as error:  # noqa: BLE001 - whatever it is, the one who asked is told
        return FAILURE + _Failure.of(error).model_dump_json().encode()


def value_of(answer: object, function: Callable[[T], R], who: str) -> R:
    """Return the value in an answer of ``who`` to a task of ``function``. Raises what the function raised, and BadAnswer."""
    if not isinstance(answer, bytes):
        raise BadAnswer(f"{who} answers with {answer!r:.100}, not with bytes")
    kind, content = answer[:1], answer[1:]
    if kind == VALUE and _declared(function) is bytes:
        return content  # type: ignore[return-value]
    if kind not in (VALUE, FAILURE) or len(content) > JSON_BYTES:
        raise BadAnswer(f"{who} answers with {len(content):,} bytes of kind {kind!r}, expected at most {JSON_BYTES:,}")
    try:
        if kind == VALUE:
            (value,) = _adapter(function).validate_json(content, strict=True, extra="forbid")
            return value  # type: ignore[no-any-return]
        failure = _Failure.model_validate_json(content)
    except ValidationError as error:
        first = error.errors(include_url=False, include_context=False, include_input=False)[0]
        where = ".".join(str(step) for step in first["loc"]) or "it"
        raise BadAnswer(f"{who} sends an invalid answer: {where}: {first['msg']}"[:1000]) from None
    raise failure.error()


@cache
def _declared(function: Callable[..., Any]) -> object:
    return get_type_hints(function)["return"]


@cache
def _adapter(function: Callable[..., Any]) -> TypeAdapter[tuple[Any]]:
    """Return the adapter of a tuple of a function's declared type, so that the configuration holds for dataclasses in it."""
    config = ConfigDict(ser_json_inf_nan="constants", ser_json_bytes="base64", val_json_bytes="base64")
    shape: Any = tuple.__class_getitem__(_declared(function))
    return TypeAdapter(shape, config=config)


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
