"""Readers in Python, each a function of bytes: what it may not raise, it does not raise.

python -m benchmarks.fuzz.targets NAME [libFuzzer's arguments]
"""

from __future__ import annotations

import socket
import struct
import sys
import tempfile
from collections.abc import Callable, Mapping
from pathlib import Path

FOLDER = Path(tempfile.gettempdir())


def _file(data: bytes) -> Path:
    path = FOLDER / "input"
    path.write_bytes(data)
    return path


def study(data: bytes) -> None:
    """A study file: all its problems, or a study."""
    from twinbed.registry import catalogue
    from twinbed.study.document import StudyError
    from twinbed.study.loading import load

    try:
        load(data.decode(errors="replace"), "fuzzed.yaml", catalogue())
    except StudyError as error:
        assert error.message


def archive(data: bytes) -> None:
    """A zip file: refused, or in its folder, and nothing beside it."""
    import shutil

    from twinbed.results.archive.unpack import ArchiveRefused, unpack

    file, folder = _file(data), FOLDER / "unpacked"
    try:
        unpack(file, folder)
    except ArchiveRefused:
        assert not folder.exists()
    shutil.rmtree(folder, ignore_errors=True)
    assert {path.name for path in FOLDER.iterdir()} <= {"input"}


def agent(data: bytes) -> None:
    """What an agent sends: the host is lost in the end, whatever came, and nothing more is taken than was asked for."""
    from twinbed.hosts.connection import Channel, Connection
    from twinbed.hosts.error import HostError

    ours, theirs = socket.socketpair()
    with theirs:
        connection = Connection("host", ours, key="k")
        with theirs:
            channel = Channel(connection, "a question")
            theirs.sendall(_GREETING + data[: 1 << 16] if data[:1] != b"!" else data[1 : 1 << 16])
            theirs.shutdown(socket.SHUT_WR)
            try:
                answer = channel.result(10.0)
                assert isinstance(answer, dict)
            except HostError as error:
                assert error.message
    connection.close()


_HELLO = b'{"key": "k", "version": "0", "pid": 1}'
_GREETING = struct.pack("<IIB", len(_HELLO), 0, 1) + _HELLO


def minimega(data: bytes) -> None:
    """What minimega answers, in two pieces."""
    from twinbed.hosts.error import HostError
    from twinbed.testbeds.minimega.socket import Decoder, _understood

    decoder = Decoder()
    try:
        parts = decoder.feed(data[: len(data) // 2]) + decoder.feed(data[len(data) // 2 :])
        _understood("vm info", parts).rows  # noqa: B018 - a property that reads
    except (HostError, ValueError, TypeError, KeyError, AttributeError) as error:
        assert str(error)


def imported(data: bytes) -> None:
    """A file of any format that is imported: the first byte says of which, whatever it looks like."""
    from twinbed.contracts.format import FormatError
    from twinbed.imports.text.source import File
    from twinbed.registry import PLUGINS

    formats = [PLUGINS.formats[name] for name in sorted(PLUGINS.formats)]
    if not data:
        return
    source = File(_file(data[1:]), "fuzzed")
    read = formats[data[0] % len(formats)]
    read.recognises(source.head())
    try:
        assert read.read(source, {})
    except FormatError as error:
        assert error.reason


TARGETS: Mapping[str, Callable[[bytes], None]] = {each.__name__: each for each in (study, archive, agent, minimega, imported)}


def main() -> None:
    import atheris

    global FOLDER
    name = sys.argv.pop(1)
    with atheris.instrument_imports(include=["twinbed"], enable_loader_override=False):
        for module in ("registry", "study.loading", "results.archive.unpack", "hosts.connection", "testbeds.minimega.socket"):
            __import__(f"twinbed.{module}")
        from twinbed.registry import PLUGINS

        assert PLUGINS.formats
    base = "/dev/shm" if Path("/dev/shm").is_dir() else None
    with tempfile.TemporaryDirectory(prefix="twinbed-fuzz-", dir=base) as folder:
        FOLDER = Path(folder)
        atheris.Setup(sys.argv, TARGETS[name])
        atheris.Fuzz()


if __name__ == "__main__":
    main()
