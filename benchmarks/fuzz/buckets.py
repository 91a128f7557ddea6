"""Mutates a published bucket, and compares what is there: no traceback, no wait, memory within a limit, and no other verdict.

twinbed publish RESULTS file://$PWD/bucket && twinbed publish OTHER file://$PWD/bucket
python -m benchmarks.fuzz.buckets 10000 --seed 1 --bucket bucket

Each case is one change: of an object's kind or size, of the snapshot's JSON, of the bytes or the content of a Parquet or JSON
object; where the content changes, the object is put under its new hash and listed so, that the change is reached.  Numbers that
a writer may claim may change a verdict; all else may not, unless a caution says so.  Cases are compared by a process of its
own, whose memory is measured.
"""

from __future__ import annotations

import argparse
import contextlib
import hashlib
import io
import json
import os
import random
import select
import shutil
import socket
import subprocess
import sys
import tempfile
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import NamedTuple, cast

import pyarrow as pa
import pyarrow.parquet as pq

from twinbed.model.json import Json

MOST_MEMORY_BYTES = 512 * 2**20
CASE_LIMIT_S = 120
"""Far more than any case takes: only what hangs meets it."""
_CASES_OF_A_PROCESS = 200
SECRET = "root:x:secret-of-this-machine"
_HOME = Path(__file__).parents[2]
_SNAPSHOT = "snapshots/0000000002.json"
_HOSTILE: Sequence[Json] = (
    None, True, -1, 0, 2**31, 2**63, 2**80, 1.5, float("nan"), float("inf"), "", "x" * 5000, "\x1b[2J", "../../secret",
    "/etc/passwd", "objects/../../secret", "objects/" + "0" * 40, [], {}, [[]], {"name": "objects/x", "bytes": 1},
)  # fmt: skip

Object = dict[str, "Json"]


class Fault(NamedTuple):
    """A case that went wrong."""

    seed: int
    change: str
    fault: str


class Mutation(NamedTuple):
    name: str
    claims: bool
    """Whether it changes numbers, which a verdict follows."""
    apply: Callable[[Path, random.Random], None]


def faults(bucket: Path, count: int, seed: int, scratch: Path) -> Iterator[Fault | str]:
    """Yield each case's outcome: ``equal``, ``refused``, ``claimed`` or ``caution``, or its fault."""
    with _Reader() as reader:
        code, usual = reader.compare(bucket)
        assert code in (0, 4, 5), usual
        for number in range(seed, seed + count):
            mutation = _MUTATIONS[number % len(_MUTATIONS)]
            case = scratch / "bucket"
            shutil.copytree(bucket, case)
            mutation.apply(case, random.Random(number))
            found = _outcome(*reader.compare(case), usual, mutation)
            yield Fault(number, mutation.name, found) if found not in ("equal", "refused", "claimed", "caution") else found
            shutil.rmtree(case)


def _outcome(code: int | None, text: str, usual: str, mutation: Mutation) -> str:
    if SECRET in text:
        return f"a file of this machine is in the output: {text:.200}"
    if code == 2:
        return "refused"
    if code is None or code not in (0, 4, 5):
        return text
    if text == usual:
        return "equal"
    if mutation.claims:
        return "claimed"
    return "caution" if json.loads(text)["cautions"] else f"another verdict without a caution: {text:.300}"


class _Reader:
    """A process that compares what it is told to, and is made anew when it did not answer."""

    def __init__(self) -> None:
        self._process: subprocess.Popen[str] | None = None
        self._left = 0
        self._errors = tempfile.TemporaryFile()  # noqa: SIM115 -- as long as this

    def __enter__(self) -> _Reader:
        return self

    def __exit__(self, *_: object) -> None:
        self._end()
        self._errors.close()

    def _end(self) -> None:
        if self._process is not None:
            self._process.kill()
            self._process.communicate()
            self._process = None

    def compare(self, bucket: Path) -> tuple[int | None, str]:
        """The exit code and what was written; no code, and the fault, where there is one."""
        if self._process is None:
            command = [sys.executable, "-m", "benchmarks.fuzz.buckets", "--read"]
            self._errors.truncate(0)
            self._process = subprocess.Popen(
                command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=self._errors, text=True, cwd=_HOME
            )
        process = self._process
        assert process.stdin is not None and process.stdout is not None
        process.stdin.write(f"{bucket}\n")
        process.stdin.flush()
        ready, _, _ = select.select([process.stdout], [], [], CASE_LIMIT_S)
        line = process.stdout.readline() if ready else ""
        if not line:
            self._end()
            self._errors.seek(0)
            died = f"it died: {self._errors.read()[-3000:].decode(errors='replace')}"
            return None, died if ready else f"it had not ended after {CASE_LIMIT_S} s"
        answer = json.loads(line)
        if answer["memory"] > MOST_MEMORY_BYTES:
            self._end()
            return None, f"it took {answer['memory'] / 2**20:.0f} MiB: {answer['text']:.300}"
        return answer["code"], str(answer["text"])


def _read() -> None:
    """Compare each bucket whose folder is a line of standard input, and answer with a line of JSON."""
    from twinbed.cli.main import run

    for line in sys.stdin:
        out = io.TextIOWrapper(io.BytesIO(), encoding="utf-8", write_through=True)
        with contextlib.redirect_stdout(out), contextlib.redirect_stderr(out):
            code = run(["compare", f"file://{line.strip()}", "--format", "json"])
        text = cast(io.BytesIO, out.buffer).getvalue().decode(errors="replace")
        status = Path("/proc/self/status").read_text()
        memory = next(int(each.split()[1]) * 1024 for each in status.splitlines() if each.startswith("VmHWM"))
        sys.stdout.write(json.dumps({"code": code, "text": text, "memory": memory}) + "\n")
        sys.stdout.flush()


def _snapshot(bucket: Path) -> Object:
    return cast(Object, json.loads((bucket / _SNAPSHOT).read_text()))


def _put_snapshot(bucket: Path, content: Json) -> None:
    (bucket / _SNAPSHOT).write_text(json.dumps(content))


def _listed(content: Json) -> Iterator[Object]:
    """All objects that a snapshot lists."""
    if isinstance(content, dict):
        if content.keys() == {"name", "bytes"}:
            yield cast(Object, content)
        else:
            for each in content.values():
                yield from _listed(each)
    elif isinstance(content, list):
        for each in content:
            yield from _listed(each)


def _replace(bucket: Path, name: str, content: bytes) -> None:
    """Put other bytes in an object's place in the snapshot, under their own hash."""
    new = f"objects/{hashlib.blake2b(content, digest_size=20).hexdigest()}"
    (bucket / new).write_bytes(content)
    snapshot = _snapshot(bucket)
    for each in _listed(snapshot):
        if each["name"] == name:
            each.update({"name": new, "bytes": len(content)})
    _put_snapshot(bucket, snapshot)


def _any_object(bucket: Path, at: random.Random) -> Path:
    return bucket / str(at.choice(list(_listed(_snapshot(bucket))))["name"])


def _kind(bucket: Path, at: random.Random) -> None:
    """A file or folder becomes another thing."""
    (bucket.parent / "secret").write_text(SECRET)
    file = at.choice([_any_object(bucket, at), bucket / _SNAPSHOT, bucket / "objects", bucket / "snapshots"])
    moved = bucket.parent / "moved"
    if moved.exists():
        shutil.rmtree(moved) if moved.is_dir() else moved.unlink()
    file.rename(moved)
    match at.randrange(7):
        case 0:
            os.mkfifo(file)
        case 1:
            file.symlink_to(bucket.parent / "secret")
        case 2:
            file.symlink_to(moved)
        case 3:
            file.mkdir()
        case 4:
            os.mknod(file, 0o020666, os.makedev(1, 5)) if os.geteuid() == 0 else file.symlink_to("/dev/zero")
        case 5:
            with socket.socket(socket.AF_UNIX) as made, contextlib.chdir(file.parent):
                made.bind(file.name)
        case _:
            file.symlink_to(file.name)


def _size(bucket: Path, at: random.Random) -> None:
    """A file is cut, grows, or is changed in a bit."""
    file = at.choice([_any_object(bucket, at), bucket / _SNAPSHOT])
    whole = file.read_bytes()
    match at.randrange(5):
        case 0:
            file.write_bytes(whole[: at.randrange(len(whole))])
        case 1:
            os.truncate(file, 60 * 10**9)
        case 2:
            file.write_bytes(whole + at.randbytes(at.randrange(1, 1000)))
        case 3:
            spot = at.randrange(len(whole))
            if file.name.endswith(".json"):
                spot = whole.index(b'"format"')
            file.write_bytes(whole[:spot] + bytes([whole[spot] ^ 1 << at.randrange(8)]) + whole[spot + 1 :])
        case _:
            os.truncate(file, 600 * 2**20)


def _repeat(bucket: Path, at: random.Random) -> None:
    """A list in the snapshot is repeated."""
    snapshot = _snapshot(bucket)
    batches = cast(list[Object], snapshot["batches"])
    tables = cast(dict[str, list[Json]], at.choice(batches)["tables"])
    times = at.choice([2, 3, 1000])
    match at.randrange(4):
        case 0:
            snapshot["batches"] = batches * times
        case 1:
            table = at.choice(sorted(tables))
            tables[table] = tables[table] * times
        case 2:
            for name, other in cast(dict[str, list[Json]], batches[1]["tables"]).items():
                cast(dict[str, list[Json]], batches[0]["tables"])[name] += other
        case _:
            batches.append({**batches[0], "catalogue": batches[1]["catalogue"]})
    _put_snapshot(bucket, snapshot)


def _places(content: Json) -> Iterator[tuple[Json, str | int]]:
    items = content.items() if isinstance(content, dict) else enumerate(content) if isinstance(content, list) else ()
    for key, value in items:
        yield content, key
        yield from _places(value)


def _changed(content: Json, at: random.Random) -> None:
    """One value of a JSON text becomes a hostile one, or goes."""
    place, key = at.choice(list(_places(content)))
    holder = cast(dict[str | int, Json], place)
    if isinstance(place, dict) and at.random() < 0.2:
        del holder[key]
    else:
        holder[key] = at.choice(_HOSTILE)


def _fields(bucket: Path, at: random.Random) -> None:
    """A value of the snapshot."""
    snapshot = _snapshot(bucket)
    _changed(snapshot, at)
    _put_snapshot(bucket, snapshot)


def _text(bucket: Path, at: random.Random) -> None:
    """The snapshot is another text."""
    whole = (bucket / _SNAPSHOT).read_text()
    texts = [
        "[" * 10**6,
        '{"format": ' + "9" * 10**6 + "}",
        "[]," * 10**6,
        "\xff",
        "{}",
        whole.replace('"runs": ', '"runs": 9'),
    ]
    (bucket / _SNAPSHOT).write_text(at.choice(texts), encoding="latin-1")


def _json_object(bucket: Path, at: random.Random) -> None:
    """A value of study.json."""
    files = cast(dict[str, Object], _snapshot(bucket)["files"])
    name = str(files["study.json"]["name"])
    content = json.loads((bucket / name).read_bytes())
    _changed(content, at)
    texts = [json.dumps(content), json.dumps(content), "[" * 10**5, "[" + "[]," * 10**6 + "[]]", "9" * 10**5]
    _replace(bucket, name, at.choice(texts).encode())


def _tables(bucket: Path) -> list[str]:
    snapshot = _snapshot(bucket)
    return [str(each["name"]) for key in ("planned", "batches") for each in _listed(snapshot[key])]


def _parquet_bytes(bucket: Path, at: random.Random) -> None:
    """Bytes of a Parquet object, most often of its footer."""
    name = at.choice(_tables(bucket))
    content = bytearray((bucket / name).read_bytes())
    for _ in range(at.choice([1, 1, 2, 8])):
        spot = at.randrange(len(content)) if at.random() < 0.4 else at.randrange(max(0, len(content) - 2000), len(content))
        content[spot] = at.randrange(256)
    _replace(bucket, name, bytes(content))


def _bomb(bucket: Path, at: random.Random) -> None:
    """A column of a table becomes a bomb."""
    name = at.choice(_tables(bucket))
    table = pq.read_table(bucket / name)
    column = at.choice(table.column_names)
    rows = at.choice([10**5, 10**6])
    zeros = pa.repeat(pa.scalar(0, pa.int32()), rows)
    text = at.choice(["y" * 10**4, "[" + "[]," * 10**5 + "[]]", '{"a":' * 500 + "1" + "}" * 500, "z" * 10**6])
    made = {}
    for each in table.column_names:
        if each == column:
            made[each] = pa.DictionaryArray.from_arrays(zeros, pa.array([text]))
        else:
            values = table[each].drop_null()[:1].combine_chunks()
            made[each] = pa.DictionaryArray.from_arrays(zeros, values) if len(values) else pa.nulls(rows, values.type)
    sink = pa.BufferOutputStream()
    pq.write_table(pa.table(made), sink, compression="zstd", store_schema=at.random() < 0.5)
    _replace(bucket, name, sink.getvalue().to_pybytes())


def _page(bucket: Path, at: random.Random) -> None:
    """A page of a table is 150 MB in 5 KB."""
    name = at.choice(_tables(bucket))
    table = pq.read_table(bucket / name)
    number = at.randrange(table.num_columns)
    large = pa.array(["z" * 150_000_000] + [""] * (table.num_rows - 1))[: table.num_rows]
    table = table.set_column(number, table.column_names[number], large)
    sink = pa.BufferOutputStream()
    pq.write_table(table, sink, compression="zstd", use_dictionary=False, write_statistics=False)
    _replace(bucket, name, sink.getvalue().to_pybytes())


def _rows(bucket: Path, at: random.Random) -> None:
    """Rows and columns of a table are others."""
    name = at.choice(_tables(bucket))
    table = pq.read_table(bucket / name)
    column = at.choice(table.column_names)
    number = table.column_names.index(column)
    match at.randrange(6):
        case 0:
            table = pa.concat_tables([table] * at.choice([2, 1000]))
        case 1:
            table = table.drop_columns([column])
        case 2:
            table = table.rename_columns({column: "other"})
        case 3:
            table = table.set_column(number, column, pa.nulls(table.num_rows, table[column].type))
        case 4:
            kind = at.choice([pa.int64(), pa.string(), pa.bool_(), pa.list_(pa.string()), pa.timestamp("ns")])
            table = table.set_column(number, column, pa.nulls(table.num_rows, kind))
        case _:
            values = table[column].to_pylist()
            if values:
                hostile = {pa.string(): ["", "\x1b[2J", "x" * 5000, "[" * 5000, "{}", "[]", "null", "\u202e"]}
                others = [None] if table[column].type == pa.bool_() else hostile.get(table[column].type, [None, 0, -1, 2**31])
                values[at.randrange(len(values))] = at.choice(others)
                table = table.set_column(number, column, pa.array(values, table[column].type))
    sink = pa.BufferOutputStream()
    pq.write_table(table, sink, compression="zstd")
    _replace(bucket, name, sink.getvalue().to_pybytes())


_MUTATIONS = (
    Mutation("kind", False, _kind),
    Mutation("size", False, _size),
    Mutation("repeated", False, _repeat),
    Mutation("snapshot value", True, _fields),
    Mutation("snapshot text", False, _text),
    Mutation("study.json", True, _json_object),
    Mutation("Parquet bytes", True, _parquet_bytes),
    Mutation("Parquet bomb", True, _bomb),
    Mutation("Parquet page", True, _page),
    Mutation("Parquet rows", True, _rows),
)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("count", type=int, nargs="?", default=1000)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--bucket", type=Path, help="a published bucket with two snapshots; its folder is not changed")
    parser.add_argument("--read", action="store_true", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.read:
        _read()
        return 0
    if options.bucket is None:
        parser.error("name a published bucket with --bucket FOLDER")
    outcomes: Counter[str] = Counter()
    with tempfile.TemporaryDirectory() as scratch:
        for found in faults(options.bucket, options.count, options.seed, Path(scratch)):
            outcomes["fault" if isinstance(found, Fault) else found] += 1
            if isinstance(found, Fault):
                sys.stdout.write(f"seed {found.seed}, {found.change}: {found.fault}\n")
                sys.stdout.flush()
    sys.stdout.write(f"{dict(outcomes)}\n")
    return 1 if outcomes["fault"] else 0


if __name__ == "__main__":
    sys.exit(main())
