"""Events of a run: carried out while the clients run, read back, and recorded with their times.

Each event has a thread that waits for its moment.  An event fails the run if its program has ended before, if the run ends
before its moment, or if what it did is not found.  At the end, programs that are still stopped
continue and links that are still down come up, before instruments end.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace

from twinbed.contracts.bed import Bed
from twinbed.contracts.host import Program
from twinbed.hosts.error import HostError
from twinbed.hosts.stage import Started
from twinbed.model.event import MATCHED, UNDONE, Action, Event, Happened
from twinbed.model.json import documents, parsed
from twinbed.readers.declared import lines_of, matched

_STEP_S = 0.02
_LIMIT_S = 10.0
"""Time within which an action must be in force."""
_SIGNALS: Mapping[Action, int] = {"kill": 9, "stop": 19, "continue": 18}
_STOPPED = "T"
"""The state of a stopped process (proc(5))."""


@dataclass
class Events:
    """The events of one run. ``happened`` has times on this machine's monotonic clock until ``ended`` is called."""

    events: Sequence[Event]
    bed: Bed
    staying: Sequence[Started]
    happened: list[Happened] = field(default_factory=list)
    _programs: dict[str, Started] = field(default_factory=dict)
    _threads: list[threading.Thread] = field(default_factory=list)
    _over: threading.Event = field(default_factory=threading.Event)
    _failures: dict[int, str] = field(default_factory=dict)

    def begin(self, clients: Sequence[Started], moment: float) -> None:
        """Begin to wait for the events; ``moment``: the clients' start, on this machine's monotonic clock."""
        self._programs = {item.command.host: item for item in (*self.staying, *clients)}
        for at, event in enumerate(self.events):
            thread = threading.Thread(target=self._carry_out, args=(at, event, moment), name=f"event {at + 1}", daemon=True)
            self._threads.append(thread)
            thread.start()

    def end(self) -> None:
        """End the waiting, and undo what is still in force. Call it once the clients have ended, however they did."""
        self._over.set()
        for thread in self._threads:
            thread.join()
        last = {(event.host, event.action in ("stop", "continue")): event for event in self.happened if event.action != "kill"}
        for (host, _), event in last.items():
            undo = next((back for action, back in UNDONE.items() if action == event.action), None)
            if undo is not None and not (undo == "continue" and self._programs[host].program.ended):
                try:
                    self._act(undo, host)
                except HostError as error:
                    self._failures[len(self.events)] = f"{undo} {host} at the end: {error}"

    def ended(self, first_monotonic_s: float) -> list[Happened]:
        """Return the events in the order of their times, from the first start of a client. Raises HostError unless all were
        carried out."""
        if self._failures:
            raise HostError("; ".join(why for _, why in sorted(self._failures.items())))
        return [
            replace(
                event,
                due_s=event.due_s - first_monotonic_s,
                begun_s=event.begun_s - first_monotonic_s,
                in_force_s=event.in_force_s - first_monotonic_s,
            )
            for event in sorted(self.happened, key=lambda event: event.begun_s)
        ]

    def _carry_out(self, at: int, event: Event, moment: float) -> None:
        try:
            due_s, text = moment, ""
            if event.output is not None:
                due_s, text = self._line(event)
            due_s += event.after or 0.0
            if self._over.wait(max(0.0, due_s - time.monotonic())):
                raise HostError("the programs that end had ended before")
            host = text if event.host == MATCHED else event.host
            if host not in self._programs:
                raise HostError(f"{event.pattern!r} found {host!r}, which is no host: {', '.join(self._programs)}")
            begun_s = time.monotonic()
            state = self._act(event.action, host)
            self.happened.append(Happened(event.action, host, str(event), due_s, begun_s, time.monotonic(), state))
        except (HostError, ValueError) as error:
            self._failures[at] = f"event {at + 1} ({event}): {error}"

    def _line(self, event: Event) -> tuple[float, str]:
        """Wait for a line of output; return when it arrived, and the text of the pattern's group."""
        assert event.output is not None
        count = 0
        for lines in self._new_lines(self._programs[event.output].program):
            fitting = matched(lines, event.pattern) if event.pattern else lines
            if count + len(fitting) >= event.nth:
                return time.monotonic(), fitting[event.nth - count - 1]
            count += len(fitting)
        raise HostError(
            f"{event.output} had printed {count} such lines of standard output when the programs that end had ended"
        )

    def _new_lines(self, program: Program) -> Iterator[Sequence[str]]:
        """Yield the complete lines of standard output as they arrive, until nothing more can."""
        read = 0
        while True:
            last = self._over.is_set() or program.ended
            with program.changed:
                new = bytes(program.stdout[read:])
                if b"\n" not in new and not last:
                    program.changed.wait(_STEP_S)
                    continue
            whole = new[: new.rfind(b"\n") + 1]
            read += len(whole)
            if whole:
                yield lines_of(whole)[:-1]
            if last:
                return

    def _act(self, action: Action, host: str) -> str:
        """Carry out an action, and return what is read back. Raises HostError."""
        return self._link(action, host) if action.startswith("link") else self._signal(action, self._programs[host])

    def _signal(self, action: Action, item: Started) -> str:
        program = item.program
        if program.ended:
            raise HostError(f"{item.command.argv[0]} on {item.command.host} had ended before ({program.wait(1.0).why})")
        process = program.started()
        item.killed = item.killed or action == "kill"
        program.signal(_SIGNALS[action])
        if action == "kill":
            done = program.wait(_LIMIT_S)
            if done.signal != _SIGNALS["kill"]:
                raise HostError(f"{item.command.argv[0]} on {item.command.host} was not killed ({done.why})")
            return done.why
        host, deadline = self.bed.hosts[item.command.host], time.monotonic() + _LIMIT_S
        while True:
            state = host.read(f"/proc/{process}/stat").decode(errors="replace").rpartition(")")[2].split()[0]
            if (state == _STOPPED) == (action == "stop"):
                return f"process state {state}"
            if time.monotonic() > deadline:
                raise HostError(f"{item.command.argv[0]} on {item.command.host} has the state {state} after {action}")
            time.sleep(_STEP_S)

    def _link(self, action: Action, host: str) -> str:
        """Set the machine's end of a host's link."""
        ends = ((place.name, nic) for place in self.bed.targets for nic, end in place.interfaces.items() if end == host)
        machine, port = next(((place, nic) for place, nic in ends if place != host), ("", ""))
        if machine not in self.bed.hosts:
            raise HostError(f"this testbed has no machine with the link of {host}")
        self.bed.hosts[machine].run(["ip", "link", "set", "dev", port, action.removeprefix("link_")])
        shown = self.bed.hosts[machine].run(["ip", "-j", "link", "show", "dev", port]).stdout
        flags = documents(parsed(shown))[0]["flags"]
        is_up = isinstance(flags, list) and "UP" in flags
        if is_up != (action == "link_up"):
            raise HostError(f"{port} has the flags {flags} after {action}")
        return f"{port} {'up' if is_up else 'down'}"
