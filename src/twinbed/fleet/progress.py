"""How far a fleet's study has come, and how far it may go before the next look."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Protocol

from twinbed.fleet.blocks import Blocks


class Looks(Protocol):
    """Of a study that ends as soon as it is decided."""

    def goes_on(self, block: int) -> bool:
        """Whether another block is needed after this one; takes the look that is due."""
        ...

    def next_look(self, blocks: int) -> int:
        """With how many blocks the next look is taken, where there are so many."""
        ...


@dataclass(slots=True)
class Progress:
    """How far a study has come, block by block, and how far it may go: ``reach`` blocks."""

    blocks: Blocks
    count: int
    looks: Looks | None
    on_reach: Callable[[int], None]
    done: int = 0
    reach: int = 0
    decided: bool = False

    @property
    def ended(self) -> bool:
        return self.decided or not self.blocks.left

    def go_on(self) -> None:
        """After a block was made: looks are taken in the order of blocks."""
        while self.done < self.count and self.done not in self.blocks.left:
            self.done += 1
            if self.looks and not self.looks.goes_on(self.done - 1):
                self.decided, self.reach = True, self.done
                return
        reach = min(self.looks.next_look(self.done), self.count) if self.looks else self.count
        if reach > self.reach:
            self.reach = reach
            self.on_reach(reach)
