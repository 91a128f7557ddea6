"""Container images that a study names: which one is meant, and its layers, without a daemon.

    oci-archive:FILE       an OCI image layout in a tar file (skopeo copy, buildah push, docker buildx --output type=oci)
    docker-archive:FILE    a tar file of `docker save` or `podman save`
    FOLDER                 a root file system below the study's folder

Sources of the forms: opencontainers/image-spec (image-layout.md, manifest.md, layer.md) and moby's image/spec (v1.2). An image
must be for linux/amd64. Everything that is read is compared with the digest by which the image names it.
"""

from __future__ import annotations

import contextlib
import gzip
import hashlib
import io
import os
import re
import stat
import tarfile
import tempfile
import zlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache, partial
from pathlib import Path
from typing import IO, BinaryIO, cast

from twinbed.model.json import WRONG, Document, document, documents, loads, text

OCI, DOCKER = "oci-archive:", "docker-archive:"
MOST_BYTES = 8 * 2**30
"""The most bytes of an image, unpacked, and of each of its layers."""
MOST_FILES = 200_000
_MOST_DOCUMENT_BYTES = 4 * 2**20
_MOST_HEADER_BYTES = 8 * 2**20
"""The most that a tar header's extension may take in memory."""
_MOST_VARIABLES_BYTES = 64 * 2**10
_DIGEST = re.compile(r"(sha256:[0-9a-f]{64}|sha512:[0-9a-f]{128})")
_VARIABLE = re.compile(r"[A-Za-z_][A-Za-z0-9_]*=[^\0]*")
_PLATFORM = "linux/amd64"
_CHUNK_BYTES = 2**18
_ZSTD, _GZIP = b"\x28\xb5\x2f\xfd", b"\x1f\x8b"
_INDEXES = ("application/vnd.oci.image.index.v1+json", "application/vnd.docker.distribution.manifest.list.v2+json")
_DEEPEST_INDEX = 3
_TAR_ERRORS = (tarfile.TarError, ValueError, OverflowError, EOFError, RecursionError)


class Unreadable(ValueError):
    """A source that is no image, or not one that can be used here."""


@dataclass(frozen=True, slots=True)
class ContainerImage:
    """``layers``: the layers from the lowest on. Each call with a folder for temporary files returns a context with a plain tar
    file, compared with its digest. A folder has none."""

    digest: str
    layers: Sequence[Callable[[Path], contextlib.AbstractContextManager[BinaryIO]]]
    environment: Mapping[str, str]
    folder: Path | None = None


def located(source: str, folder: Path) -> str:
    """Return a source with its whole path; paths start at ``folder``, the study's.

    Raises Unreadable for a folder that is not below it: a study names no other folder of this machine."""
    prefix = next((prefix for prefix in (OCI, DOCKER) if source.startswith(prefix)), "")
    path = folder / source.removeprefix(prefix)
    if prefix:
        return f"{prefix}{path}"
    top, here = path.resolve(), folder.resolve()
    if not top.is_dir() or top == here or not top.is_relative_to(here) or here == Path("/"):
        raise Unreadable(f"image: {source}: give {OCI}FILE, {DOCKER}FILE, or a folder below the study's, {here}")
    return str(top)


def digest(source: str) -> str:
    """Return the digest of an image's content, which is read again only if a file changed. Raises Unreadable."""
    return _digest(source, _state(source))


@lru_cache(maxsize=16)
def _digest(source: str, state: object) -> str:
    with opened(source) as image:
        return image.digest


def _state(source: str) -> object:
    path = Path(source.partition(":")[2] if source.startswith((OCI, DOCKER)) else source)
    try:
        every = [path.stat(), *((status for _, status in walk(path)) if path.is_dir() else ())]
    except OSError:
        return None  # opening it reports the reason
    return tuple((status.st_ino, status.st_size, status.st_mtime_ns, status.st_ctime_ns) for status in every)


@contextlib.contextmanager
def opened(source: str) -> Iterator[ContainerImage]:
    """Open an image. Raises Unreadable."""
    try:
        if source.startswith((OCI, DOCKER)):
            with _Archive(source.partition(":")[2]) as archive:
                yield _oci(archive) if source.startswith(OCI) else _docker(archive)
        else:
            yield _folder(source)
    except OSError as error:
        raise Unreadable(f"{error.filename or source}: {error.strerror or error}") from None


class _Plain(io.FileIO):
    """A file that hands out a limited number of bytes at a time: tarfile reads a header's extension at once."""

    def read(self, size: int | None = -1, /) -> bytes:
        if size is None or size < 0 or size > _MOST_HEADER_BYTES:
            raise Unreadable(f"a header of the archive asks for {size} bytes of memory")
        return super().read(size) or b""


def tar(stream: BinaryIO) -> Iterator[tuple[tarfile.TarFile, tarfile.TarInfo]]:
    """Yield the members of a plain tar file, at most ``MOST_FILES``. Raises Unreadable."""
    limited = _Plain(os.dup(stream.fileno()), "rb")
    limited.seek(0)
    try:
        with limited, tarfile.open(fileobj=limited, mode="r:", errorlevel=2) as archive:
            count = 0
            while (member := archive.next()) is not None:
                count += 1
                if count > MOST_FILES:
                    raise Unreadable(f"it has more than {MOST_FILES:,} files")
                archive.members.clear()  # type: ignore[attr-defined]  # tarfile would keep them all
                yield archive, member
    except Unreadable:
        raise
    except _TAR_ERRORS as error:
        raise Unreadable(f"it is no whole tar file: {error}") from None


class _Archive:
    """The plain files of an archive by name."""

    def __init__(self, path: str) -> None:
        self.path = path
        self._file = os.fdopen(os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC), "rb")
        self._places: dict[str, tuple[int, int]] = {}
        self._links: dict[str, str] = {}

    def __enter__(self) -> _Archive:
        try:
            self._list()
        except BaseException:
            self._file.close()
            raise
        return self

    def _list(self) -> None:
        if not stat.S_ISREG(os.fstat(self._file.fileno()).st_mode):
            raise Unreadable(f"{self.path} is not a regular file")
        if self._file.read(4).startswith((_GZIP, _ZSTD)):
            raise Unreadable(f"{self.path} is compressed: unpack it first, with gunzip or zstd -d")
        for _, member in tar(self._file):
            name = member.name.removeprefix("./")
            if member.isreg() and not member.issparse():
                self._places[name] = (member.offset_data, member.size)
            elif member.issym():  # `docker save` of old shares layers so
                self._links[name] = os.path.normpath(f"{name}/../{member.linkname}")

    def __exit__(self, *_: object) -> None:
        self._file.close()

    def has(self, name: str) -> bool:
        return name in self._places

    def part(self, name: str) -> BinaryIO:
        place = self._places.get(name) or self._places.get(self._links.get(name, ""))
        if place is None:
            raise Unreadable(f"{self.path} has no file {name}")
        return cast(BinaryIO, io.BufferedReader(_Part(self._file.fileno(), *place), _CHUNK_BYTES))

    def content(self, name: str, of: str | None = None) -> tuple[bytes, str]:
        """Return a small file, and its digest, which must be ``of``."""
        content = self.part(name).read(_MOST_DOCUMENT_BYTES + 1)
        if len(content) > _MOST_DOCUMENT_BYTES:
            raise Unreadable(f"{name} is longer than {_MOST_DOCUMENT_BYTES:,} bytes")
        algorithm = of.partition(":")[0] if of else "sha256"
        actual = f"{algorithm}:{hashlib.new(algorithm, content).hexdigest()}"
        if of is not None and actual != of:
            raise Unreadable(f"{name} has the digest {actual}: it should be {of}")
        return content, actual


class _Part(io.RawIOBase):
    """A part of an open file."""

    def __init__(self, descriptor: int, offset: int, size: int) -> None:
        self._descriptor, self._at, self._left = descriptor, offset, size

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: memoryview) -> int:  # type: ignore[override]
        content = os.pread(self._descriptor, min(len(buffer), self._left), self._at)
        buffer[: len(content)] = content
        self._at += len(content)
        self._left -= len(content)
        return len(content)


class _Hashed(io.RawIOBase):
    """A stream that hashes what is read from it."""

    def __init__(self, stream: IO[bytes], algorithm: str) -> None:
        self._stream, self.hash = stream, hashlib.new(algorithm)

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: memoryview) -> int:  # type: ignore[override]
        content = self._stream.read(len(buffer))
        buffer[: len(content)] = content
        self.hash.update(content)
        return len(content)


def _oci(archive: _Archive) -> ContainerImage:
    with _named(archive.path, "is no OCI image layout"):
        if text(_document(archive, "oci-layout")["imageLayoutVersion"]) != "1.0.0":
            raise Unreadable(f"{archive.path}: the layout's version must be 1.0.0")
        chosen = _chosen(archive, _document(archive, "index.json"), 0)
        manifest, actual = _blob(archive, chosen)
        variables = _usable(_blob(archive, document(manifest["config"]))[0])
        layers = [_digest_of(layer) for layer in documents(manifest["layers"])]
        opening = [partial(_layer, archive, _path(layer), layer, packed=True) for layer in layers]
        return ContainerImage(actual, opening, variables)


def _docker(archive: _Archive) -> ContainerImage:
    with _named(archive.path, "is no archive of `docker save`"):
        images = documents(loads(archive.content("manifest.json")[0]))
        if len(images) != 1:
            raise Unreadable(f"{archive.path} has {len(images)} images: save one alone")
        name = text(images[0]["Config"])
        content, actual = archive.content(name)
        if actual.removeprefix("sha256:") not in name:
            raise Unreadable(f"{name} has the digest {actual}: its name says otherwise")
        config = document(loads(content))
        variables = _usable(config)
        files = [text(file) for file in cast("Sequence[str]", images[0]["Layers"])]
        digests = [text(layer_digest) for layer_digest in cast("Sequence[str]", document(config["rootfs"])["diff_ids"])]
        layers = zip(files, digests, strict=True)
        opening = [partial(_layer, archive, file, _right(layer_digest), packed=False) for file, layer_digest in layers]
        return ContainerImage(actual, opening, variables)


@contextlib.contextmanager
def _named(path: str, problem: str) -> Iterator[None]:
    try:
        yield
    except Unreadable:
        raise
    except WRONG as error:
        raise Unreadable(f"{path} {problem}: {type(error).__name__}: {error}") from None


def _chosen(archive: _Archive, index: Document, depth: int) -> Document:
    """Return the descriptor of the only manifest for this platform."""
    every = documents(index["manifests"])
    fitting = [manifest for manifest in every if _platform(manifest) in ("", _PLATFORM)]
    if len(fitting) != 1:
        platforms = ", ".join(sorted({_platform(manifest) or "unnamed" for manifest in every}))
        raise Unreadable(f"{archive.path} has {len(fitting)} images for {_PLATFORM} ({platforms}): it must have one")
    if fitting[0].get("mediaType") not in _INDEXES:
        return fitting[0]
    if depth == _DEEPEST_INDEX:
        raise Unreadable(f"{archive.path}: an index is more than {_DEEPEST_INDEX} deep")
    return _chosen(archive, _blob(archive, fitting[0])[0], depth + 1)


def _platform(descriptor: Document) -> str:
    platform = document(descriptor.get("platform", {}))
    return f"{text(platform['os'])}/{text(platform['architecture'])}" if platform else ""


def _blob(archive: _Archive, descriptor: Document) -> tuple[Document, str]:
    of = _digest_of(descriptor)
    content, actual = archive.content(_path(of), of)
    return document(loads(content)), actual


def _document(archive: _Archive, name: str) -> Document:
    return document(loads(archive.content(name)[0]))


def _digest_of(descriptor: Document) -> str:
    return _right(text(descriptor["digest"]))


def _right(of: str) -> str:
    if not _DIGEST.fullmatch(of):
        raise Unreadable(f"{of[:100]!r} is no digest of SHA-256 or SHA-512")
    return of


def _path(of: str) -> str:
    return f"blobs/{of.replace(':', '/')}"


def _usable(config: Document) -> Mapping[str, str]:
    """Return the variables of an image's configuration. Raises Unreadable for another platform."""
    platform = f"{text(config['os'])}/{text(config['architecture'])}"
    if platform != _PLATFORM:
        raise Unreadable(f"the image is for {platform}: it must be for {_PLATFORM}")
    inner = document(config.get("config") or {})
    lines = [text(line) for line in cast("Sequence[str]", inner.get("Env") or [])]
    if wrong := [line for line in lines if not _VARIABLE.fullmatch(line)]:
        raise Unreadable(f"{wrong[0][:100]!r} is no variable of an environment")
    if sum(map(len, lines)) > _MOST_VARIABLES_BYTES:
        raise Unreadable(f"its variables have more than {_MOST_VARIABLES_BYTES:,} bytes")
    return dict(line.split("=", 1) for line in lines)


@contextlib.contextmanager
def _layer(archive: _Archive, name: str, of: str, scratch: Path, *, packed: bool) -> Iterator[BinaryIO]:
    """Unpack a layer into a file without a name. The digest is of what the archive has (``packed``) or of what it holds."""
    algorithm = of.partition(":")[0]
    inner = _Hashed(archive.part(name), algorithm)
    plain = _decompressed(inner)
    outer = _Hashed(plain, algorithm)
    with tempfile.TemporaryFile(dir=scratch) as file:
        try:
            while content := outer.read(_CHUNK_BYTES):
                if file.tell() + len(content) > MOST_BYTES:
                    raise Unreadable(f"the layer {name} unpacks to more than {MOST_BYTES:,} bytes")
                file.write(content)
            while inner.read(_CHUNK_BYTES):  # what follows the compressed data
                pass
        except (zlib.error, EOFError, OSError) as error:
            raise Unreadable(f"the layer {name} cannot be unpacked: {error}") from None
        actual = f"{algorithm}:{(inner if packed else outer).hash.hexdigest()}"
        if actual != of:
            raise Unreadable(f"the layer {name} has the digest {actual}: it should be {of}")
        file.flush()
        yield cast(BinaryIO, file)


def _decompressed(stream: _Hashed) -> IO[bytes]:
    buffered = io.BufferedReader(stream, _CHUNK_BYTES)
    begin = buffered.peek(4)[:4]
    if begin.startswith(_GZIP):
        return cast("IO[bytes]", gzip.GzipFile(fileobj=buffered))
    if begin == _ZSTD:
        import pyarrow as pa  # the standard library's own zstd comes with Python 3.14

        return cast("IO[bytes]", pa.CompressedInputStream(pa.PythonFile(buffered, "r"), "zstd"))
    return buffered


def _folder(source: str) -> ContainerImage:
    top = Path(source)
    digest = hashlib.sha256()
    total = count = 0
    for path, status in walk(top):
        count, total = count + 1, total + (status.st_size if stat.S_ISREG(status.st_mode) else 0)
        if count > MOST_FILES or total > MOST_BYTES:
            raise Unreadable(f"{source} has more than {MOST_FILES:,} files or {MOST_BYTES:,} bytes")
        digest.update(f"{status.st_mode:o} {path.relative_to(top)}\0".encode(errors="surrogateescape"))
        if stat.S_ISREG(status.st_mode):
            with path.open("rb") as stream:
                digest.update(hashlib.file_digest(stream, "sha256").digest())
        elif stat.S_ISLNK(status.st_mode):
            digest.update(os.fsencode(path.readlink()) + b"\0")
    return ContainerImage(f"sha256:{digest.hexdigest()}", (), {}, top)


def walk(top: Path) -> Iterator[tuple[Path, os.stat_result]]:
    """Yield the folders, plain files and links below a folder, parents first, in the order of names; no link is followed."""
    for path in sorted(top.iterdir()):
        status = path.lstat()
        if stat.S_ISDIR(status.st_mode):
            yield path, status
            yield from walk(path)
        elif stat.S_ISREG(status.st_mode) or stat.S_ISLNK(status.st_mode):
            yield path, status
