"""What hosts may do to the folders and names of this machine: nothing."""

from __future__ import annotations

from pathlib import Path

import pytest

from twinbed.hosts import files
from twinbed.hosts.agent import AgentHost, FileThere
from twinbed.hosts.error import HostError

PLAIN = ["ab.out", "trunk-1.pcap", "a", "iperf3.json.err", "x" * 200]
STRANGE = ["", ".", "..", "../x", "/etc/passwd", "a/b", ".hidden", "-rf", "a\nb", "a\0b", "x" * 201, "ä", "a b", "a\\b"]


@pytest.mark.parametrize("name", PLAIN)
def test_plain_names_are_taken(name: str) -> None:
    assert files.plain_name(name, "client1") == name


@pytest.mark.parametrize("name", STRANGE)
def test_other_names_are_refused_with_their_host(name: str) -> None:
    with pytest.raises(HostError, match=r"client1: .* is no name of an artifact"):
        files.plain_name(name, "client1")


class Liar(AgentHost):
    """Says that it has a file of any name."""

    def listdir(self, path: str, *, limit_s: float = 10.0) -> list[FileThere]:
        return [FileThere("ab.out", "file", 0), FileThere(self.bin, "file", int(self.artifacts == "/large") * 2**62)]

    def fetch(self, path: str, to: Path, *, limit_s: float = 120.0, most_bytes: int | None = None) -> int:
        raise AssertionError(f"{path} was to be written to {to}")


@pytest.mark.parametrize("name", ["../../escaped", "/tmp/escaped"])
def test_nothing_is_fetched_from_a_host_that_gives_a_path_for_a_name(name: str, tmp_path: Path) -> None:
    liar = Liar("client1", None, "/artifacts", bin=name)  # type: ignore[arg-type]
    with pytest.raises(HostError, match="no name of an artifact"):
        liar.collect(tmp_path)
    assert not list(tmp_path.iterdir())


def test_too_many_files_are_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(files, "MOST_FILES", 1)
    with pytest.raises(HostError, match="2 artifacts are more than 1"):
        Liar("client1", None, "/artifacts").collect(tmp_path)  # type: ignore[arg-type]


def test_a_folder_in_the_place_of_an_artifact_fails_the_run(tmp_path: Path) -> None:
    (tmp_path / "client" / "ab.out").mkdir(parents=True)
    with pytest.raises(HostError, match=r"client: ab\.out: a program made a folder in place of this artifact"):
        files.create(tmp_path / "client" / "ab.out")


def test_more_bytes_than_there_is_room_for_are_not_fetched(tmp_path: Path) -> None:
    """As a sparse file announces them, which a guest makes in a moment."""
    with pytest.raises(
        HostError, match="client1: its artifacts have 4,611,686,018,427,387,904 bytes, and half of the free space"
    ):
        Liar("client1", None, "/large", bin="large").collect(tmp_path)  # type: ignore[arg-type]
    assert not list(tmp_path.iterdir())


def test_links_are_not_written_through(tmp_path: Path) -> None:
    (victim := tmp_path / "victim").write_text("kept")
    (shared := tmp_path / "shared").mkdir()
    (shared / "ab.out").symlink_to(victim)
    with files.create(shared / "ab.out") as sink:
        sink.write(b"new")
    assert victim.read_text() == "kept"
    assert not (shared / "ab.out").is_symlink()
    assert (shared / "ab.out").read_bytes() == b"new"
    (tmp_path / "linked").symlink_to(shared)
    with pytest.raises(OSError):
        files.create(tmp_path / "linked" / "ab.out")
