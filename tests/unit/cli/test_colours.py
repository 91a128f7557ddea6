"""Colours are for terminals, and for those who want them; and what --quiet and --verbose of `run` and `check` leave and add."""

from __future__ import annotations

import io
import re
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from manual import json_output

from twinbed.cli.main import run
from twinbed.contracts.check import Check
from twinbed.lab import matrix
from twinbed.model.run import Phase

COLOUR = re.compile(r"\x1b\[(?:\d+;)*(?:3|4|9|10)\d(?:;\d+)*m")
COLOURED = {"run", "compare"}


class Terminal(io.TextIOWrapper):
    """What is written to it, whoever is asked whether it is one."""

    def __init__(self) -> None:
        super().__init__(io.BytesIO(), encoding="utf-8", write_through=True)

    def isatty(self) -> bool:
        return True

    def text(self) -> str:
        return bytes(self.buffer.getvalue()).decode()  # type: ignore[attr-defined]


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    path = tmp_path_factory.mktemp("colours")
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(path)
        json_output.prepared()
        yield path


def on_a_terminal(monkeypatch: pytest.MonkeyPatch) -> Terminal:
    """Standard output and standard error, until the test ends. Tests call it: pytest sets its own after fixtures."""
    terminal = Terminal()
    for name in ("NO_COLOR", "FORCE_COLOR", "TTY_COMPATIBLE", "COLORTERM"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("TERM", "xterm")
    for name in ("stdout", "stderr"):
        monkeypatch.setattr(sys, name, terminal)
    return terminal


def made_anew(folder: Path, name: str) -> None:
    """What an example writes may not be there; and a study that has nothing left to do prints no picture."""
    (folder / "mine.yaml").unlink(missing_ok=True)
    if name == "run":
        (folder / "results" / "demo" / "report.html").unlink(missing_ok=True)


@pytest.mark.parametrize("name", json_output.EXAMPLES)
def test_nobody_gets_colours_who_does_not_want_them(name: str, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    made_anew(folder, name)
    terminal = on_a_terminal(monkeypatch)
    monkeypatch.setenv("NO_COLOR", "1")
    run(json_output.line(name))
    assert terminal.text(), "it says something"
    assert not COLOUR.search(terminal.text())


@pytest.mark.parametrize("name", sorted(COLOURED))
def test_who_looks_gets_colours(name: str, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    made_anew(folder, name)
    terminal = on_a_terminal(monkeypatch)
    run(json_output.line(name))
    assert COLOUR.search(terminal.text())


@pytest.mark.parametrize("name", sorted(COLOURED))
def test_a_pipe_gets_plain_text(name: str, folder: Path, capfd: pytest.CaptureFixture[str]) -> None:
    made_anew(folder, name)
    run(json_output.line(name))
    shown = capfd.readouterr()
    assert shown.out + shown.err
    assert "\x1b" not in shown.out + shown.err


def test_run_verbose_has_a_line_a_phase(folder: Path, capfd: pytest.CaptureFixture[str]) -> None:
    assert run(["run", "demo.yaml", "-v", "-o", "verbose", "--only", "workload.rate=1000", "-s", "replicates=2"]) == 0
    lines = capfd.readouterr().err.splitlines()
    phases = [line.rpartition(": ")[2] for line in lines if re.match(r"\[1/4\] . 1000 #.: [a-z-]+$", line)]
    order = [str(phase) for phase in Phase]
    assert len(phases) > 3 and phases == sorted(phases, key=order.index), "in the order of a run"
    assert [line for line in lines if line in ("extract", "compare", "report")] == ["extract", "compare", "report"]
    assert run(["run", "demo.yaml", "-v", "-q"]) == 2


def test_run_quiet_says_nothing_else(folder: Path, capfd: pytest.CaptureFixture[str]) -> None:
    assert run(["run", "demo.yaml", "-q", "-o", "quiet"]) == 0
    shown = capfd.readouterr()
    assert run(["compare", "quiet", "-q"]) in (0, 4, 5)
    verdict = capfd.readouterr().out.split()
    assert (shown.out.split(), shown.err) == ([*verdict, "quiet/report.html"], "")


def test_check_quiet_says_what_does_not_work(monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]) -> None:
    checks = [
        Check("tcpdump", True, "4.99", group="instrument"),
        Check("e1000", False, "no such device", "install QEMU", group="NIC"),
    ]
    monkeypatch.setattr(matrix, "matrix", lambda *_, **__: checks)
    code = run(["check"])
    whole = capfd.readouterr().out
    assert run(["check", "--quiet"]) == code
    quiet = capfd.readouterr().out
    assert "tcpdump" in whole and "tcpdump" not in quiet and "Instruments" not in quiet
    assert "e1000" in quiet and "install QEMU" in quiet
    monkeypatch.setattr(matrix, "matrix", lambda *_, **__: checks[:1])
    assert run(["check", "--quiet"]) == 0
    assert capfd.readouterr().out == ""
