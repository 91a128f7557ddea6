"""One run, phase by phase: testbed up, settings held against what was read back, servers, warm-up, instruments, workload,
artifacts collected, everything down.

Nothing is retried and nothing waits a fixed time.  What goes wrong is a ``RunFailed`` with the phase, and the evidence stays
in the folder.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from twinbed.hosts.error import HostError
from twinbed.hosts.site import Site
from twinbed.lab.clock import Clock
from twinbed.lab.stage import Stage, all_at_once, placed, still_there, to_its_end
from twinbed.model.caution import Caution
from twinbed.model.plugin import Applied, Bed, Command
from twinbed.model.run import Phase, Run

_EVIDENCE_LIMIT_S = 5.0
_COLLECT_LIMIT_S = 300.0


class RunFailed(Exception):
    """A run that did not come to its end: data, not a bug."""

    def __init__(self, phase: Phase, reason: str) -> None:
        super().__init__(f"{phase}: {reason}")
        self.phase, self.reason = phase, reason


@dataclass
class Outcome:
    """What is known of a run so far; complete once ``execute`` has returned."""

    phases: dict[str, float] = field(default_factory=dict)
    applied: list[Applied] = field(default_factory=list)
    passport: Mapping[str, Any] = field(default_factory=dict)
    cautions: list[Caution] = field(default_factory=list)
    lab: str = ""


def execute(run: Run, plugins: Any, site: Site, outcome: Outcome, on_phase: Callable[[Phase], None]) -> None:
    """Carry out a run. Fills ``outcome`` as it goes, so that a failed run keeps what was learnt. Raises RunFailed."""
    driver = plugins.drivers[run.testbed.kind]
    workload = plugins.workloads[run.workload.kind]
    clock = Clock(outcome.phases, on_phase)
    try:
        with contextlib.ExitStack() as stack:
            # Its own limits hold while it comes up; a host that hangs later is ended by the clock.
            with clock.phase(Phase.UP):
                bed: Bed = stack.enter_context(driver.up(run.testbed.params, run.topology, site))
            stack.push(_evidence(bed, site, outcome))
            clock.hosts = tuple(bed.hosts.values())
            outcome.lab = bed.lab
            outcome.passport = bed.passport
            outcome.cautions += bed.cautions
            outcome.applied += bed.applied
            pairs = [(client, server, bed.addresses[server]) for client, server in run.topology.names()]
            plan = workload.plan(run.workload.params, pairs)
            with clock.phase(Phase.CONFIGURE, _together(plan.prepare)):
                _hold_to(bed.applied)
                for host, path, content in plan.files:
                    bed.hosts[host].write(placed(path, bed.hosts[host]), content)
                for command in plan.prepare:
                    to_its_end(command, bed, site)
            stage = Stage(bed, site)
            stack.callback(stage.kill)
            with clock.phase(Phase.SERVE, _together(plan.servers)):
                servers = stage.start(plan.servers)
            with clock.phase(Phase.WARM_UP, _together(plan.warm_up)):
                for command in plan.warm_up:
                    to_its_end(command, bed, site)
            measures = [
                command
                for choice in run.instruments.values()
                for target in bed.targets
                for command in plugins.instruments[choice.kind].plan(choice.params, target)
            ]
            with clock.phase(Phase.INSTRUMENT, _together(measures)):
                instruments = stage.start(measures)
            with clock.phase(Phase.WORKLOAD, max((command.limit_s for command in plan.clients), default=0.0)):
                all_at_once(plan.clients, bed, site)
                still_there(servers + instruments)
            with clock.phase(Phase.COLLECT, _COLLECT_LIMIT_S):
                stage.stop(instruments)
                stage.stop(servers)
                for name, host in bed.hosts.items():
                    host.collect(site.place(name))
                outcome.cautions += bed.at_end()
            with clock.phase(Phase.DOWN):
                stack.close()
    except HostError as error:
        raise RunFailed(clock.current, clock.verdict or str(error)) from error


def _together(commands: Sequence[Command]) -> float:
    """The most that commands one after another may take, seconds."""
    return sum(command.limit_s for command in commands)


def _evidence(bed: Bed, site: Site, outcome: Outcome) -> Callable[..., None]:
    """On the way out of a failed run: bring what its hosts have written so far, from those that still answer."""

    def collect(kind: type[BaseException] | None, *_: object) -> None:
        if kind is None or not issubclass(kind, HostError):
            return
        for name, host in bed.hosts.items():
            with contextlib.suppress(HostError):
                host.collect(site.place(name), limit_s=_EVIDENCE_LIMIT_S)
        with contextlib.suppress(HostError):
            outcome.cautions += bed.at_end()

    return collect


def _hold_to(applied: Sequence[Applied]) -> None:
    wrong = [item for item in applied if not item.agrees]
    if wrong:
        raise HostError(
            "; ".join(
                f"{item.subject}: {item.setting} should be {item.asked!r} but `{item.source}` says {item.found!r}"
                for item in wrong
            )
        )
