"""Container images made by hand, by the public specifications: an OCI layout and an archive of `docker save`."""

from __future__ import annotations

import gzip
import hashlib
import io
import json
import tarfile
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path

Member = tuple[str, bytes, str | bytes, int]
"""(name, type as of tarfile, content or target, mode)"""


def layer(members: Iterable[Member]) -> bytes:
    """Return a layer: tarfile's types, such as REGTYPE with a content and SYMTYPE with a target."""
    out = io.BytesIO()
    with tarfile.open(fileobj=out, mode="w", format=tarfile.PAX_FORMAT) as archive:
        for name, kind, content, mode in members:
            info = tarfile.TarInfo(name)
            info.type, info.mode, info.mtime = kind, mode, 1_600_000_000
            if isinstance(content, str):
                info.linkname = content
                archive.addfile(info)
            else:
                info.size = len(content)
                archive.addfile(info, io.BytesIO(content))
    return out.getvalue()


def file(name: str, content: bytes = b"", mode: int = 0o644) -> Member:
    return name, tarfile.REGTYPE, content, mode


def folder(name: str, mode: int = 0o755) -> Member:
    return name, tarfile.DIRTYPE, b"", mode


def link(name: str, target: str) -> Member:
    return name, tarfile.SYMTYPE, target, 0o777


def config(layers: Sequence[bytes], variables: Sequence[str] = (), platform: str = "linux/amd64") -> bytes:
    system, architecture = platform.split("/")
    ids = [f"sha256:{hashlib.sha256(each).hexdigest()}" for each in layers]
    return json.dumps(
        {
            "os": system,
            "architecture": architecture,
            "config": {"Env": list(variables)},
            "rootfs": {"type": "layers", "diff_ids": ids},
        }
    ).encode()


def archive(path: Path, files: Mapping[str, bytes]) -> Path:
    path.write_bytes(layer(file(name, content) for name, content in files.items()))
    return path


def oci(path: Path, layers: Sequence[bytes], variables: Sequence[str] = (), **changed: bytes) -> Path:
    """Write an OCI archive with packed layers. ``changed``: other contents of its files, by name."""
    packed = [gzip.compress(each, mtime=0) for each in layers]
    blobs = {f"blobs/sha256/{hashlib.sha256(each).hexdigest()}": each for each in packed}

    def described(content: bytes, kind: str) -> dict[str, object]:
        sha256 = hashlib.sha256(content).hexdigest()
        blobs[f"blobs/sha256/{sha256}"] = content
        return {"mediaType": f"application/vnd.oci.image.{kind}", "digest": f"sha256:{sha256}", "size": len(content)}

    manifest = {
        "schemaVersion": 2,
        "config": described(config(layers, variables), "config.v1+json"),
        "layers": [described(each, "layer.v1.tar+gzip") for each in packed],
    }
    index = {"schemaVersion": 2, "manifests": [described(json.dumps(manifest).encode(), "manifest.v1+json")]}
    files = {"oci-layout": b'{"imageLayoutVersion": "1.0.0"}', "index.json": json.dumps(index).encode(), **blobs}
    return archive(path, {**files, **changed})


def docker(path: Path, layers: Sequence[bytes], variables: Sequence[str] = ()) -> Path:
    """Write an archive as `docker save` does."""
    about = config(layers, variables)
    name = f"{hashlib.sha256(about).hexdigest()}.json"
    names = [f"{hashlib.sha256(each).hexdigest()}/layer.tar" for each in layers]
    manifest = json.dumps([{"Config": name, "RepoTags": ["app:1"], "Layers": names}]).encode()
    return archive(path, {"manifest.json": manifest, name: about, **dict(zip(names, layers, strict=True))})
