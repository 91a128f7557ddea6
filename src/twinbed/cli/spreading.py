"""`twinbed run --on`: make the runs of a study on the machines of a cluster."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from twinbed import registry
from twinbed.cli.on import is_insecure
from twinbed.design.time import expense
from twinbed.executor.cluster import cluster
from twinbed.fleet.blocks import Interim
from twinbed.fleet.controller import carry_out
from twinbed.fleet.words import Asked
from twinbed.lab import needs
from twinbed.lab.study import Ending, Listener
from twinbed.model.error import TwinbedError
from twinbed.results.folder import Folder
from twinbed.study.run import Run
from twinbed.study.study import Order, Study


def carried_out(
    on: str,
    study: Study,
    runs: Sequence[Run],
    folder: Folder,
    listener: Listener,
    *,
    only: Sequence[str],
    keep_going: bool,
    retry_failed: bool,
    interim: Interim | None,
    on_made: Callable[[str], None],
) -> Ending:
    """Make the runs on the cluster ``on``. Raises TwinbedError for a study that a fleet cannot run."""
    if study.order is not Order.RANDOMIZED_BLOCKS:
        raise TwinbedError(
            f"--on needs `order: randomized-blocks` (machines run whole blocks); {study.name} has `order: {study.order}`",
            advice="change the order in the study, or run it without --on",
        )
    if elsewhere := dict.fromkeys(run.testbed_name for run in runs if not needs.is_here(run, registry.PLUGINS)):
        raise TwinbedError(
            f"{', '.join(elsewhere)}: `--on` cannot share these hosts between machines", advice="run the study without --on"
        )
    with cluster(on, insecure=is_insecure()) as workers:
        return carry_out(
            study,
            runs,
            folder,
            workers,
            _asked,
            listener,
            only=only,
            keep_going=keep_going,
            retry_failed=retry_failed,
            interim=interim,
            on_made=on_made,
        )


def _asked(results: str, to_do: Sequence[Run]) -> Asked:
    cells = {run.cell: run for run in to_do}
    largest = max(expense([run]).bytes for run in cells.values())
    used = {run.testbed.kind for run in to_do}
    image = not all(registry.PLUGINS.drivers[name].in_process for name in used)
    return Asked(results, tuple(cells.values()), largest, image)
