"""The loop over a fleet's machines: each makes whole blocks, run by run, and its runs are fetched before it begins the next.

A task belongs to one worker: dask's own ways of doing a lost one again are of no use for runs, which must not be made twice.
When a machine is gone, its block waits for it for a while, and is then begun again elsewhere.
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
from twinbed.executor.cluster import ANSWER_S, Cluster
from twinbed.fleet import member
from twinbed.fleet.arrival import batches, checked, checked_offer, hold_to, link_check, pieces_of, write
from twinbed.fleet.blocks import Block, Blocks
from twinbed.fleet.peers import Peers
from twinbed.fleet.progress import Looks, Progress
from twinbed.fleet.words import Asked, Fetched, Made, Offered, Ordered, Wanted
from twinbed.hosts.error import HostError
from twinbed.hosts.files import plain_name
from twinbed.lab.study import Ending, Listener, MachineJoined, MachineLeft, RunEnded, StudyBegan, chosen, due, write_study
from twinbed.model.error import TwinbedError
from twinbed.model.json import WRONG, document, named, parsed, text, value_of
from twinbed.model.run import Status
from twinbed.results.extract.rows import UNREADABLE
from twinbed.results.folder import Folder, failed_writes_are_clear
from twinbed.results.store import FLEET
from twinbed.study.run import Run
from twinbed.study.study import Study

if TYPE_CHECKING:
    from distributed import Future

RESOURCE = "lab"
AWAY_S = 30.0
"""So long a machine that is gone is waited for before its block is begun again elsewhere."""
_TICK_S = 0.5


class NoMachine(TwinbedError):
    """No machine of the fleet can make the runs that are left."""

    exit_code = codes.PREFLIGHT


@dataclass(frozen=True, slots=True)
class _Task:
    function: Callable[[Never], object]
    argument: object
    of_the_lab: bool = False


_Steps = Generator[_Task, object, None]
"""Asks for tasks, and is sent what they came to; what a task raised is thrown into it."""


@dataclass(slots=True)
class _Member:
    address: str
    name: str = ""
    steps: _Steps | None = None
    future: Future[bytes] | None = None
    task: _Task | None = None
    """What it does."""
    left_out: str = ""

    @property
    def busy(self) -> bool:
        return self.future is not None


@dataclass(slots=True)
class _Notes:
    """fleet.json."""

    folder: Folder
    id: str
    machines: dict[str, dict[str, object]]
    image: str = ""
    """The digest of the one that all of them have."""

    @classmethod
    def of(cls, folder: Folder) -> _Notes:
        try:
            kept = document(parsed(folder.tree.read(FLEET)))
            given = value_of(kept, "machines", named(document))
            machines: dict[str, dict[str, object]] = {name: dict(about) for name, about in given.items()}
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
    looks: Looks | None = None,
    on_made: Callable[[str], None] = lambda run: None,
) -> Ending:
    """Make the runs that are missing on the cluster's machines, into ``folder``, which the caller has locked.

    ``ask`` makes what machines are asked first, of the results' identity and the runs. ``looks``: of a study that ends as soon
    as it is decided; no block after the next look is begun before it was taken, so that what is decided, and with how many
    blocks, is as on one machine. Other options are as of ``lab.study``.
    Raises NoMachine where none can make them, and NoExecutor where the scheduler is lost: complete runs are kept.
    """
    folder.write("study.yaml", study.source)
    wanted = chosen(runs, only)
    states = {run.id: folder.status(run.id) for run in wanted}
    to_do = due(wanted, states, retry_failed)
    listener(StudyBegan(len(wanted), len(wanted) - len(to_do)))
    blocks = Blocks.of(wanted, folder, states, retry_failed)
    progress = Progress(blocks, study.replicates, looks, lambda reach: write_study(folder, study, _before(runs, reach)))
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
    """When each machine was there last."""
    ended: SimpleQueue[tuple[_Member, Future[bytes]]] = field(default_factory=SimpleQueue)

    @property
    def blocks(self) -> Blocks:
        return self.progress.blocks

    def run(self) -> None:
        began = looked = time.monotonic()
        self._look()
        while not self.progress.ended and not self.stopped:
            self._give_work(began)
            if not any(each.busy for each in self.members.values()) and time.monotonic() - began > ANSWER_S:
                self._nobody()
            with contextlib.suppress(Empty):
                one, future = self.ended.get(timeout=_TICK_S)
                if one.future is future:
                    one.future = None
                    self._go_on(one, future)
            if time.monotonic() - looked > _TICK_S:
                self._look()
                looked = time.monotonic()

    def _look(self) -> None:
        """Who is there."""
        offered = self._offered()
        for address in [address for address in self.members if address not in offered]:
            one = self.members.pop(address)
            if one.name:
                self._away(one, "its worker is gone")
        for one in self._joined():
            self.seen_s[one.name] = time.monotonic()
        for address in sorted(offered.keys() - self.members.keys()):
            self.members[address] = one = _Member(address)
            if not offered[address].get(RESOURCE):
                one.left_out = f"its worker offers no {RESOURCE}"
            else:
                self._begin(one, self._prepare(one))

    def _offered(self) -> Mapping[str, Mapping[str, float]]:
        """Address of a worker -> its resources, where it is new. Raises NoExecutor where the scheduler is lost, which the
        client's status may tell a moment later only."""
        lost = self.cluster.lost("complete runs are kept, and machines keep what they made meanwhile")
        if not self.cluster.there:
            raise lost
        there = self.cluster.threads()
        about = self.cluster.resources() if there.keys() - self.members.keys() else {}
        return {address: about.get(address, {}) for address in there}

    def _away(self, one: _Member, reason: str) -> None:
        if one.future is not None:
            self.cluster.client.cancel([one.future], force=True)
            one.future = None
        if one.steps is not None:
            one.steps.close()
        self.blocks.give_back(one.name)
        self.folder.log({"machine": one.name, "left": reason})
        self.listener(MachineLeft(one.name, reason, sum(1 for _ in self._joined())))

    def _joined(self) -> Iterator[_Member]:
        return (each for each in self.members.values() if each.name and not each.left_out)

    def _begin(self, one: _Member, steps: _Steps) -> None:
        one.steps = steps
        self._submit(one, next(steps))

    def _submit(self, one: _Member, task: _Task) -> None:
        function = cast(Callable[[object], object], task.function)
        future = self.cluster.submit(
            function, task.argument, workers=[one.address], resources={RESOURCE: 1} if task.of_the_lab else None
        )
        one.future, one.task = future, task
        future.add_done_callback(lambda done: self.ended.put((one, done)))

    def _go_on(self, one: _Member, future: Future[bytes]) -> None:
        """Hands the outcome of a task to the steps that asked for it, and asks for the next one."""
        assert one.steps is not None and one.task is not None
        raised: Exception | None = None
        try:
            try:
                outcome = self.cluster.value(future, one.task.function, one.name or one.address)
            except Exception as error:  # noqa: BLE001 - whatever a machine raises, the steps clean up after it
                raised = error
                task = one.steps.throw(error)
            else:
                task = one.steps.send(outcome)
        except StopIteration:
            one.steps = None
        except Exception as error:
            # What is wrong with the machine, or with what it sent, costs the machine; what is wrong here ends the study.
            if error is not raised and not isinstance(error, HostError):
                raise
            self._leave_out(one, error.message if isinstance(error, TwinbedError) else repr(error))
        else:
            self._submit(one, task)

    def _leave_out(self, one: _Member, reason: str) -> None:
        one.left_out, one.steps = reason, None
        name = one.name or one.address
        self.notes.machines.setdefault(name, {})["left out"] = reason
        self.peers.forget(name)
        self.notes.keep()
        self._away(_Member(one.address, name), reason)

    def _prepare(self, one: _Member) -> _Steps:
        offered = yield _Task(member.prepare, self.asked)
        assert isinstance(offered, Offered)
        name = checked_offer(offered, one.address).machine
        if any(each.name == name for each in self._joined()):
            raise HostError(f"{name} has a worker already, at another address")
        if self.notes.machines and offered.image != self.notes.image:
            have = f"its image is {offered.image}, that of the others {self.notes.image}"
            raise HostError(f"{have}: copy theirs (`twinbed image list` names its folder)")
        self.notes.image = offered.image
        one.name = name
        self.seen_s[name] = time.monotonic()
        self.notes.machines[name] = dict(offered.facts)
        self.notes.keep()
        self.folder.log({"machine": name, "joined": one.address})
        self.listener(MachineJoined(name, sum(1 for _ in self._joined())))

    def _give_work(self, began: float) -> None:
        now = time.monotonic()
        awaited = {each.name for each in self._joined()} | {name for name, seen in self.seen_s.items() if now - seen < AWAY_S}
        if now - began < AWAY_S:  # those that are not here yet may come
            awaited |= {block.home for block in self.blocks.left.values() if block.home}
        for one in self._joined():
            if not one.busy and one.steps is None and (block := self.blocks.next(one.name, awaited, self.progress.reach)):
                self._begin(one, self._block(one, block))

    def _nobody(self) -> None:
        """No machine makes anything. Raises NoMachine unless one that is away is waited for."""
        if any(self._joined()) or any(time.monotonic() - seen < AWAY_S for seen in self.seen_s.values()):
            return
        reasons = [f"  {each.name or address}: {each.left_out}" for address, each in self.members.items() if each.left_out]
        raise NoMachine(
            "\n".join(["no machine of the fleet can make these runs:", *(reasons or ["  none is there any more"])]),
            advice=f"on each machine, as root: dask worker SCHEDULER --nthreads 1 --resources {RESOURCE}=1; then this again",
        )

    def _block(self, one: _Member, block: Block) -> _Steps:
        for run in list(block.due):
            made = yield _Task(member.make_run, Ordered(self.notes.id, run), of_the_lab=True)
            assert isinstance(made, Made)
            made = checked(made, run, self.folder.path, one.name)
            yield from self._fetch(one, run, made)
            ended = RunEnded(run, made.status, made.seconds, made.failed_phase, made.reason, one.name)
            self.blocks.made(run, one.name, made.status)
            self.made += 1
            log = {"run": run.id, "machine": one.name, "status": made.status}
            self.folder.log({**log, "seconds": round(made.seconds, 3), "reason": made.reason})
            self.listener(ended)
            self.peers.made(run)
            self.on_made(run.id)
            if made.status == Status.FAILED and not self.keep_going:
                self.stopped = True
            if self.stopped:
                break
        self.blocks.give_back(one.name)
        self.progress.go_on()
        if not block.due and (reason := self.peers.block(one.name, block.runs)):
            raise HostError(reason)

    def _fetch(self, one: _Member, run: Run, made: Made) -> _Steps:
        """The run's files, held against what the machine said of them."""
        check = link_check(made, one.name)
        unfinished = self.folder.begin(run.id)
        try:
            for pieces in batches(made):
                content = yield _Task(member.fetch, Wanted(self.notes.id, run.id, pieces))
                assert isinstance(content, bytes)
                with failed_writes_are_clear(self.folder.path):
                    for piece, part in pieces_of(content, pieces, one.name):
                        write(unfinished, piece, part, one.name)
            hold_to(unfinished, made, run, one.name)
            self.folder.adopt(unfinished, run.id)
        except BaseException:
            self.folder.discard(unfinished)
            raise
        if check is not None:
            self.folder.keep_link_check(check, one.name)
        import distributed

        distributed.fire_and_forget(self.cluster.submit(member.forget, Fetched(self.notes.id, run.id), workers=[one.address]))

    def end(self) -> None:
        """Whoever makes a run that nobody waits for any more gives it up; where all is made, nothing stays on machines."""
        if not self.cluster.there:
            return
        busy = [each.address for each in self.members.values() if each.busy]
        idle = [each.address for each in self._joined() if not each.busy]
        with contextlib.suppress(Exception):
            if busy:
                self.cluster.client.run(member.give_up, self.notes.id, workers=busy, on_error="ignore")
            if idle and self.progress.ended:
                self.cluster.client.run(member.over, self.notes.id, workers=idle, on_error="ignore")


def _rate(folder: Folder, run: Run) -> float | None:
    """What a run's workload says of its speed."""
    workload = registry.PLUGINS.workloads[run.workload.kind]
    if folder.status(run.id) != Status.COMPLETE:
        return None
    try:
        found = workload.parse(run.workload.params, folder.runs / run.id / "artifacts").values
    except UNREADABLE:
        return None
    return next((each.value for each in found if (each.metric, each.host, each.direction) == (workload.rate, "", "")), None)
