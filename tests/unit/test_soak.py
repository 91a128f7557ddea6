"""`make soak` passes only if every part has finished a round and no case has failed."""

from __future__ import annotations

import sys

import pytest
from benchmarks import soak


@pytest.mark.parametrize(
    ("went", "code", "shown"),
    [
        (soak.Soaked(rounds=2), 0, "passed"),
        (soak.Soaked(rounds=0), 1, "NO ROUND FINISHED"),
        (soak.Soaked(rounds=1, failed="the command"), 1, "FAILED"),
    ],
)
def test_exit_code(
    went: soak.Soaked, code: int, shown: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    others = soak.Soaked(rounds=1)
    monkeypatch.setattr(soak, "soak", lambda part, share_s, seed: went if part is soak.PARTS[1] else others)
    monkeypatch.setattr(sys, "argv", ["soak", "--for", "1m"])
    monkeypatch.setenv("COLUMNS", "120")
    assert soak.main() == code
    rows = capsys.readouterr().out.splitlines()
    assert [shown in row for row in rows if soak.PARTS[1].name in row] == [True]
