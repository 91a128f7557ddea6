"""The blocks of a fleet's study and their machines, and its progress to the next interim analysis.

A block is made by one machine, so that differences between machines do not matter inside a block.
"""

from __future__ import annotations

from collections.abc import Callable, Container, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Protocol

from twinbed.lab.study import due
from twinbed.results.folder import Folder
from twinbed.study.run import Run


@dataclass(slots=True)
class Block:
    """``home``: the machine that made its existing runs; None without any. ``taken``: the machine that makes it now."""

    number: int
    runs: Sequence[Run]
    due: list[Run]
    home: str | None = None
    taken: str | None = None


@dataclass(slots=True)
class Blocks:
    """The blocks with runs that are still due."""

    folder: Folder
    states: dict[str, str | None]
    left: dict[int, Block] = field(default_factory=dict)

    @classmethod
    def of(cls, runs: Sequence[Run], folder: Folder, states: Mapping[str, str | None], retry_failed: bool) -> Blocks:
        """Collect the blocks. ``states``: those of ``runs`` in the folder. Failed runs that are made again are set aside."""
        blocks = cls(folder, dict(states))
        for number in dict.fromkeys(run.block for run in runs):
            members = [run for run in runs if run.block == number]
            to_do = due(members, states, retry_failed)
            if not to_do:
                continue
            for run in to_do:
                if states[run.id] is not None:
                    blocks._aside(run, "made again")
            block = Block(number, members, to_do)
            made = [folder.record(run.id) for run in members if blocks.states[run.id] is not None]
            homes = {record.machine for record in made if record is not None}
            # Runs of several machines, or of a machine outside the fleet, have no home.
            block.home = homes.pop() if len(homes) == 1 else "" if homes else None
            blocks.left[number] = block
        return blocks

    def next(self, machine: str, awaited: Container[str], reach: int) -> Block | None:
        """Give one of the first ``reach`` blocks to an idle machine: its own, a new one, or one whose machine is no longer
        awaited. The runs of such a block are set aside, and made again with the others."""
        free = [block for block in self.left.values() if block.taken is None and block.number < reach]
        block = next(
            (candidate for at_home in (machine, None) for candidate in free if candidate.home == at_home),
            next((other for other in free if other.home not in (machine, None) and other.home not in awaited), None),
        )
        if block is not None:
            if block.home not in (machine, None):
                self._begin_again(block)
            block.taken = machine
        return block

    def _begin_again(self, block: Block) -> None:
        for run in block.runs:
            if self.states[run.id] is not None:
                self._aside(run, f"its block starts again: {block.home or 'no machine of the fleet'} does not continue it")
        block.due, block.home = list(block.runs), None

    def _aside(self, run: Run, reason: str) -> None:
        self.folder.set_aside(run.id)
        self.states[run.id] = None
        self.folder.log({"run": run.id, "set aside": reason})

    def made(self, run: Run, machine: str, status: str) -> None:
        self.states[run.id] = status
        block = self.left[run.block]
        block.home = machine
        block.due.remove(run)
        if not block.due:
            del self.left[run.block]

    def give_back(self, machine: str) -> None:
        """Take a block back from a machine that is gone or does not go on."""
        for block in self.left.values():
            if block.taken == machine:
                block.taken = None


class Interim(Protocol):
    """Interim analyses of a study that ends as soon as it is decided."""

    def goes_on(self, block: int) -> bool:
        """Carry out the interim analysis that is due. Return whether another block is needed after this one."""
        ...

    def next_interim(self, blocks: int) -> int:
        """Return the number of blocks at the next interim analysis."""
        ...


@dataclass(slots=True)
class Progress:
    """The progress of a study, block by block, and its present limit of ``reach`` blocks."""

    blocks: Blocks
    count: int
    interim: Interim | None
    on_reach: Callable[[int], None]
    done: int = 0
    reach: int = 0
    decided: bool = False

    @property
    def ended(self) -> bool:
        return self.decided or not self.blocks.left

    def go_on(self) -> None:
        """Count finished blocks, and carry out interim analyses in the order of blocks."""
        while self.done < self.count and self.done not in self.blocks.left:
            self.done += 1
            if self.interim and not self.interim.goes_on(self.done - 1):
                self.decided, self.reach = True, self.done
                return
        reach = min(self.interim.next_interim(self.done), self.count) if self.interim else self.count
        if reach > self.reach:
            self.reach = reach
            self.on_reach(reach)
