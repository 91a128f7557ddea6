"""Executors of tasks that need no lab: this process, several processes of this machine, or a cluster.

A task is a function of a module and one argument, both of which can be pickled. Results come in the order of the arguments,
whichever is done first, and so depend neither on the workers nor on how many there are. If a worker dies, another worker
repeats its task. A task that kills every worker is an error.
"""

from __future__ import annotations

import contextlib
import os
import re
from collections.abc import Iterator
from pathlib import Path

from twinbed.executor.protocol import BadAnswer, Executor, Here, NoExecutor, WorkerLost

__all__ = ["BadAnswer", "Executor", "Here", "NoExecutor", "WorkerLost", "opened"]

_LOCAL = re.compile(r"local(?::([1-9]\d{0,3}))?")
_ADDRESS = re.compile(r"(tcp|tls)://\S+")


@contextlib.contextmanager
def opened(on: str | None, *, insecure: bool = False) -> Iterator[Executor]:
    """Open the executor that ``on`` names, until the context ends. Raises NoExecutor if there is none. Text ``on`` is ``local``
    (also None; a process for each CPU that this one may use), ``local:N``, the address of a dask scheduler (``tcp://`` or
    ``tls://``), or a file with a section ``cluster``. With ``insecure`` a scheduler on another machine needs no TLS."""
    if local := _LOCAL.fullmatch(on or "local"):
        number = int(local[1]) if local[1] else len(os.sched_getaffinity(0))
        if number == 1:
            yield Here()
            return
        from twinbed.executor.local import Processes

        yield Processes(number)
    elif on and (_ADDRESS.fullmatch(on) or Path(on).is_file()):
        from twinbed.executor.cluster import cluster

        with cluster(on, insecure=insecure) as executor:
            yield executor
    else:
        raise NoExecutor(
            f"--on {on}: no executor or file of this name",
            advice="local, local:4, tcp://scheduler:8786, tls://scheduler:8786, or a file with a section cluster",
        )
