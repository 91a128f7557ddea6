"""Signals: a case is a driver, a victim, a signal and a phase, drawn evenly, not by how long phases last."""

from __future__ import annotations

import contextlib
import json
import os
import random
import select
import signal
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from tests.remote.conftest import differences
from tests.remote.machines import Machines, state

from benchmarks.campaign import alone, studies
from twinbed.contracts import exit_codes as codes
from twinbed.model.run import Phase

_OF_RUNS = tuple(
    map(
        str,
        (
            Phase.UP,
            Phase.CONFIGURE,
            Phase.LINK_CHECK,
            Phase.SERVE,
            Phase.INSTRUMENT,
            Phase.WORKLOAD,
            Phase.COLLECT,
            Phase.DOWN,
        ),
    )
)
_ONCE = ("preflight", "conclude")
PHASES = {
    # Those that this driver has.
    "fake": ("preflight", *(each for each in _OF_RUNS if each not in (Phase.LINK_CHECK, Phase.INSTRUMENT)), "conclude"),
    **dict.fromkeys(("container", "qemu", "remote"), ("preflight", *_OF_RUNS, "conclude")),
}
_RUNS = {"fake": 8, "container": 2, "qemu": 1, "remote": 2}
_VICTIMS: Mapping[str, Callable[[str], bool]] = {
    "keeper": lambda line: "twinbed-probe lab " in line,
    "agent": lambda line: "twinbed-probe container " in line,
    "guest": lambda line: line.startswith("qemu-system"),
    "lease": lambda line: "twinbed-probe lease " in line,
    "remote agent": lambda line: "twinbed-probe agent" in line,
    "ssh": lambda line: line.startswith("ssh "),
    "sshd": lambda line: line.startswith("sshd: "),
    "nginx": lambda line: line.startswith("nginx"),
    "ab": lambda line: line.startswith("ab "),
    "tcpdump": lambda line: line.startswith("tcpdump"),
}
VICTIMS = {
    "fake": ("controller",),
    "container": ("controller", "keeper", "agent", "nginx", "ab", "tcpdump"),
    "qemu": ("controller", "keeper", "guest", "tcpdump"),
    "remote": ("controller", "lease", "remote agent", "ssh", "sshd", "nginx", "ab", "tcpdump"),
}
_SIGNALS = (signal.SIGKILL, signal.SIGTERM, signal.SIGINT, signal.SIGHUP, signal.SIGSTOP)
_OF_OTHERS = (signal.SIGKILL, signal.SIGTERM, signal.SIGSEGV, signal.SIGSTOP)
_STRUCK_S = 3.0
"""A process that dies of a signal is gone so soon."""
_STOPPED_S = 2.0
"""For so long a controller is stopped. Nobody lets other victims go on."""
_SPREAD_S = 0.05
"""After a phase has begun, at most."""
KINDS = ("left behind", "lost", "twice", "changed", "not resumed", "hung")


@dataclass(frozen=True, slots=True)
class Case:
    number: int
    driver: str
    victim: str
    signal: signal.Signals
    phase: str
    nth: int
    """Which time that the phase begins, of the first two."""
    offset_s: float
    instead: tuple[str, ...]
    """Victims in the order in which they are taken where the one that was drawn does not live in that phase."""

    def __str__(self) -> str:
        return f"{self.number}: {self.driver}, {self.victim}, {self.signal.name}, {self.phase} #{self.nth}"


def cases(count: int, seed: int, drivers: Sequence[str]) -> Iterator[Case]:
    """Drivers in turn; of each, every combination of victim, phase and signal once before any comes again."""
    draw = random.Random(seed)
    decks: dict[str, list[tuple[str, str, signal.Signals]]] = {driver: [] for driver in drivers}
    for number in range(count):
        driver = drivers[number % len(drivers)]
        if not decks[driver]:
            decks[driver] = [
                (victim, phase, each)
                for victim in VICTIMS[driver]
                for phase in PHASES[driver]
                for each in (_SIGNALS if victim == "controller" else _OF_OTHERS)
            ]
            draw.shuffle(decks[driver])
        victim, phase, each = decks[driver].pop()
        nth = 1 if phase in (*_ONCE, Phase.LINK_CHECK) else draw.randint(1, min(2, _RUNS[driver]))
        offset, instead = draw.uniform(0, _SPREAD_S), draw.sample(VICTIMS[driver], len(VICTIMS[driver]))
        yield Case(number, driver, victim, each, phase, nth, offset, tuple(instead))


def try_one(case: Case, folder: Path, undisturbed: Sequence[str], two: Machines | None) -> tuple[str, dict[str, str]]:
    """(whom the signal was sent to, "" if the phase never began; what was wrong: kind -> text). ``undisturbed``: the values of
    the study of ``fake``; ``two``: the machines of ``remote``."""
    study, results, said = folder / "study.yaml", folder / "results", folder / "said"
    remote = json.dumps({"driver": "remote", **two.settings(lease=5)}) if two else ""
    text = studies.STUDIES[case.driver].replace("@remote", remote)
    study.write_text(text.replace("# @link", studies.LINK) if case.phase == Phase.LINK_CHECK else text)
    before, hosts = alone.remains(), {name: state(space) for name, space in two.hosts.items()} if two else {}
    others, hit = alone.processes(), ""
    stopped_sshd: list[int] = []

    def then(controller: int) -> None:
        nonlocal hit
        time.sleep(case.offset_s)
        for victim in (case.victim, *case.instead):
            found = {number: line for number, line in alone.processes().items() if number not in others}
            if victim == "controller":
                hit = victim if _to_controller(controller, case.signal) else ""
                return
            fits = _VICTIMS[victim]
            for process in sorted(each for each, line in found.items() if fits(line))[:1]:
                if _struck(process, case.signal):
                    hit = victim
                    if case.signal == signal.SIGSTOP and victim == "sshd":
                        stopped_sshd.append(process)
                    return

    report = () if case.phase == "conclude" else ("--no-report",)
    code = studies.carry(study, results, said, (case.phase, case.nth), then, *report)
    if hit == "controller" and case.signal != signal.SIGSTOP and code not in (-case.signal, codes.INTERRUPTED, None):
        hit = ""  # it had ended before
    for process in stopped_sshd:  # a remote host's own; all that twinbed has there ends without it
        with contextlib.suppress(ProcessLookupError):
            os.kill(process, signal.SIGKILL)
    stays = alone.left(before)
    if hit == "controller" and case.signal in (signal.SIGKILL, signal.SIGSEGV):
        # Nobody is there to remove its scratch folder until the next command.
        stays = {each for each in stays if not each.startswith("folder")}
    wrong = studies.judged(study, results, said, studies.complete(results), undisturbed if case.driver == "fake" else None)
    if code is None:
        wrong["hung"] = f"did not end in {studies.LIMIT_S:g} s"
    changed = differences(hosts, two) if two else {}
    if stays := stays | alone.left(before) | {f"of {each}" for each in changed}:
        wrong["left behind"] = "; ".join(sorted(stays))
    return hit, wrong


def _to_controller(process: int, number: signal.Signals) -> bool:
    """Whether it stopped, and was let go on as a user would; whether it died of another signal its exit code tells."""
    os.kill(process, number)  # it is a child that nobody has waited for yet
    if number != signal.SIGSTOP:
        return True
    stopped = _until_stopped(process)
    time.sleep(_STOPPED_S if stopped else 0.0)
    os.kill(process, signal.SIGCONT)
    return stopped


def _struck(process: int, number: signal.Signals) -> bool:
    """Send the signal: whether the process died of it, or stopped. One that ignores it, or that the kernel keeps from it as the
    first process of a PID namespace, is not struck, though it may end soon for another reason."""
    try:
        descriptor = os.pidfd_open(process)
    except ProcessLookupError:
        return False
    try:
        mortal = number in (signal.SIGKILL, signal.SIGSTOP) or _mortal(process, number)
        signal.pidfd_send_signal(descriptor, number)
        if number == signal.SIGSTOP:
            return _until_stopped(process)
        death = select.poll()
        death.register(descriptor, select.POLLIN)
        return bool(death.poll(1000 * _STRUCK_S)) and mortal
    except OSError:  # it had ended before
        return False
    finally:
        os.close(descriptor)


def _mortal(process: int, number: signal.Signals) -> bool:
    facts = dict(line.split(":\t", 1) for line in Path(f"/proc/{process}/status").read_text().splitlines() if ":\t" in line)
    ignored, caught = (bool(int(facts[name], 16) >> (number - 1) & 1) for name in ("SigIgn", "SigCgt"))
    return not ignored and (caught or facts["NSpid"].split()[-1] != "1")


def _until_stopped(process: int) -> bool:
    """Whether it is. It may be dead already, which its state tells too."""
    deadline = time.monotonic() + _STRUCK_S
    while time.monotonic() < deadline:
        state = Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()[0]
        if state in "TZX":
            return state == "T"
        time.sleep(0.01)
    return False
