"""Progress of a study: a bar with the time left on a terminal, a line for each run elsewhere.

The time left is estimated from the mean time of the same testbed's runs; without runs, from the mean of the other testbeds.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Sequence

from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

from twinbed.lab.study import Event, Listener, MachineJoined, MachineLeft, PhaseBegan, RunEnded, StudyBegan
from twinbed.model.amount import amount
from twinbed.model.run import Status
from twinbed.render.terminal import Terminal
from twinbed.study.run import Run
from twinbed.terminal import one_line


class _Left:
    """Estimates the time of the remaining runs."""

    def __init__(self, runs: Sequence[Run], at_most: bool) -> None:
        self._at_most = at_most
        self.at_once = 1
        """Machines that run at the same time."""
        self._waiting = {run.id: run.testbed_name for run in runs}
        self._taken: dict[str, list[float]] = {}

    def ended(self, run: Run, seconds: float) -> None:
        self._waiting.pop(run.id, None)
        self._taken.setdefault(run.testbed_name, []).append(seconds)

    def text(self, roughly: str = "") -> str:
        """Return such as ``3 min 05 s left``."""
        return f"{'at most ' if self._at_most else roughly}{duration(self.seconds())} left"

    def seconds(self) -> float | None:
        if not self._taken:
            return None
        means = {name: sum(taken) / len(taken) for name, taken in self._taken.items()}
        overall = sum(means.values()) / len(means)
        return sum(means.get(name, overall) for name in self._waiting.values()) / self.at_once


def duration(seconds: float | None) -> str:
    """Return a duration for people: 45 s, 3 min 05 s, 2 h 10 min.

    >>> duration(185)
    '3 min 05 s'
    """
    if seconds is None:
        return "?"
    whole = round(seconds)
    if whole < 60:
        return f"{whole} s"
    if whole < 3600:
        return f"{whole // 60} min {whole % 60:02d} s"
    return f"{whole // 3600} h {whole % 3600 // 60:02d} min"


@contextlib.contextmanager
def watcher(console: Terminal, to_do: Sequence[Run], *, at_most: bool = False, phases: bool = False) -> Iterator[Listener]:
    """Yield a listener for a study's events. ``to_do`` are the remaining runs, with ``at_most`` an upper limit. With ``phases``
    it writes a line for each phase, on a terminal too."""
    left = _Left(to_do, at_most)
    if console.is_terminal and not phases:
        with _bar(console, left) as listener:
            yield listener
    else:
        yield _Lines(console, left, phases).hear


class _Lines:
    def __init__(self, console: Terminal, left: _Left, phases: bool) -> None:
        self._console, self._left, self._phases = console, left, phases
        self._total = self._done = 0

    def hear(self, event: Event) -> None:
        if isinstance(event, StudyBegan):
            self._total, self._done = event.total, event.done
            done = f", {event.done} of them made earlier" if event.done else ""
            if event.done < event.total:
                self._say(f"{event.total} runs{done}")
        elif isinstance(event, MachineJoined | MachineLeft):
            self._left.at_once = max(1, event.machines)
            self._say(machines(event))
        elif isinstance(event, RunEnded):
            self._done += 1
            self._left.ended(event.run, event.seconds)
            rest = f"; {self._left.text('about ')}" if self._done < self._total else ""
            self._say(f"[{self._done}/{self._total}] {_outcome(event)}{rest}")
        elif self._phases:
            self._say(f"[{self._done + 1}/{self._total}] {title(event.run)}: {event.phase}")

    def _say(self, text: str) -> None:
        self._console.say(text)


@contextlib.contextmanager
def _bar(console: Terminal, left: _Left) -> Iterator[Listener]:
    columns = (
        TextColumn("{task.description}", style="bold", markup=False),
        BarColumn(bar_width=None),
        MofNCompleteColumn(),
        TimeElapsedColumn(),
        TextColumn("{task.fields[left]}"),
    )
    with Progress(*columns, console=console) as progress:
        task = progress.add_task("", total=None, left="")

        def listener(event: Event) -> None:
            if isinstance(event, StudyBegan):
                progress.update(task, total=event.total, completed=event.done)
            elif isinstance(event, PhaseBegan):
                progress.update(task, description=one_line(f"{title(event.run)}: {event.phase}"))
            elif isinstance(event, MachineJoined | MachineLeft):
                left.at_once = max(1, event.machines)
                console.say(machines(event))
            else:
                left.ended(event.run, event.seconds)
                progress.update(task, advance=1, left=left.text("about ") if left.seconds() else "")
                if event.status == Status.FAILED:
                    console.say(_outcome(event), "red")

        yield listener
        progress.update(task, description="measured")


def title(run: Run) -> str:
    """Return a run's levels and its replicate, counted from 1."""
    return " ".join(str(level) for level in run.levels.values()) + f" #{run.replicate + 1}"


def machines(event: MachineJoined | MachineLeft) -> str:
    """Return a line about a machine that joined or left."""
    number = amount(event.machines, "machine")
    if isinstance(event, MachineJoined):
        return f"{event.name} joined: {number}"
    return f"{event.name} left: {event.reason} ({number} remain)"


def _outcome(event: RunEnded) -> str:
    on = f" on {event.machine}" if event.machine else ""
    if event.status == Status.COMPLETE:
        return f"{title(event.run)}{on}: done in {event.seconds:.1f} s"
    return (
        f"{title(event.run)}{on} ({event.run.id}): FAILED after {event.seconds:.1f} s in {event.failed_phase}: {event.reason}"
    )
