"""The loop over a fleet's machines: each makes whole blocks, run by run, and its runs are fetched before it begins the next.

A task belongs to one worker: dask's own repetition of lost tasks is of no use for runs, which must not be made twice. When a
machine is gone, its block waits for a while, and then starts again elsewhere.
"""

from __future__ import annotations

import contextlib
import json
import secrets
import time
from collections.abc import Callable, Generator, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from queue import Empty, SimpleQueue
from typing import TYPE_CHECKING, Never, cast

from twinbed import registry
from twinbed.contracts import exit_codes as codes
from twinbed.contracts.extracted import UNREADABLE
from twinbed.contracts.installed import requirements
from twinbed.executor.cluster import ANSWER_S, Cluster
from twinbed.fleet import member
from twinbed.fleet.arrival import batches, checked, checked_offer, hold_to, link_check, pieces_of, write
from twinbed.fleet.blocks import Block, Blocks, Interim, Progress
from twinbed.fleet.peers import Peers
from twinbed.fleet.words import Asked, Fetched, Made, Needed, Offered, Ordered, Wanted
from twinbed.hosts.error import HostError
from twinbed.hosts.files import plain_name
from twinbed.lab.study import Ending, Listener, MachineJoined, MachineLeft, RunEnded, StudyBegan, chosen, due, write_study
from twinbed.model.error import TwinbedError
from twinbed.model.json import WRONG, document, named, parsed, text, value_of
from twinbed.model.run import Status
from twinbed.results.folder import Folder, failed_writes_are_clear
from twinbed.results.store import FLEET
from twinbed.study.run import Run
from twinbed.study.study import Study

if TYPE_CHECKING:
    from distributed import Future

RESOURCE = "lab"
AWAY_S = 30.0
"""How long a block waits for a machine that is gone, before it starts again elsewhere."""
_TICK_S = 0.5


class NoMachine(TwinbedError):
    """No machine of the fleet can make the remaining runs."""

    exit_code = codes.PREFLIGHT


@dataclass(frozen=True, slots=True)
class _Task:
    function: Callable[[Never], object]
    argument: object
    of_the_lab: bool = False


_Steps = Generator[_Task, object, None]
"""Yields tasks and is sent their results; the error of a task is thrown into it."""


@dataclass(slots=True)
class _Member:
    address: str
    name: str = ""
    steps: _Steps | None = None
    future: Future[bytes] | None = None
    task: _Task | None = None
    """Its present task."""
    left_out: str = ""

    @property
    def busy(self) -> bool:
        return self.future is not None


@dataclass(slots=True)
class _Notes:
    """The content of fleet.json."""

    folder: Folder
    id: str
    machines: dict[str, dict[str, object]]
    image: str = ""
    """The digest of the image that all machines have."""

    @classmethod
    def of(cls, folder: Folder) -> _Notes:
        try:
            kept = document(parsed(folder.tree.read(FLEET)))
            given = value_of(kept, "machines", named(document))
            machines: dict[str, dict[str, object]] = {name: dict(facts) for name, facts in given.items()}
            return cls(folder, plain_name(value_of(kept, "id", text), FLEET), machines, value_of(kept, "image", text))
        except (OSError, *WRONG, HostError):
            return cls(folder, secrets.token_hex(8), {})

    def keep(self) -> None:
        self.folder.write(FLEET, json.dumps({"id": self.id, "image": self.image, "machines": self.machines}, indent=1) + "\n")


def carry_out(
    study: Study,
    runs: Sequence[Run],
    folder: Folder,
    cluster: Cluster,
    ask: Callable[[str, Sequence[Run]], Asked],
    listener: Listener,
    *,
    only: Sequence[str] = (),
    keep_going: bool = True,
    retry_failed: bool = False,
    interim: Interim | None = None,
    on_made: Callable[[str], None] = lambda run: None,
) -> Ending:
    """Make the missing runs on the cluster's machines, into ``folder``, which the caller has locked.

    ``ask`` makes the first question to machines from the results' identity and the runs. ``interim``: the interim analyses of a
    study that ends as soon as it is decided. No block after the next interim analysis starts before it, so that the decision,
    and its number of blocks, are as on one machine. Other options are as for ``lab.study``.

    Raises NoMachine if no machine can make the runs, and NoExecutor if the scheduler is lost: complete runs are kept.
    """
    folder.write("study.yaml", study.source)
    wanted = chosen(runs, only)
    states = {run.id: folder.status(run.id) for run in wanted}
    to_do = due(wanted, states, retry_failed)
    listener(StudyBegan(len(wanted), len(wanted) - len(to_do)))
    blocks = Blocks.of(wanted, folder, states, retry_failed)
    progress = Progress(blocks, study.replicates, interim, lambda reach: write_study(folder, study, _before(runs, reach)))
    progress.go_on()
    made = 0
    if not progress.ended:
        notes = _Notes.of(folder)
        notes.keep()
        peers = Peers(study.reference, study.margin, study.replicates, partial(_rate, folder))
        loop = _Loop(cluster, progress, folder, notes, peers, ask(notes.id, to_do), listener, keep_going, on_made)
        try:
            loop.run()
        finally:
            loop.end()
        made = loop.made
    reached = _before(runs, progress.reach)
    write_study(folder, study, reached)
    endings = [blocks.states[run.id] for run in reached if run.id in states]
    return Ending(endings.count(Status.COMPLETE), endings.count(Status.FAILED), made, endings.count(None))


def _before(runs: Sequence[Run], block: int) -> list[Run]:
    return [run for run in runs if run.block < block]


@dataclass(slots=True)
class _Loop:
    cluster: Cluster
    progress: Progress
    folder: Folder
    notes: _Notes
    peers: Peers
    asked: Asked
    listener: Listener
    keep_going: bool
    on_made: Callable[[str], None]
    made: int = 0
    stopped: bool = False
    members: dict[str, _Member] = field(default_factory=dict)
    seen_s: dict[str, float] = field(default_factory=dict)
    """When each machine was last present."""
    ended: SimpleQueue[tuple[_Member, Future[bytes]]] = field(default_factory=SimpleQueue)

    @property
    def blocks(self) -> Blocks:
        return self.progress.blocks

    def run(self) -> None:
        began = looked = time.monotonic()
        self._look()
        while not self.progress.ended and not self.stopped:
            self._give_work(began)
            if not any(worker.busy for worker in self.members.values()) and time.monotonic() - began > ANSWER_S:
                self._refuse_if_nobody_works()
            with contextlib.suppress(Empty):
                worker, future = self.ended.get(timeout=_TICK_S)
                if worker.future is future:
                    worker.future = None
                    self._go_on(worker, future)
            if time.monotonic() - looked > _TICK_S:
                self._look()
                looked = time.monotonic()

    def _look(self) -> None:
        """Find out which workers have come and gone."""
        offered = self._offered()
        for address in [address for address in self.members if address not in offered]:
            gone = self.members.pop(address)
            if gone.name:
                self._away(gone, "its worker is gone")
        for present in self._joined():
            self.seen_s[present.name] = time.monotonic()
        for address in sorted(offered.keys() - self.members.keys()):
            self.members[address] = new = _Member(address)
            if not offered[address].get(RESOURCE):
                new.left_out = f"its worker offers no {RESOURCE}"
            else:
                self._begin(new, self._prepare(new))

    def _offered(self) -> Mapping[str, Mapping[str, float]]:
        """Return the workers by address, and the resources of new ones. Raises NoExecutor if the scheduler is lost, which the
        client's status may show a moment later."""
        lost = self.cluster.lost("complete runs are kept, and machines keep the runs that they made meanwhile")
        if not self.cluster.is_there:
            raise lost
        present = self.cluster.threads()
        resources = self.cluster.resources() if present.keys() - self.members.keys() else {}
        return {address: resources.get(address, {}) for address in present}

    def _away(self, worker: _Member, reason: str) -> None:
        if worker.future is not None:
            self.cluster.client.cancel([worker.future], force=True)
            worker.future = None
        if worker.steps is not None:
            worker.steps.close()
        self.blocks.give_back(worker.name)
        self.folder.log({"machine": worker.name, "left": reason})
        self.listener(MachineLeft(worker.name, reason, sum(1 for _ in self._joined())))

    def _joined(self) -> Iterator[_Member]:
        return (worker for worker in self.members.values() if worker.name and not worker.left_out)

    def _begin(self, worker: _Member, steps: _Steps) -> None:
        worker.steps = steps
        self._submit(worker, next(steps))

    def _submit(self, worker: _Member, task: _Task) -> None:
        function = cast(Callable[[object], object], task.function)
        future = self.cluster.submit(
            function, task.argument, workers=[worker.address], resources={RESOURCE: 1} if task.of_the_lab else None
        )
        worker.future, worker.task = future, task
        future.add_done_callback(lambda done: self.ended.put((worker, done)))

    def _go_on(self, worker: _Member, future: Future[bytes]) -> None:
        """Hand the outcome of a task to its steps, and submit their next task."""
        assert worker.steps is not None and worker.task is not None
        raised: Exception | None = None
        try:
            try:
                outcome = self.cluster.value(future, worker.task.function, worker.name or worker.address)
            except Exception as error:  # noqa: BLE001 - whatever a machine raises, the steps clean up after it
                raised = error
                task = worker.steps.throw(error)
            else:
                task = worker.steps.send(outcome)
        except StopIteration:
            worker.steps = None
        except Exception as error:
            # A fault of the machine, or of the data it sent, costs the machine; a fault of this process ends the study.
            if error is not raised and not isinstance(error, HostError):
                raise
            self._leave_out(worker, error.message if isinstance(error, TwinbedError) else repr(error))
        else:
            self._submit(worker, task)

    def _leave_out(self, worker: _Member, reason: str) -> None:
        worker.left_out, worker.steps = reason, None
        name = worker.name or worker.address
        self.notes.machines.setdefault(name, {})["left out"] = reason
        self.peers.forget(name)
        self.notes.keep()
        self._away(_Member(worker.address, name), reason)

    def _prepare(self, worker: _Member) -> _Steps:
        if plugins := requirements(plugin for run in self.asked.cells for plugin in run.plugins()):
            # Only a machine with the packages can unpickle runs.
            yield _Task(member.hold, Needed(plugins))
        offered = yield _Task(member.prepare, self.asked)
        assert isinstance(offered, Offered)
        name = checked_offer(offered, worker.address).machine
        if any(other.name == name for other in self._joined()):
            raise HostError(f"{name} has a worker already, at another address")
        if self.notes.machines and offered.image != self.notes.image:
            raise HostError(
                f"its image is {offered.image}, and the others have {self.notes.image}: copy theirs"
                " (`twinbed image list` prints its folder)"
            )
        self.notes.image = offered.image
        worker.name = name
        self.seen_s[name] = time.monotonic()
        self.notes.machines[name] = dict(offered.facts)
        self.notes.keep()
        self.folder.log({"machine": name, "joined": worker.address})
        self.listener(MachineJoined(name, sum(1 for _ in self._joined())))

    def _give_work(self, began: float) -> None:
        now = time.monotonic()
        awaited = {worker.name for worker in self._joined()} | {
            name for name, seen in self.seen_s.items() if now - seen < AWAY_S
        }
        if now - began < AWAY_S:  # others may still come
            awaited |= {block.home for block in self.blocks.left.values() if block.home}
        for worker in self._joined():
            if (
                not worker.busy
                and worker.steps is None
                and (block := self.blocks.next(worker.name, awaited, self.progress.reach))
            ):
                self._begin(worker, self._block(worker, block))

    def _refuse_if_nobody_works(self) -> None:
        """Raise NoMachine unless a machine has joined, or the loop waits for one that is away."""
        if any(self._joined()) or any(time.monotonic() - seen < AWAY_S for seen in self.seen_s.values()):
            return
        reasons = [
            f"  {worker.name or address}: {worker.left_out}" for address, worker in self.members.items() if worker.left_out
        ]
        raise NoMachine(
            "\n".join(["no machine of the fleet can make these runs:", *(reasons or ["  all workers are gone"])]),
            advice=f"on each machine, as root: dask worker SCHEDULER --nthreads 1 --resources {RESOURCE}=1; then repeat this",
        )

    def _block(self, worker: _Member, block: Block) -> _Steps:
        for run in list(block.due):
            made = yield _Task(member.make_run, Ordered(self.notes.id, run), of_the_lab=True)
            assert isinstance(made, Made)
            made = checked(made, run, self.folder.path, worker.name)
            yield from self._fetch(worker, run, made)
            ended = RunEnded(run, made.status, made.seconds, made.failed_phase, made.reason, worker.name)
            self.blocks.made(run, worker.name, made.status)
            self.made += 1
            log = {"run": run.id, "machine": worker.name, "status": made.status}
            self.folder.log({**log, "seconds": round(made.seconds, 3), "reason": made.reason})
            self.listener(ended)
            self.peers.made(run)
            self.on_made(run.id)
            if made.status == Status.FAILED and not self.keep_going:
                self.stopped = True
            if self.stopped:
                break
        self.blocks.give_back(worker.name)
        self.progress.go_on()
        if not block.due and (reason := self.peers.block(worker.name, block.runs)):
            raise HostError(reason)

    def _fetch(self, worker: _Member, run: Run, made: Made) -> _Steps:
        """Fetch the run's files and compare them with the machine's report."""
        check = link_check(made, worker.name)
        unfinished = self.folder.begin(run.id)
        try:
            for pieces in batches(made):
                content = yield _Task(member.fetch, Wanted(self.notes.id, run.id, pieces))
                assert isinstance(content, bytes)
                with failed_writes_are_clear(self.folder.path):
                    for piece, part in pieces_of(content, pieces, worker.name):
                        write(unfinished, piece, part, worker.name)
            hold_to(unfinished, made, run, worker.name)
            self.folder.adopt(unfinished, run.id)
        except BaseException:
            self.folder.discard(unfinished)
            raise
        if check is not None:
            self.folder.keep_link_check(check, worker.name)
        import distributed

        distributed.fire_and_forget(
            self.cluster.submit(member.forget, Fetched(self.notes.id, run.id), workers=[worker.address])
        )

    def end(self) -> None:
        """Have machines give up runs that nobody waits for; if all runs are made, remove everything from the machines."""
        if not self.cluster.is_there:
            return
        busy = [worker.address for worker in self.members.values() if worker.busy]
        idle = [worker.address for worker in self._joined() if not worker.busy]
        with contextlib.suppress(Exception):
            if busy:
                self.cluster.client.run(member.give_up, self.notes.id, workers=busy, on_error="ignore")
            if idle and self.progress.ended:
                self.cluster.client.run(member.over, self.notes.id, workers=idle, on_error="ignore")


def _rate(folder: Folder, run: Run) -> float | None:
    """Return the speed that a run's workload measured; None without one."""
    workload = registry.PLUGINS.workloads[run.workload.kind]
    rate = workload.described(run.workload.params).rate
    if folder.status(run.id) != Status.COMPLETE:
        return None
    try:
        values = workload.parse(run.workload.params, folder.runs / run.id / "artifacts").values
    except UNREADABLE:
        return None
    return next((value.value for value in values if (value.metric, value.host, value.direction) == (rate, "", "")), None)
