"""Results as one file: the same page from it, checksums by ``sha256sum``, and archives that would do harm refused."""

from __future__ import annotations

import copy
import hashlib
import json
import shutil
import stat
import subprocess
import zipfile
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace

import pytest

import twinbed as tb
from synthetic_results import planted_response, write_study
from twinbed.cli.main import run
from twinbed.results.archive import unpack
from twinbed.results.archive.unpack import ArchiveRefused

PASSPORT = {"client": {"kernel": "6.1.0", "QEMU": "7.2.22"}, "image": {"nginx": "1.22.1", "digest": "abc"}}


@pytest.fixture
def results(tmp_path: Path) -> Path:
    respond = planted_response({"physical": 1.0, "virtio": 0.7}, 0.02, 1)
    folder = tmp_path / "made" / "http"
    return write_study(folder, ["physical", "virtio"], {"payload": ["500B"]}, 5, respond, passport=PASSPORT)


@pytest.mark.parametrize("raw", ["--raw", "--no-raw"])
def test_the_page_of_an_archive_is_that_of_the_results(results: Path, tmp_path: Path, raw: str) -> None:
    file = tmp_path / "elsewhere" / "study.zip"
    file.parent.mkdir()
    assert run(["archive", str(results), "-o", str(file), raw]) == 0
    assert run(["report", str(results)]) == 0
    page = (results / "report.html").read_bytes()
    shutil.rmtree(results)
    assert run(["report", str(file)]) == 0
    assert file.with_name("study-report.html").read_bytes() == page
    with zipfile.ZipFile(file) as archive:
        assert archive.read("report.html") == page
        assert any("/artifacts/" in name for name in archive.namelist()) == (raw == "--raw")
    assert tb.open(file).metrics("requests_per_second").num_rows == 10


def test_the_same_results_make_the_same_file_with_right_checksums(results: Path, tmp_path: Path) -> None:
    one, two = tmp_path / "one.zip", tmp_path / "two.zip"
    for file in (one, two):
        assert run(["archive", str(results), "-o", str(file), "--author", "A. Author", "--license", "CC-BY-4.0"]) == 0
    assert one.read_bytes() == two.read_bytes()
    with zipfile.ZipFile(one) as archive:
        archive.extractall(tmp_path / "out")
    done = subprocess.run(["sha256sum", "--check", "--strict", "--quiet", "SHA256SUMS"], cwd=tmp_path / "out", check=False)
    assert done.returncode == 0


def test_the_metadata(results: Path, tmp_path: Path) -> None:
    file = tmp_path / "study.zip"
    assert run(["archive", str(results), "-o", str(file), "--author", "A. Author", "--license", "CC-BY-4.0"]) == 0
    with zipfile.ZipFile(file) as archive:
        crate = json.loads(archive.read("ro-crate-metadata.json"))
        citation = archive.read("CITATION.cff").decode()
        names = set(archive.namelist())
    entities = {entity["@id"]: entity for entity in crate["@graph"]}
    # What RO-Crate 1.1 demands of its descriptor and of the root.
    assert entities["ro-crate-metadata.json"]["about"] == {"@id": "./"}
    assert entities["ro-crate-metadata.json"]["conformsTo"]["@id"].startswith("https://w3id.org/ro/crate/1.1")
    root = entities["./"]
    assert {"name", "description", "datePublished", "license", "author"} <= root.keys()
    assert root["datePublished"] == "2023-11-14", "the last run's day"
    parts = {part["@id"] for part in root["hasPart"]}
    assert names - parts == {"ro-crate-metadata.json", "SHA256SUMS"}
    assert parts <= entities.keys(), "every part is described"
    assert entities["#software-QEMU"]["version"] == "7.2.22"
    assert entities["#software-nginx"]["version"] == "1.22.1"
    assert 'license: "CC-BY-4.0"' in citation and 'name: "A. Author"' in citation


def test_a_licence_is_an_identifier_or_an_address(results: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = tmp_path / "study.zip"
    address = "https://creativecommons.org/licenses/by/4.0/"
    assert run(["archive", str(results), "-o", str(file), "--license", address]) == 0
    with zipfile.ZipFile(file) as archive:
        # license-url is CFF 1.2.0's key for it.
        assert f'license-url: "{address}"' in archive.read("CITATION.cff").decode().splitlines()
    assert run(["archive", str(results), "-o", str(tmp_path / "none.zip"), "--license", "CC BY: #4"]) == 2
    assert "neither an SPDX identifier" in capsys.readouterr().err
    assert not (tmp_path / "none.zip").exists()


def changed(file: Path, change: Callable[[zipfile.ZipFile, zipfile.ZipFile], None]) -> Path:
    other = file.with_name("changed.zip")
    with zipfile.ZipFile(file) as old, zipfile.ZipFile(other, "w", zipfile.ZIP_DEFLATED) as new:
        for entry in old.infolist():
            new.writestr(entry, old.read(entry))
        change(old, new)
    return other


def add(
    name: str, content: bytes, mode: int = stat.S_IFREG, packing: int = zipfile.ZIP_DEFLATED
) -> Callable[[zipfile.ZipFile, zipfile.ZipFile], None]:
    def change(_: zipfile.ZipFile, new: zipfile.ZipFile) -> None:
        entry = zipfile.ZipInfo(name)
        entry.external_attr = (mode | 0o644) << 16
        entry.compress_type = packing
        new.writestr(entry, content)

    return change


@pytest.mark.parametrize(
    ("change", "said"),
    [
        (add("../outside", b"x"), "leads out of the archive"),
        (add("/etc/outside", b"x"), "leads out of the archive"),
        (add("runs/../../outside", b"x"), "leads out of the archive"),
        (add("runs\\outside", b"x"), "leads out of the archive"),
        (add("", b"x"), "leads out of the archive"),
        (add("link", b"/etc/passwd", stat.S_IFLNK), "is not a plain file"),
        (add("extra", b"x"), "is not in SHA256SUMS"),
        (add("zeros", bytes(70 * 2**20)), "43 files would be 73,"),
        (add("zeros", b"0", packing=zipfile.ZIP_LZMA), "not compressed by deflate"),
    ],
)
def test_what_would_do_harm_is_refused(
    results: Path,
    tmp_path: Path,
    change: Callable[[zipfile.ZipFile, zipfile.ZipFile], None],
    said: str,
) -> None:
    file = tmp_path / "study.zip"
    assert run(["archive", str(results), "-o", str(file), "--no-raw"]) == 0
    with pytest.raises(ArchiveRefused, match=said.replace("(", "\\(")):
        unpack.unpack(changed(file, change), tmp_path / "out" / "study")
    assert not list((tmp_path / "out").iterdir()), "nothing is left"
    assert not (tmp_path / "outside").exists()


def test_many_small_bombs_are_one(tmp_path: Path) -> None:
    """Members that are each below what no ratio counts for make 800 MB of 1 MB."""
    with zipfile.ZipFile(tmp_path / "bomb.zip", "w", zipfile.ZIP_DEFLATED, compresslevel=1) as archive:
        for number in range(16):
            archive.writestr(f"zeros-{number}", bytes(50 * 2**20))
    with pytest.raises(ArchiveRefused, match="16 files would be 838,860,800 bytes from"):
        unpack.unpack(tmp_path / "bomb.zip", tmp_path / "out" / "study")
    assert not list((tmp_path / "out").iterdir())


def test_files_that_lie_over_each_other_are_refused(tmp_path: Path) -> None:
    """A central directory may list the same packed bytes a thousand times."""
    with zipfile.ZipFile(tmp_path / "over.zip", "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("a", bytes(2**20))
        for number in range(1000):
            again = copy.copy(archive.infolist()[0])
            again.filename = f"b{number}"
            archive.filelist.append(again)
    with pytest.raises(ArchiveRefused, match="overlaps another file"):
        unpack.unpack(tmp_path / "over.zip", tmp_path / "out" / "study")


def test_an_archive_leaves_room_on_the_disk(results: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    file = tmp_path / "study.zip"
    assert run(["archive", str(results), "-o", str(file), "--no-raw"]) == 0
    monkeypatch.setattr(shutil, "disk_usage", lambda _: SimpleNamespace(free=2**28 + 10_000))
    with pytest.raises(ArchiveRefused, match=r"268,435,456 to spare, but .* has 268,445,456 free") as refused:
        unpack.unpack(file, tmp_path / "out" / "study")
    assert "TMPDIR" in refused.value.advice
    assert not list((tmp_path / "out").iterdir())


def test_what_would_not_be_opened_is_not_packed(results: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    artifacts = next((results / "runs").glob("*/artifacts"))
    with (artifacts / "sparse").open("wb") as file:
        file.truncate(70 * 2**20)
    assert run(["archive", str(results), "-o", str(tmp_path / "a.zip"), "--raw"]) == 2
    assert "the results compress too well" in capsys.readouterr().err
    assert not (tmp_path / "a.zip").exists()


def test_damage_is_found(results: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = tmp_path / "study.zip"
    assert run(["archive", str(results), "-o", str(file), "--no-raw"]) == 0
    with zipfile.ZipFile(file) as old, zipfile.ZipFile(tmp_path / "other.zip", "w") as new:
        for entry in old.infolist():
            text = old.read(entry)
            new.writestr(
                entry.filename, text.replace(b'"margin": 0.1', b'"margin": 0.2') if entry.filename == "study.json" else text
            )
    assert run(["report", str(tmp_path / "other.zip")]) == 2
    assert "'study.json' does not match SHA256SUMS" in capsys.readouterr().err
    whole = file.read_bytes()
    file.write_bytes(whole[: len(whole) // 2] + whole[-22:])
    assert run(["report", str(file)]) == 2
    with zipfile.ZipFile(tmp_path / "none.zip", "w") as none:
        none.writestr("a", "b")
    assert run(["report", str(tmp_path / "none.zip")]) == 2
    assert "is not an archive of results" in capsys.readouterr().err
    with zipfile.ZipFile(tmp_path / "name.zip", "w") as strange:
        strange.writestr("é", "b")
    text = (tmp_path / "name.zip").read_bytes()
    assert text.count("é".encode()) == 2
    (tmp_path / "name.zip").write_bytes(text.replace("é".encode(), b"\x80\x80"))  # it says that it is UTF-8
    assert run(["report", str(tmp_path / "name.zip")]) == 2
    assert "is damaged, or no zip file" in capsys.readouterr().err


@pytest.mark.parametrize(
    "command",
    [
        ["compare", "--format", "json"],
        ["passport"],
        ["analyse", "anova"],
        ["analyse", "regression", "--formula", "requests_per_second ~ testbed"],
    ],
    ids=" ".join,
)
def test_commands_read_archives_as_results(
    results: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str], command: list[str]
) -> None:
    file = tmp_path / "http.zip"
    assert run(["archive", str(results), "-o", str(file)]) == 0
    capsys.readouterr()
    words = [*command[:2], "{}", *command[2:]] if command[0] == "analyse" else [command[0], "{}", *command[1:]]
    said = []
    for source in (results, file):
        code = run([word.replace("{}", str(source)) for word in words])
        said.append((code, capsys.readouterr().out.replace(str(source), "SOURCE")))
    assert said[0] == said[1]
    assert said[0][0] in (0, 4)


def test_an_archive_without_artifacts_is_archived_again_as_it_is_and_is_not_merged(
    results: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    small, again = tmp_path / "http.zip", tmp_path / "again.zip"
    assert run(["archive", str(results), "-o", str(small), "--no-raw"]) == 0
    assert run(["archive", str(small), "-o", str(again)]) == 0
    assert again.read_bytes() == small.read_bytes()
    assert tb.open(again).metrics("requests_per_second")["value"].null_count == 0
    assert run(["merge", str(small), str(results), "-o", str(tmp_path / "both")]) == 2
    assert "http has no artifacts" in capsys.readouterr().err
    assert not (tmp_path / "both").exists()


def test_a_file_that_was_cut_short_is_said_to_be_no_archive(
    results: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "study.zip"
    assert run(["archive", str(results), "-o", str(file)]) == 0
    file.write_bytes(file.read_bytes()[:-50])
    assert run(["report", str(file)]) == 2
    assert "study.zip is not a complete archive of results" in capsys.readouterr().err


def test_an_archive_is_merged_as_results_are(results: Path, tmp_path: Path) -> None:
    respond = planted_response({"container": 1.0}, 0.02, 2)
    other = write_study(tmp_path / "other", ["container"], {"payload": ["500B"]}, 5, respond)
    assert run(["archive", str(results), "-o", str(tmp_path / "http.zip")]) == 0
    assert run(["merge", str(tmp_path / "http.zip"), str(other), "-o", str(tmp_path / "both")]) == 0
    assert tb.open(tmp_path / "both").testbeds == ("physical", "virtio", "container")


def test_what_is_said_of_an_archive_names_it_and_not_where_it_was_unpacked(
    results: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "study.zip"
    (results / "links").mkdir()
    (results / "links" / "bad.json").write_text("{")
    first, second = sorted((results / "runs").iterdir())[:2]
    (first / "run.json").write_text("[]")
    (second / "run.json").write_text((second / "run.json").read_text().replace(second.name, "0" * 12))
    assert run(["archive", str(results), "-o", str(file)]) == 0
    capsys.readouterr()
    # Cautions name files from the results on, so that the page is the same wherever they lie.
    said = []
    for source in (results, file):
        assert run(["compare", str(source)]) in (0, 4, 5)
        said.append(capsys.readouterr().out)
    assert said[0] == said[1]
    text = " ".join(said[1].split())
    for part in ("runs/" + first.name + "/run.json: ", "runs/" + second.name + "/run.json has the id", "links/bad.json: "):
        assert f" {part}" in text
    assert run(["compare", str(file), "--reference", "nix"]) == 2
    assert f"{file} has no testbed 'nix'" in capsys.readouterr().err
    assert run(["analyse", "anova", str(file), "--response", "nix"]) == 2
    assert capsys.readouterr().err.startswith(f"twinbed: {file} has no metric 'nix'\n")
    assert run(["analyse", "contention", str(file)]) == 2
    assert capsys.readouterr().err.startswith(f"twinbed: {file}: no number of pairs varies\n")
    with pytest.raises(tb.TwinbedError, match=f"^{file} has no table nix\\n"):
        tb.open(file).table("nix")


@pytest.mark.parametrize(
    ("member", "text", "said"),
    [
        ("study.json", "[]", "study.json cannot be read: [] is not an object"),
        ("study.json", "{", "study.json cannot be read: "),
        ("study.json", '{"runs": [{}]}', "study.json cannot be read: runs: id is missing"),
        ("looks.json", "{}", "looks.json cannot be read: "),
    ],
)
def test_a_member_that_cannot_be_read_is_named_with_its_archive(
    results: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str], member: str, text: str, said: str
) -> None:
    file, other = tmp_path / "study.zip", tmp_path / "other.zip"
    study = json.loads((results / "study.json").read_text())
    (results / "study.json").write_text(json.dumps({**study, "replicates": {"least": 3, "most": 9}}))
    (results / "looks.json").write_text(json.dumps({"format": 1, "least": 3, "most": 9, "looks": []}))
    assert run(["archive", str(results), "-o", str(file)]) == 0
    with zipfile.ZipFile(file) as old, zipfile.ZipFile(other, "w") as new:
        sums = old.read("SHA256SUMS").decode()
        old_sum, new_sum = (hashlib.sha256(each).hexdigest() for each in (old.read(member), text.encode()))
        for entry in old.infolist():
            changed_to = {member: text, "SHA256SUMS": sums.replace(old_sum, new_sum)}.get(entry.filename)
            new.writestr(entry.filename, old.read(entry) if changed_to is None else changed_to)
    for command in (["compare", str(other)], ["merge", str(file), str(other), "-o", str(tmp_path / "both")]):
        capsys.readouterr()
        assert run(command) == 2
        error = capsys.readouterr().err
        assert f"{other}/{said}" in error
        assert "archive" in error.splitlines()[1], "the advice is about the archive"
        assert "/twinbed-" not in error


@pytest.mark.parametrize("raw", ["--raw", "--no-raw"])
@pytest.mark.parametrize("which", ["run.json", "artifacts/client/secret", "."])
def test_links_are_not_packed(results: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str], which: str, raw: str) -> None:
    (secret := tmp_path / "secret").write_text("root:x")
    folder = next((results / "runs").iterdir())
    link = folder / which
    if which == ".":
        folder.rename(tmp_path / "elsewhere-run")
        folder.symlink_to(tmp_path / "elsewhere-run")
    else:
        link.parent.mkdir(parents=True, exist_ok=True)
        if link.exists():
            link.rename(secret)
        link.symlink_to(secret)
    assert run(["archive", str(results), "-o", str(tmp_path / "a.zip"), raw]) == 2
    assert "is a symbolic link" in capsys.readouterr().err
    assert not (tmp_path / "a.zip").exists()


def test_names_that_are_not_utf_8_are_written_with_escapes(results: Path, tmp_path: Path) -> None:
    file = tmp_path / "study.zip"
    assert run(["archive", str(results), "-o", str(file), "--author", "A\udcff", "--title", "T\udcff"]) == 0
    with zipfile.ZipFile(file) as archive:
        assert r"A\udcff" in archive.read("CITATION.cff").decode()
