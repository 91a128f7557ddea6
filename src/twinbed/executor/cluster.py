"""Tasks on a dask cluster: one that runs already, or one that a file of the user's describes.

dask's own settings hold, such as those of TLS (``distributed.comm.tls`` in its files or environment, docs/scale.md).
"""

from __future__ import annotations

import contextlib
import importlib
import logging
from collections.abc import Callable, Iterable, Iterator, Mapping
from concurrent.futures import CancelledError
from functools import partial
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar

from twinbed.executor.program import Program, program
from twinbed.executor.protocol import NoExecutor, WorkerLost
from twinbed.model.near import instead

if TYPE_CHECKING:
    from distributed import Client, Future

T = TypeVar("T")
R = TypeVar("R")
_KINDS: Mapping[str, tuple[str, str]] = {
    "ssh": ("distributed", "SSHCluster"),
    "kubernetes": ("dask_kubernetes.operator", "KubeCluster"),
    **{
        kind: ("dask_jobqueue", f"{name}Cluster")
        for kind, name in (
            ("htcondor", "HTCondor"),
            ("lsf", "LSF"),
            ("oar", "OAR"),
            ("pbs", "PBS"),
            ("sge", "SGE"),
            ("slurm", "SLURM"),
        )
    },
}
"""Kind of a cluster -> its class."""
ANSWER_S = 30.0
"""The scheduler has so long to answer, and its first worker to come."""
AHEAD = 2
"""Tasks in hand for each that can be done at once, so that no worker waits for the next one."""


@contextlib.contextmanager
def cluster(on: str) -> Iterator[Cluster]:
    """The one whose scheduler is at ``on``, or that the file ``on`` describes, which lasts as long as the context."""
    try:
        import distributed
    except ImportError as error:
        raise NoExecutor(f"--on {on} needs dask: {error}", advice="pip install 'twinbed[cluster]'") from None
    logging.getLogger("distributed").setLevel(logging.CRITICAL)  # what goes wrong is said once, in our own words
    with contextlib.ExitStack() as stack:
        address = stack.enter_context(_described(Path(on))) if Path(on).is_file() else on
        try:
            client = stack.enter_context(distributed.Client(address, timeout=ANSWER_S, set_as_default=False))
            client.wait_for_workers(1, timeout=ANSWER_S)
        except (OSError, TimeoutError, ValueError, TypeError) as error:  # the last: tls:// without settings of TLS
            raise NoExecutor(
                f"--on {on}: {str(error) or 'no answer'}",
                advice="is a scheduler there (`dask scheduler`), has it workers (`dask worker ADDRESS`), have all TLS?",
            ) from None
        yield Cluster(client, on)


@contextlib.contextmanager
def _described(file: Path) -> Iterator[object]:
    from ruamel.yaml import YAML
    from ruamel.yaml.error import YAMLError

    try:
        content = YAML(typ="safe").load(file.read_text(encoding="utf-8"))
        settings = dict(content["cluster"])
        kind = str(settings.pop("kind"))
        workers = settings.pop("workers", None)
    except (OSError, UnicodeDecodeError, YAMLError, LookupError, TypeError, ValueError) as error:
        raise NoExecutor(
            f"{file} describes no cluster: {error!r:.300}", advice="cluster: {kind: slurm, workers: 10, cores: 1, memory: 4GB}"
        ) from None
    if kind not in _KINDS:
        raise NoExecutor(f"{file}: no kind of cluster is called {kind!r}", advice=instead(kind, sorted(_KINDS)))
    module, name = _KINDS[kind]
    try:
        made = getattr(importlib.import_module(module), name)(**settings)
    except ImportError as error:
        package = module.partition(".")[0].replace("_", "-")
        raise NoExecutor(
            f"{file}: a cluster of kind {kind} needs {package}: {error}", advice=f"pip install {package}"
        ) from None
    except (TypeError, ValueError, OSError, RuntimeError) as error:
        raise NoExecutor(f"{file}: {name}: {error}", advice=f"the settings are those of {module}.{name}") from None
    with made:
        if workers is not None:
            made.scale(workers)
        yield made


class Cluster:
    """The workers of a scheduler."""

    def __init__(self, client: Client, name: str) -> None:
        self.client, self.name = client, name

    @property
    def workers(self) -> int:
        try:
            threads: Mapping[str, int] = self.client.nthreads()
        except OSError:
            raise self.lost() from None
        return max(1, sum(threads.values()))

    def lost(self, kept: str = "what is done is not done again") -> NoExecutor:
        """That the scheduler is; ``kept``: what the same command need not do again."""
        return NoExecutor(f"the scheduler {self.name} was lost", exit_code=1, advice=f"run the same command again: {kept}")

    def map(self, function: Callable[[T], R], arguments: Iterable[T]) -> Iterator[R]:
        import distributed

        tasks = enumerate(arguments)
        task = partial(_carried_out, program(), function)
        numbers: dict[Future[R], int] = {}
        done: dict[int, R] = {}
        given = 0
        ended = distributed.as_completed(loop=self.client.loop)

        def hand_out() -> None:
            for number, argument in islice(tasks, max(0, AHEAD * self.workers - len(numbers))):
                # Not pure: what it reads may have changed since a task of the same name.
                future = self.client.submit(task, argument, pure=False)
                numbers[future] = number
                ended.add(future)

        try:
            hand_out()
            while numbers:
                future = next(ended)
                done[numbers.pop(future)] = self._result(future)
                hand_out()
                while given in done:
                    yield done.pop(given)
                    given += 1
        finally:
            if numbers:
                with contextlib.suppress(Exception):
                    self.client.cancel(list(numbers))

    def _result(self, future: Future[R]) -> R:
        """What a task came to. Raises what it raised, WorkerLost, and NoExecutor where the scheduler is lost."""
        import distributed
        from distributed.comm.core import CommClosedError

        try:
            return future.result()
        except distributed.KilledWorker as error:
            raise WorkerLost(
                f"every worker that was given a task died: {error}",
                advice="memory may have run out: look at the workers' logs",
            ) from None
        except (CancelledError, CommClosedError):  # which the client's status may tell a moment later only
            raise self.lost() from None
        except OSError:
            if self.client.status == "running":
                raise  # the task's own
            raise self.lost() from None


def _carried_out(own: Program, function: Callable[[T], R], argument: T) -> R:
    """In a worker, which refuses what is of another program than its own."""
    if (here := program()) != own:
        raise NoExecutor(f"a worker has {here}, this is {own}", advice="install the same twinbed on all of them")
    return function(argument)
