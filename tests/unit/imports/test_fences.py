"""Tools' output inside Markdown: a fence is a file, and the headings above it are folders."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from twinbed.cli.main import run
from twinbed.imports.layout.fences import fences
from twinbed.imports.scan import opened

FORMATS = Path(__file__).parents[2] / "golden" / "formats"
PING = (FORMATS / "ping" / "iputils" / "input.txt").read_text()
SOCKPERF = (FORMATS / "sockperf" / "ping-pong" / "input.txt").read_text()


def asked(capsys: pytest.CaptureFixture[str], *arguments: str | Path, code: int = 0) -> str:
    capsys.readouterr()
    assert run([str(each) for each in arguments]) == code
    out, err = capsys.readouterr()
    return out + err


def notes(folder: Path) -> Path:
    """Two testbeds with two runs each, a listing of commands, and a file without results."""
    folder.mkdir()
    commands = "```sh\nping -c 4 server\n```\n\n"
    text = "Notes\n=====\nwhat I did\n\n" + commands
    for index, testbed in enumerate(("host", "`docker`")):
        text += f"## {testbed} ##\n\n### ping, size 56\n\n"
        for replicate in (1, 2):
            body = PING.replace("64 bytes", f"{64 + 8 * index + replicate} bytes")
            text += f"- run {replicate}\n\n  ~~~~ text\n" + "".join(f"  {line}\n" for line in body.splitlines()) + "  ~~~~\n\n"
    (folder / "notes.md").write_text(text)
    (folder / "README.md").write_text("# How\n\n" + commands)
    return folder


def test_a_fence_is_a_file_and_headings_are_its_folders(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    folder, results = notes(tmp_path / "in"), tmp_path / "out"
    said = asked(capsys, "import", folder, code=2)
    assert "4 of them look like" in said
    assert "notes.md/Notes/{testbed}/ping, size 56/{replicate:int}" in said
    pattern = "notes.md/Notes/{testbed}/ping, size {size:int}/{replicate:int}"
    text = asked(capsys, "import", folder, "-o", results, "--pattern", pattern, "--link")
    assert "4 files read, 0 partly read, 0 refused, 0 copies of others, 2 ignored" in text
    assert f"notes.md/Notes/1: does not match {pattern}" in text
    assert f"README.md: does not match {pattern}; nor do its 1 fences, such as README.md/How/1" in text
    records = [json.loads(file.read_text()) for file in (results / "runs").glob("*/run.json")]
    assert {(each["levels"]["testbed"], each["levels"]["size"], each["replicate"]) for each in records} == {
        (testbed, 56, replicate) for testbed in ("host", "docker") for replicate in (0, 1)
    }
    (artifact,) = [
        file for run_ in (results / "runs").iterdir() for file in run_.glob("artifacts/*/*") if "65 bytes" in file.read_text()
    ]
    assert artifact.read_text() == PING.rstrip("\n").replace("64 bytes", "65 bytes") + "\n"
    again: Any = asked(capsys, "import", folder, "-o", results, "--pattern", pattern)
    assert "0 runs added" in again and "4 were imported before" in again


def test_a_manifest_names_fences_and_a_markdown_file_that_is_named_itself_is_one_file(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    folder = tmp_path / "in"
    folder.mkdir()
    (folder / "host_1.md").write_text(f"# Mine\n```\n{PING}```\n")
    (folder / "both.md").write_text(f"# kvm\n```\n{SOCKPERF}\n```\n```\n{PING}```\n")
    text = asked(capsys, "import", folder, "--dry-run", "--pattern", "{testbed}_{replicate:int}.md", "--format", "csv")
    assert "host_1.md,read,ping," in text
    rows = ("path,testbed,replicate", "both.md/kvm/1,kvm,1", "both.md/kvm/2,kvm,2", "host_1.md/Mine/1,host,1")
    (tmp_path / "files.csv").write_text("\n".join(rows))
    text = asked(capsys, "import", folder, "--dry-run", "--manifest", tmp_path / "files.csv", "--format", "csv")
    assert "both.md/kvm/1,read,sockperf," in text and "both.md/kvm/2,read,ping," in text
    assert "host_1.md/Mine/1,read,ping," in text


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("```\na\n```\n", {"1": "a\n"}),
        ("# A\n## B\n```\na\n```\n# C\n```x y\nb\n~~~\n```\n~~~\nc\n", {"A/B/1": "a\n", "C/1": "b\n~~~\n", "C/2": "c\n"}),
        ("A *b*\n---\n````\n```\na\n```\n````\n", {"A b/1": "```\na\n```\n"}),
        ("#tag\n####### seven\n# a/../b #\n```\n\n```\n```\nx", {"a-..-b/1": "x\n"}),
        ("### deep\n## ..\n```\nx\n```", {"-/1": "x\n"}),
        ("`code` ``` no fence ```\n", {}),
    ],
)
def test_fences_are_those_of_commonmark(text: str, found: dict[str, str]) -> None:
    assert {each.path: each.text for each in fences(text)} == found


@given(st.text(alphabet="#`~ab/. \n-=*", max_size=80))
def test_no_fence_leads_out_of_its_file_and_no_two_have_one_path(text: str) -> None:
    paths = [each.path for each in fences(text)]
    assert len(paths) == len(set(paths))
    assert not any(part in ("", ".", "..") for path in paths for part in path.split("/"))


def test_what_is_no_fence_cannot_be_opened(tmp_path: Path) -> None:
    (tmp_path / "a.md").write_text("```\nx\n```\n")
    (tmp_path / "a.txt").write_text("```\nx\n```\n")
    with opened(str(tmp_path / "a.md" / "1")) as (descriptor, about):
        assert os.read(descriptor, 9) == b"x\n"
        assert about.st_mtime_ns == (tmp_path / "a.md").stat().st_mtime_ns
    for path in ("a.md/2", "a.txt/1"):
        with pytest.raises(FileNotFoundError), opened(str(tmp_path / path)):
            pass
