"""Simultaneous multithreading of a leased host, played: whatever it says, what is set can be undone and is read back."""

from __future__ import annotations

from typing import Any

import pytest

from twinbed.hosts.error import HostError
from twinbed.testbeds.remote.facts import CONTROL, set_threads


class Leased:
    """A lease and its host in one."""

    name = "client"

    def __init__(self, control: str | None, takes: bool = True) -> None:
        self.control, self.takes = control, takes
        self.log: list[Any] = []
        self.host = self

    def read(self, path: str) -> bytes:
        assert path == CONTROL
        if self.control is None:
            raise HostError("no such file")
        return f"{self.control}\n".encode()

    def write(self, path: str, content: bytes) -> None:
        self.log.append((path, content))
        if self.takes:
            self.control = content.decode()

    def undo_file(self, path: str, content: str) -> None:
        self.log.append(("undo", path, content))


def test_it_is_set_after_what_undoes_it_is_entered() -> None:
    leased = Leased("on")
    (applied,) = set_threads(leased, "off")  # type: ignore[arg-type]
    assert leased.log == [("undo", CONTROL, "on"), (CONTROL, b"off")]
    assert applied.agrees and applied.found == "off"


def test_what_is_so_already_is_left_alone() -> None:
    leased = Leased("off")
    (applied,) = set_threads(leased, "off")  # type: ignore[arg-type]
    assert leased.log == [] and applied.agrees
    assert set_threads(Leased(None), None) == []  # type: ignore[arg-type]


def test_a_host_that_only_says_so_is_found_out() -> None:
    (applied,) = set_threads(Leased("on", takes=False), "off")  # type: ignore[arg-type]
    assert not applied.agrees


@pytest.mark.parametrize("control", ["notsupported", "forceoff", None])
def test_a_host_without_a_choice_is_refused(control: str | None) -> None:
    with pytest.raises(HostError, match=f"is {control or 'missing'}\\nleave smt out"):
        set_threads(Leased(control), "off")  # type: ignore[arg-type]
