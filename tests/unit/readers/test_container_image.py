"""Container images that a study names: what their own tools write is read; what a hostile one claims is not believed."""

from __future__ import annotations

import gzip
import hashlib
import json
import os
import subprocess
import tarfile
from pathlib import Path

import pytest
from tests.container_images import archive, config, docker, file, folder, layer, link, oci

from twinbed.readers import container_image
from twinbed.readers.container_image import Unreadable, digest, located, opened

LAYERS = [
    layer([folder("d"), file("d/one", b"1"), link("lib", "usr/lib"), folder("usr"), folder("usr/lib")]),
    layer([file("d/.wh.one"), file("lib/two", b"2")]),
]


def contents(source: str, scratch: Path) -> list[bytes]:
    """The plain layers of an image."""
    found = []
    with opened(source) as image:
        for each in image.layers:
            with each(scratch) as stream:
                stream.seek(0)
                found.append(stream.read())
    return found


def refused(source: str, scratch: Path) -> str:
    with pytest.raises(Unreadable) as error:
        contents(source, scratch)
    return str(error.value)


@pytest.mark.parametrize(("prefix", "write"), [("oci-archive:", oci), ("docker-archive:", docker)])
def test_layers_and_variables_are_those_of_the_archive(prefix: str, write: object, tmp_path: Path) -> None:
    source = f"{prefix}{write(tmp_path / 'a.tar', LAYERS, ['PATH=/bin', 'A=b=c'])}"  # type: ignore[operator]
    assert contents(source, tmp_path) == LAYERS
    with opened(source) as image:
        assert image.environment == {"PATH": "/bin", "A": "b=c"}


@pytest.mark.parametrize("packing", ["gzip", "zstd"])
def test_what_skopeo_writes_is_read(packing: str, tmp_path: Path) -> None:
    docker(tmp_path / "from.tar", LAYERS, ["PATH=/bin"])
    copy = ["skopeo", "--insecure-policy", "copy", "-q", f"--dest-compress-format={packing}"]
    run = [*copy, f"docker-archive:{tmp_path}/from.tar", f"oci-archive:{tmp_path}/to.tar"]
    subprocess.run(run, check=True, capture_output=True)
    assert contents(f"oci-archive:{tmp_path}/to.tar", tmp_path) == LAYERS


def test_the_digest_is_the_manifests_or_the_configurations(tmp_path: Path) -> None:
    path = oci(tmp_path / "a.tar", LAYERS)
    with tarfile.open(path) as written:
        index = json.load(written.extractfile("index.json"))  # type: ignore[arg-type]
    assert digest(f"oci-archive:{path}") == index["manifests"][0]["digest"]
    about = hashlib.sha256(config(LAYERS)).hexdigest()
    assert digest(f"docker-archive:{docker(tmp_path / 'd.tar', LAYERS)}") == f"sha256:{about}"


def test_a_changed_file_has_another_digest(tmp_path: Path) -> None:
    source = f"oci-archive:{oci(tmp_path / 'a.tar', LAYERS)}"
    before = digest(source)
    oci(tmp_path / "a.tar", LAYERS[:1])
    assert digest(source) != before


@pytest.mark.parametrize("which", range(4))
def test_each_part_must_have_the_digest_that_names_it(which: int, tmp_path: Path) -> None:
    """Two layers, the configuration and the manifest."""
    with tarfile.open(oci(tmp_path / "a.tar", LAYERS)) as written:
        blobs = [member.name for member in written if member.name.startswith("blobs")]
        content = {name: written.extractfile(name).read() for name in blobs}  # type: ignore[union-attr]
    name = blobs[which]
    gz = content[name].startswith(b"\x1f\x8b")
    other = gzip.compress(LAYERS[0] + bytes(1024)) if gz else content[name].replace(b":", b": ", 1)
    path = oci(tmp_path / "b.tar", LAYERS, **{name: other})
    assert "has the digest sha256:" in refused(f"oci-archive:{path}", tmp_path)


def test_a_layer_of_docker_save_must_have_its_digest(tmp_path: Path) -> None:
    about = config(LAYERS[:1])
    name = f"{hashlib.sha256(about).hexdigest()}.json"
    manifest = json.dumps([{"Config": name, "Layers": ["l.tar"]}]).encode()
    path = archive(tmp_path / "a.tar", {"manifest.json": manifest, name: about, "l.tar": LAYERS[1]})
    assert "the layer l.tar has the digest" in refused(f"docker-archive:{path}", tmp_path)


def test_an_index_of_platforms_and_attestations_is_followed(tmp_path: Path) -> None:
    """As buildkit writes it: an index in the index, with a manifest of an unknown platform."""
    with tarfile.open(oci(tmp_path / "a.tar", LAYERS)) as written:
        own = json.load(written.extractfile("index.json"))["manifests"][0]  # type: ignore[arg-type]
    unknown = {**own, "platform": {"os": "unknown", "architecture": "unknown"}}
    inner = json.dumps({"manifests": [{**own, "platform": {"os": "linux", "architecture": "amd64"}}, unknown]}).encode()
    sha256 = hashlib.sha256(inner).hexdigest()
    outer = {"mediaType": "application/vnd.oci.image.index.v1+json", "digest": f"sha256:{sha256}", "size": len(inner)}
    changed = {"index.json": json.dumps({"manifests": [outer]}).encode(), f"blobs/sha256/{sha256}": inner}
    path = oci(tmp_path / "b.tar", LAYERS, **changed)
    assert contents(f"oci-archive:{path}", tmp_path) == LAYERS
    deep = json.dumps({"manifests": [{**outer, "digest": f"sha256:{'0' * 64}"}]}).encode()
    assert "has no file blobs/sha256/0000" in refused(
        f"oci-archive:{oci(tmp_path / 'c.tar', LAYERS, **{'index.json': deep})}", tmp_path
    )


@pytest.mark.parametrize(
    ("files", "reason"),
    [
        ({}, "has no file oci-layout"),
        ({"oci-layout": b"{}"}, "is no OCI image layout"),
        ({"oci-layout": b'{"imageLayoutVersion": "9"}'}, "version must be 1.0.0"),
        ({"oci-layout": b'{"imageLayoutVersion": "1.0.0"}', "index.json": b"[]"}, "is no OCI image layout"),
        ({"oci-layout": b'{"imageLayoutVersion": "1.0.0"}', "index.json": b'{"manifests": []}'}, "0 images for linux/amd64"),
        (
            {
                "oci-layout": b'{"imageLayoutVersion": "1.0.0"}',
                "index.json": b'{"manifests": [{"digest": "sha256:../../../etc/passwd"}]}',
            },
            "is no digest",
        ),
        ({"oci-layout": b"[" * 100_000}, "is no OCI image layout"),
        ({"oci-layout": b" " * (5 * 2**20)}, "longer than"),
    ],
)
def test_what_is_no_layout_is_refused(files: dict[str, bytes], reason: str, tmp_path: Path) -> None:
    assert reason in refused(f"oci-archive:{archive(tmp_path / 'a.tar', files)}", tmp_path)


def test_other_platforms_and_several_images_are_refused(tmp_path: Path) -> None:
    about = config(LAYERS, platform="linux/arm64")
    name = f"{hashlib.sha256(about).hexdigest()}.json"
    one = {"Config": name, "Layers": []}
    path = archive(tmp_path / "a.tar", {"manifest.json": json.dumps([one]).encode(), name: about})
    assert "is for linux/arm64: it must be for linux/amd64" in refused(f"docker-archive:{path}", tmp_path)
    path = archive(tmp_path / "b.tar", {"manifest.json": json.dumps([one, one]).encode(), name: about})
    assert "has 2 images: save one alone" in refused(f"docker-archive:{path}", tmp_path)


def test_other_files_are_refused(tmp_path: Path) -> None:
    (tmp_path / "text").write_text("no archive")
    assert "is no whole tar file" in refused(f"oci-archive:{tmp_path}/text", tmp_path)
    (tmp_path / "a.tar.gz").write_bytes(gzip.compress(oci(tmp_path / "a.tar", LAYERS).read_bytes()))
    assert "is compressed: unpack it first" in refused(f"oci-archive:{tmp_path}/a.tar.gz", tmp_path)
    os.mkfifo(tmp_path / "pipe")
    assert "is not a regular file" in refused(f"oci-archive:{tmp_path}/pipe", tmp_path)
    assert "No such file" in refused(f"oci-archive:{tmp_path}/missing", tmp_path)
    cut = oci(tmp_path / "cut.tar", LAYERS).read_bytes()
    (tmp_path / "cut.tar").write_bytes(cut[: len(cut) // 2])
    refused(f"oci-archive:{tmp_path}/cut.tar", tmp_path)


def test_a_bomb_is_refused_before_it_fills_the_disk(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(container_image, "MOST_BYTES", 2**20)
    path = oci(tmp_path / "a.tar", [layer([file("big", bytes(50 * 2**20))])])
    assert path.stat().st_size < 2**17
    assert "unpacks to more than 1,048,576 bytes" in refused(f"oci-archive:{path}", tmp_path)


def test_a_header_takes_no_memory_and_no_recursion(tmp_path: Path) -> None:
    """A header's extension of 64 MiB, and thousands of headers that each continue the one before."""
    info = tarfile.TarInfo("x")
    info.type, info.size = tarfile.XHDTYPE, 64 * 2**20
    (tmp_path / "long").write_bytes(info.tobuf() + bytes(64 * 2**20))
    with (tmp_path / "long").open("rb") as stream, pytest.raises(Unreadable, match="asks for 67108864 bytes"):
        list(container_image.tar(stream))
    info.type, info.size = tarfile.GNUTYPE_LONGNAME, 2
    (tmp_path / "many").write_bytes((info.tobuf() + b"x".ljust(512, b"\0")) * 5000)
    with (tmp_path / "many").open("rb") as stream, pytest.raises(Unreadable, match="is no whole tar file"):
        list(container_image.tar(stream))


def test_too_many_files_are_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(container_image, "MOST_FILES", 10)
    path = archive(tmp_path / "a.tar", {f"{number}": b"" for number in range(11)})
    assert "more than 10 files" in refused(f"oci-archive:{path}", tmp_path)


@pytest.mark.parametrize("variable", ["NO_VALUE", "1=x", "=x", "A=\0"])
def test_variables_are_variables(variable: str, tmp_path: Path) -> None:
    path = docker(tmp_path / "a.tar", LAYERS, [variable])
    assert "no variable of an environment" in refused(f"docker-archive:{path}", tmp_path)


def test_a_folder_must_be_below_the_studys(tmp_path: Path) -> None:
    here = tmp_path / "here"
    (here / "root").mkdir(parents=True)
    (here / "out").symlink_to("/etc")
    source = located("./root", here)
    before = digest(source)
    (here / "root/file").write_text("1")
    assert digest(source) != before
    for other in ("/", "/etc", "..", ".", "out", "../here", "missing"):
        with pytest.raises(Unreadable, match="a folder below the study's"):
            located(other, here)
    with pytest.raises(Unreadable, match="a folder below the study's"):
        located("etc", Path("/"))
    assert located("oci-archive:a.tar", here) == f"oci-archive:{here}/a.tar"
    assert located("docker-archive:/a.tar", here) == "docker-archive:/a.tar"
