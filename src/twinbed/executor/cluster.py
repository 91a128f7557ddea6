"""Tasks on a dask cluster: a running one, or one that a file of the user's describes.

dask's own settings hold, such as those of TLS (``distributed.comm.tls`` in its files or environment, docs/scale.md).
"""

from __future__ import annotations

import contextlib
import importlib
import ipaddress
import logging
import socket
import warnings
from collections.abc import Callable, Iterable, Iterator, Mapping
from concurrent.futures import CancelledError
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar
from urllib.parse import urlsplit

from twinbed.executor.answers import carried_out, program, value_of
from twinbed.executor.protocol import BadAnswer, NoExecutor, WorkerLost
from twinbed.model.near import instead

if TYPE_CHECKING:
    from distributed import Future, Security

    from twinbed.executor.data_only import DataClient

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
"""The scheduler must answer within this, and its first worker must come."""
HANDED_OVER_S = 600.0
"""A finished answer must arrive within this: 1 GiB, by 15 Mbit/s."""
AHEAD = 2
"""Tasks in hand for each task that can run at once, so that no worker waits for the next one."""


@contextlib.contextmanager
def cluster(on: str, *, insecure: bool = False) -> Iterator[Cluster]:
    """Open the cluster with the scheduler at ``on``, or the one that the file ``on`` describes, until the context ends. Without
    TLS the scheduler must be on this machine, unless ``insecure``."""
    try:
        import distributed  # noqa: F401 -- what follows may be here already
        from distributed.versions import VersionMismatchWarning

        from twinbed.executor.data_only import DataClient, refusing
    except ImportError as error:
        raise NoExecutor(f"--on {on} needs dask: {error}", advice="pip install 'twinbed[cluster]'") from None
    for name in ("distributed", "distributed.client", "tornado"):  # what goes wrong is said once, in our own words
        logging.getLogger(name).setLevel(logging.CRITICAL)
    with contextlib.ExitStack() as stack:
        stack.enter_context(warnings.catch_warnings(action="ignore", category=VersionMismatchWarning))  # a scheduler's text
        if Path(on).is_file():
            address, security = stack.enter_context(_described(Path(on), insecure))
        else:
            refuse_open(on, on, insecure)
            address, security = on, None
            stack.enter_context(refusing())
        try:
            client = stack.enter_context(DataClient(address, timeout=ANSWER_S, security=security))
            client.wait_for_workers(1, timeout=ANSWER_S)
        except Exception as error:  # noqa: BLE001 - whatever dask makes of what answers there, or of settings of TLS
            raise NoExecutor(
                f"--on {on}: {str(error)[:500] or 'no answer'}",
                advice="check that a scheduler (`dask scheduler`) and workers (`dask worker ADDRESS`) run there, all with TLS",
            ) from None
        yield Cluster(client, on)


@contextlib.contextmanager
def _described(file: Path, insecure: bool) -> Iterator[tuple[str, Security]]:
    """Yield the scheduler's address, and how to reach it. A batch system's scheduler is in this process, and unpickles the
    tasks that it is given: its workers are the user's own jobs."""
    from ruamel.yaml import YAML
    from ruamel.yaml.error import YAMLError

    try:
        content = YAML(typ="safe").load(file.read_text(encoding="utf-8"))
        settings = dict(content["cluster"])
        kind = str(settings.pop("kind"))
        workers = settings.pop("workers", None)
    except (OSError, UnicodeDecodeError, YAMLError, LookupError, TypeError, ValueError) as error:
        raise NoExecutor(
            f"{file} does not describe a cluster: {error!r:.300}",
            advice="cluster: {kind: slurm, workers: 10, cores: 1, memory: 4GB}",
        ) from None
    if kind not in _KINDS:
        raise NoExecutor(f"{file}: unknown kind of cluster {kind!r}", advice=instead(kind, sorted(_KINDS)))
    module, name = _KINDS[kind]
    from twinbed.executor.data_only import refusing

    with contextlib.nullcontext() if module == "dask_jobqueue" else refusing():
        yield from _made(file, module, name, kind, settings, workers, insecure)


def _made(
    file: Path, module: str, name: str, kind: str, settings: Mapping[str, Any], workers: int | None, insecure: bool
) -> Iterator[tuple[str, Security]]:
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
        refuse_open(made.scheduler_address, str(file), insecure)
        if workers is not None:
            made.scale(workers)
        yield made.scheduler_address, made.security


class Cluster:
    """The workers of a scheduler. Everything they send is data, which is checked."""

    def __init__(self, client: DataClient, name: str) -> None:
        self.client, self.name = client, name

    @property
    def is_there(self) -> bool:
        """Return whether the scheduler is there, as far as is known yet."""
        return self.client.status == "running" and not self.client.deaf

    @property
    def workers(self) -> int:
        return max(1, sum(self.threads().values()))

    def threads(self) -> dict[str, int]:
        """Return address of a worker -> its threads."""
        return self._asked(self.client.nthreads, dict[str, int])

    def resources(self) -> dict[str, dict[str, float]]:
        """Return address of a worker -> its resources."""

        def asked() -> object:
            workers = self.client.scheduler_info(n_workers=-1)["workers"]
            return {address: facts["resources"] for address, facts in workers.items()}

        return self._asked(asked, dict[str, dict[str, float]])

    def _asked(self, question: Callable[[], object], shape: type[R]) -> R:
        """Return the scheduler's answer. Raises NoExecutor if it is lost, or answers something else."""
        from pydantic import TypeAdapter

        try:
            return TypeAdapter(shape).validate_python(question())
        except OSError:
            raise self.lost() from None
        except Exception as error:  # noqa: BLE001 - whatever dask makes of an answer that is none
            raise NoExecutor(
                f"{self.name} does not answer as a scheduler: {error!r:.300}",
                exit_code=1,
                advice="check that it is a dask scheduler",
            ) from None

    def lost(self, kept: str = "finished tasks are not repeated") -> NoExecutor:
        """Return the error that the scheduler is lost; ``kept`` is what the same command need not do again."""
        return NoExecutor(f"the scheduler {self.name} was lost", exit_code=1, advice=f"run the same command again: {kept}")

    def submit(self, function: Callable[[T], R], argument: T, **options: object) -> Future[bytes]:
        """Hand out a task, for ``value``. It is not pure: its input may have changed since a task of the same name."""
        return self.client.submit(carried_out, program(), function, argument, pure=False, **options)

    def map(self, function: Callable[[T], R], arguments: Iterable[T]) -> Iterator[R]:
        import distributed

        tasks = enumerate(arguments)
        numbers: dict[Future[bytes], int] = {}
        done: dict[int, R] = {}
        given = 0
        ended = distributed.as_completed(loop=self.client.loop)

        def hand_out() -> None:
            for number, argument in islice(tasks, max(0, AHEAD * self.workers - len(numbers))):
                future = self.submit(function, argument)
                numbers[future] = number
                ended.add(future)

        try:
            hand_out()
            while numbers:
                future = next(ended)
                done[numbers.pop(future)] = self.value(future, function)
                hand_out()
                while given in done:
                    yield done.pop(given)
                    given += 1
        finally:
            if numbers:
                with contextlib.suppress(Exception):
                    self.client.cancel(list(numbers))

    def value(self, future: Future[bytes], function: Callable[[T], R], who: str = "") -> R:
        """Return the value of a task of ``who``, whose future is done. Raises what the task raised, BadAnswer, WorkerLost, and
        NoExecutor if the scheduler is lost."""
        return value_of(self._answer(future), function, who or self.name)

    def _answer(self, future: Future[bytes]) -> object:
        from distributed.comm.core import CommClosedError

        from twinbed.executor.data_only import Strange

        if future.status == "error":  # a task raises nothing: dask gave it up
            reason = str(future.exception())
            died = "every worker that was given a task died" if "KilledWorker" in reason else "a task could not be done"
            raise WorkerLost(f"{died}: {reason}", advice="memory may have run out: see the workers' logs")
        try:
            return future.result(timeout=HANDED_OVER_S)
        except Strange as error:
            raise BadAnswer(f"{self.name}: {error.__cause__ or error}") from None
        except TimeoutError:
            raise BadAnswer(f"{self.name}: a finished answer did not arrive within {HANDED_OVER_S:.0f} s") from None
        except (CancelledError, CommClosedError, OSError):  # which the client's status may tell a moment later only
            raise self.lost() from None
        except Exception as error:  # noqa: BLE001 - whatever dask makes of an answer that is none
            raise BadAnswer(f"{self.name} does not return an answer: {error!r:.300}") from None


def refuse_open(address: str, on: str, insecure: bool) -> None:
    """Raise NoExecutor for an address without TLS that leads to another machine, unless ``insecure``."""
    if insecure or address.startswith("tls://") or _is_loopback(host := urlsplit(address).hostname or ""):
        return
    raise NoExecutor(
        f"--on {on}: no TLS to {host or address}. Anyone who reaches that scheduler, or answers in its place, can send "
        "results of their own and run programs on its workers",
        advice="use tls:// (docs/scale.md, TLS), or add --insecure if the network is yours alone",
    )


def _is_loopback(host: str) -> bool:
    """Return whether a name leads to this machine: all its addresses must."""
    try:
        addresses = socket.getaddrinfo(host, None, type=socket.SOCK_STREAM)
    except (OSError, UnicodeError):
        return False
    return bool(addresses) and all(
        ipaddress.ip_address(str(address[4][0]).partition("%")[0]).is_loopback for address in addresses
    )
