"""What the controller does with a run that a machine has made: who keeps less of it is told when its folder is there, and
before the machine gets another."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest

from twinbed import design, registry
from twinbed.executor.cluster import Cluster
from twinbed.fleet.blocks import Block, Blocks
from twinbed.fleet.controller import _Loop, _Member, _Notes
from twinbed.fleet.words import Asked, Made
from twinbed.model.run import Status
from twinbed.results.folder import Folder
from twinbed.study.loading import load

STUDY = "study: x\ntestbeds: {a: {driver: fake}}\nworkload: {kind: planted}\ninstruments: []\nreplicates: 2\n"


def test_a_run_is_told_of_when_it_is_there(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    runs = design.runs(load(STUDY, "x.yaml", registry.catalogue()))
    happened: list[str] = []

    def fetched(self: _Loop, one: _Member, run: Any, made: Made) -> Iterator[Any]:
        happened.append(f"fetched {run.id}")
        yield from ()

    monkeypatch.setattr(_Loop, "_fetch", fetched)
    folder = Folder(tmp_path / "results")
    folder.runs.mkdir(parents=True)
    blocks = SimpleNamespace(made=lambda *_: None, give_back=lambda name: None)
    loop = _Loop(
        cast(Cluster, None),
        cast(Blocks, blocks),
        folder,
        _Notes(folder, "id", {}),
        cast(Asked, None),
        lambda event: None,
        True,
        lambda run: happened.append(f"told of {run}"),
    )
    steps = loop._block(_Member("tcp://x", "m1"), cast(Block, SimpleNamespace(due=list(runs))))
    task = next(steps)
    for run in runs:
        happened.append(f"asked for {cast(Any, task.argument).run.id}")
        try:
            task = steps.send(Made(run.id, Status.COMPLETE, 1.0, None, None, {}, None))
        except StopIteration:
            break
    one, other = (run.id for run in runs)
    assert happened == [f"{what} {run}" for run in (one, other) for what in ("asked for", "fetched", "told of")]
