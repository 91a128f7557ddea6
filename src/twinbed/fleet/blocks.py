"""Which block is whose: the machine is a block, so that what differs between machines does not differ inside one."""

from __future__ import annotations

from collections.abc import Container, Mapping, Sequence
from dataclasses import dataclass, field

from twinbed.lab.study import due
from twinbed.results.folder import Folder
from twinbed.study.run import Run


@dataclass(slots=True)
class Block:
    """``home``: the machine that made those of its runs which are there; None where none is. ``taken``: who makes it now."""

    number: int
    runs: Sequence[Run]
    due: list[Run]
    home: str | None = None
    taken: str | None = None


@dataclass(slots=True)
class Blocks:
    """Those with runs that are still to be made."""

    folder: Folder
    states: dict[str, str | None]
    left: dict[int, Block] = field(default_factory=dict)

    @classmethod
    def of(cls, runs: Sequence[Run], folder: Folder, states: Mapping[str, str | None], retry_failed: bool) -> Blocks:
        """``states`` are those of ``runs`` in the folder; failed runs that are made again are set aside."""
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
            # Runs of several machines, or of none of a fleet's, are at home nowhere.
            block.home = homes.pop() if len(homes) == 1 else "" if homes else None
            blocks.left[number] = block
        return blocks

    def next(self, machine: str, awaited: Container[str], reach: int) -> Block | None:
        """One of the first ``reach`` for a machine that has nothing to do: its own, a fresh one, or one that was begun where
        nobody is awaited any more. The runs of such a one are set aside, and made again with the others."""
        free = [block for block in self.left.values() if block.taken is None and block.number < reach]
        block = next(
            (each for at_home in (machine, None) for each in free if each.home == at_home),
            next((each for each in free if each.home not in (machine, None) and each.home not in awaited), None),
        )
        if block is not None:
            if block.home not in (machine, None):
                self._begin_again(block)
            block.taken = machine
        return block

    def _begin_again(self, block: Block) -> None:
        for run in block.runs:
            if self.states[run.id] is not None:
                self._aside(run, f"its block is begun again: {block.home or 'no machine of the fleet'} does not go on with it")
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
        """The machine is gone, or does not go on."""
        for block in self.left.values():
            if block.taken == machine:
                block.taken = None
