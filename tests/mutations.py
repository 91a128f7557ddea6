"""Changes files of results as a stranger, another version or a bad disk may: every kind of change to JSON and to Parquet files.

A mutation takes a file and a seeded source of chance, changes the file, and returns what it did.
"""

from __future__ import annotations

import json
import random
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from listed_parts import list_again

Where = tuple[Any, ...]
VALUES: Mapping[str, Any] = {
    "null": None,
    "text": "strange",
    "empty text": "",
    "number": 7,
    "negative": -3,
    "huge": 10**400,
    "large": 2**63,
    "real": 0.5,
    "true": True,
    "list": [1, "two", None],
    "object": {"strange": {"kind": 1}},
    "non-ASCII": "\u0130\u202e\u00fc\U0001f600",
    "surrogate": "\ud800",
    "control": "a\nb\x1b[31m\x00",
    "NaN": float("nan"),
    "infinite": float("inf"),
    "path": "../../etc/passwd",
}


def _places(value: Any, at: Where = ()) -> Iterator[Where]:
    yield at
    children = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for name, child in children:
        yield from _places(child, (*at, name))


def _at(document: Any, where: Where) -> Any:
    for name in where:
        document = document[name]
    return document


def _set(document: Any, where: Where, value: Any) -> Any:
    if not where:
        return value
    _at(document, where[:-1])[where[-1]] = value
    return document


def _place(document: Any, chance: random.Random) -> Where:
    """One that is not below a long list more often than elsewhere."""
    where: Where = ()
    while True:
        value = _at(document, where)
        children = list(value) if isinstance(value, dict) else range(len(value)) if isinstance(value, list) else ()
        if not children or (where and chance.random() < 0.25):
            return where
        where = (*where, chance.choice(list(children)))


def _drop(document: Any, chance: random.Random) -> tuple[Any, str]:
    where = _place(document, chance)
    if not where:
        return {}, "nothing in it"
    del _at(document, where[:-1])[where[-1]]
    return document, f"without {where}"


def _add(document: Any, chance: random.Random) -> tuple[Any, str]:
    objects = [where for where in _places(document) if isinstance(_at(document, where), dict)]
    if not objects:
        return [document], "in a list"
    where = chance.choice(objects)
    name, value = chance.choice(sorted(VALUES.items(), key=str))
    _at(document, where)["strange"] = value
    return document, f"a key more in {where}: {name}"


def _change(document: Any, chance: random.Random) -> tuple[Any, str]:
    where = _place(document, chance)
    name, value = chance.choice(sorted(VALUES.items(), key=str))
    return _set(document, where, value), f"{where} is {name}"


def _rename(document: Any, chance: random.Random) -> tuple[Any, str]:
    where = _place(document, chance)
    if not where or not isinstance(where[-1], str):
        return document, "nothing"
    holder = _at(document, where[:-1])
    name = chance.choice(["strange", "", "\ud800", "\u0130", where[-1].upper(), f"{where[-1]} "])
    holder[name] = holder.pop(where[-1])
    return document, f"{where} is called {name!r}"


def _wrap(document: Any, chance: random.Random) -> tuple[Any, str]:
    where = _place(document, chance)
    value = _at(document, where)
    depth = chance.choice([1, 3, 150])
    for _ in range(depth):
        value = chance.choice([[value], {"in": value}])
    return _set(document, where, value), f"{where} is {depth} deep"


def _turn(document: Any, chance: random.Random) -> tuple[Any, str]:
    """A list for an object, an object for a list."""
    where = _place(document, chance)
    value = _at(document, where)
    if isinstance(value, dict):
        return _set(document, where, list(value.values())), f"{where} is a list"
    if isinstance(value, list):
        return _set(document, where, {str(at): each for at, each in enumerate(value)}), f"{where} is an object"
    return _set(document, where, [value]), f"{where} is in a list"


_OF_JSON: Sequence[Callable[[Any, random.Random], tuple[Any, str]]] = (
    _drop,
    _drop,
    _add,
    _add,
    _change,
    _change,
    _change,
    _change,
    _rename,
    _wrap,
    _turn,
)


def change_json(file: Path, chance: random.Random) -> str:
    content = file.read_bytes()
    if chance.random() < 0.1 or not content:
        return _change_bytes(file, content, chance)
    lines = content.splitlines() if file.suffix == ".jsonl" else [content]
    at = chance.randrange(len(lines))
    changed, what = chance.choice(_OF_JSON)(json.loads(lines[at]), chance)
    lines[at] = json.dumps(changed).encode()
    file.unlink()
    file.write_bytes(b"\n".join(lines) + b"\n")
    return what


def _change_bytes(file: Path, content: bytes, chance: random.Random) -> str:
    what, changed = chance.choice(
        [
            ("empty", b""),
            ("cut off", content[: chance.randrange(len(content) + 1)]),
            ("not UTF-8", content.replace(b"e", b"\xff", 1)),
            ("zeros", b"\0" * len(content)),
            ("very deep", b"[" * 100_000 + b"]" * 100_000),
            ("twice", content + content),
            ("flipped", _flipped(content, chance)),
            ("a list", b"[]\n"),
        ]
    )
    file.unlink()
    file.write_bytes(changed)
    return what


def _flipped(content: bytes, chance: random.Random) -> bytes:
    if not content:
        return b"\x01"
    at = chance.randrange(len(content))
    return content[:at] + bytes([content[at] ^ (1 << chance.randrange(8))]) + content[at + 1 :]


def change_parquet(file: Path, chance: random.Random) -> str:
    """Half of the changes are followed by a list of parts that goes with them, as of one who wants them to be believed."""
    content = file.read_bytes()
    table = pq.ParquetFile(file).read()
    kind = chance.random()
    if kind < 0.1:
        file.unlink()
        what = "lost"
    elif kind < 0.25 or not table.num_columns:
        what = _change_bytes(file, content, chance)
    else:
        changed, what = chance.choice(_OF_PARQUET)(table, chance)
        file.unlink()
        pq.write_table(changed.replace_schema_metadata(table.schema.metadata), file)
    if chance.random() < 0.5 and list_again(file.parent.parent, file.name):
        what += ", and listed so"
    return what


def _column(table: pa.Table, chance: random.Random) -> int:
    return chance.randrange(table.num_columns)


def _other(table: pa.Table, at: int, values: pa.Array, kind: str) -> tuple[pa.Table, str]:
    name = table.column_names[at]
    return table.set_column(at, name, values), f"{name}: {kind}"


def _dropped(table: pa.Table, chance: random.Random) -> tuple[pa.Table, str]:
    name = table.column_names[_column(table, chance)]
    return table.drop_columns([name]), f"without {name}"


def _renamed(table: pa.Table, chance: random.Random) -> tuple[pa.Table, str]:
    at = _column(table, chance)
    names = list(table.column_names)
    names[at] = chance.choice(["strange", "run", "", "testbed", names[at].upper()])
    return table.rename_columns(names), f"{table.column_names[at]} is called {names[at]!r}"


def _retyped(table: pa.Table, chance: random.Random) -> tuple[pa.Table, str]:
    at = _column(table, chance)
    rows = table.num_rows
    kinds: Mapping[str, pa.Array] = {
        "texts": pa.array(["strange"] * rows, pa.string()),
        "whole numbers": pa.array([3] * rows, pa.int64()),
        "reals": pa.array([0.5] * rows, pa.float64()),
        "booleans": pa.array([True] * rows, pa.bool_()),
        "lists": pa.array([[1]] * rows, pa.list_(pa.int64())),
        "structures": pa.array([{"a": 1}] * rows, pa.struct([("a", pa.int64())])),
        "times": pa.array([0] * rows, pa.timestamp("us")),
        "bytes": pa.array([b"\xff"] * rows, pa.binary()),
        "nulls without a type": pa.nulls(rows),
        "unsigned": pa.array([2**64 - 1] * rows, pa.uint64()),
    }
    name = chance.choice(sorted(kinds))
    return _other(table, at, kinds[name], name)


def _nulls(table: pa.Table, chance: random.Random) -> tuple[pa.Table, str]:
    at = _column(table, chance)
    column = table.column(at).combine_chunks()
    share = chance.choice([0.1, 1.0])
    mask = pa.array([chance.random() < share for _ in range(table.num_rows)], pa.bool_())
    values = pa.compute.if_else(mask, pa.scalar(None, column.type), column)
    return _other(table, at, values, "nulls")


def _odd(table: pa.Table, chance: random.Random) -> tuple[pa.Table, str]:
    """Values that the type has and the column has not."""
    at = _column(table, chance)
    column = table.column(at)
    if pa.types.is_floating(column.type):
        values: list[Any] = [float("nan"), float("inf"), -float("inf"), -1.0, 1e308]
    elif pa.types.is_integer(column.type):
        values = [0, 1, 100, 127]
    elif pa.types.is_string(column.type):
        values = ["strange", "", "\u202e\u0130", "{", "a\nb", "../x"]
    else:
        return table, "nothing"
    given = column.to_pylist()
    share = chance.choice([0.1, 1.0])
    odd = chance.choice(values)
    new = [odd if chance.random() < share else each for each in given]
    return _other(table, at, pa.array(new, column.type), repr(odd))


def _rows(table: pa.Table, chance: random.Random) -> tuple[pa.Table, str]:
    what = chance.choice(["no rows", "half of the rows", "rows twice", "a row", "rows in another order"])
    if what == "no rows":
        return table.slice(0, 0), what
    if what == "half of the rows":
        return table.slice(0, table.num_rows // 2), what
    if what == "a row":
        return table.slice(0, 1), what
    if what == "rows twice":
        return pa.concat_tables([table, table]), what
    order = list(range(table.num_rows))
    chance.shuffle(order)
    return table.take(order), what


def _runs(table: pa.Table, chance: random.Random) -> tuple[pa.Table, str]:
    """Rows of one run said to be another's, or of none."""
    if "run" not in table.column_names:
        return table, "nothing"
    runs = table["run"].to_pylist()
    names = sorted({str(run) for run in runs}) or [""]
    moved = dict(zip(names, [*names[1:], chance.choice([names[0], "strange"])], strict=True))
    at = table.column_names.index("run")
    return _other(table, at, pa.array([moved[str(run)] for run in runs], pa.string()), "of other runs")


def _more(table: pa.Table, chance: random.Random) -> tuple[pa.Table, str]:
    name = chance.choice(["strange", table.column_names[0]])
    return table.append_column(name, pa.array(["strange"] * table.num_rows, pa.string())), f"another column {name}"


_OF_PARQUET: Sequence[Callable[[pa.Table, random.Random], tuple[pa.Table, str]]] = (
    _dropped,
    _dropped,
    _renamed,
    _retyped,
    _retyped,
    _retyped,
    _nulls,
    _nulls,
    _odd,
    _odd,
    _rows,
    _runs,
    _more,
)
