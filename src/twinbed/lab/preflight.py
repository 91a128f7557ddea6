"""Trials of what this machine can do; nothing is changed, and all problems are found before anything is started.

A trial lab is made and removed, so that whatever works here works in a study.
"""

from __future__ import annotations

import contextlib
import os
import platform
import shutil
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path

from twinbed.contracts.check import Check
from twinbed.contracts.command import PRELOAD
from twinbed.contracts.host_settings import HostSettings
from twinbed.contracts.params import BackgroundParams, DriverParams, InstrumentParams
from twinbed.contracts.plugins import AnyDriver
from twinbed.design.time import UNSHAPED_RATE
from twinbed.hosts import awake, packages, process, scratch
from twinbed.hosts.cache import build_command, places
from twinbed.hosts.cgroups import cgroup_root
from twinbed.hosts.error import HostError
from twinbed.hosts.lab import Lab, leftovers, more_ids, open_lab
from twinbed.hosts.packages import PURPOSES, Need
from twinbed.hosts.passport import own_cpus
from twinbed.image import find, probe_path
from twinbed.lab.execution import is_in_a_lab, not_in_a_lab
from twinbed.links import bridge, openvswitch, shaping
from twinbed.links.abilities import Ability, abilities, needed
from twinbed.model.error import TwinbedError
from twinbed.model.topology import Link, Topology
from twinbed.study.run import Run

_WAKE_UPS_S = 0.1
"""The time for which wake-ups are measured."""


def idle_cpus(lab: Lab, cpus: Sequence[int]) -> Check:
    """Measure how long waking an idle CPU takes: two threads wake each other on two CPUs, on one, and on two kept awake.

    ``cpus``: those that this process may use, in the order in which hosts are given them."""
    if len(cpus) < 2:
        return _idle_check("there is one CPU for all: no program waits for another CPU to wake")
    first, second = cpus[:1], cpus[1:2]
    try:
        apart_s = awake.wake_up_s(lab.machine, first, second, _WAKE_UPS_S)
        together_s = awake.wake_up_s(lab.machine, first, first, _WAKE_UPS_S)
        times = f"waking an idle CPU takes {_us(apart_s)} on this machine ({_us(together_s)} if both programs share a CPU)"
        if why := awake.why_not(lab.cgroups.by_controller):
            return _idle_check(f"{times}; idle: busy {why}", mend="run as root")
        with awake.keep(lab, (*first, *second)) as kept:
            busy_s, awake_cpus = awake.wake_up_s(lab.machine, first, second, _WAKE_UPS_S), kept.cpus()
    except HostError as error:
        return _idle_check(str(error).replace("\n", " "), mend="idle: normal")
    if awake_cpus != tuple(sorted((*first, *second))):
        kept_awake = f"idle: busy kept only {list(awake_cpus)} of CPUs {[*first, *second]} awake"
        return _idle_check(f"{times}; {kept_awake}", mend="idle: normal")
    return _idle_check(f"{times}; {_us(busy_s)} with idle: busy{load_note(len(cpus), os.getloadavg()[0])}")


def load_note(cpus: int, load: float) -> str:
    """Return a note for a machine with other work, which has no idle CPU to wake; empty for a quiet one."""
    return f"; other work runs here (load {load:.1f}): check again on a quiet machine" if load >= cpus / 2 else ""


def _us(seconds: float) -> str:
    return f"{seconds * 1e6:.3g} us"


def _idle_check(times: str, mend: str = "") -> Check:
    return Check("idle CPUs", not mend, times, mend, required=False)


_TRIAL_LIMIT_S = 30.0
_LAB_PATH = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"
"""Where programs of a lab are looked for, as crates/probe/src/command.rs has it."""
_PROGRAM_FOLDERS = ("usr/bin", "usr/sbin", "bin", "sbin")


def machine(*, needs_lab: bool = True, captures: bool = True, system_calls: bool = False, builds: bool = False) -> list[Check]:
    """Try this machine, whatever the study: system, tools, image, and a trial lab with a switch and a shaped link.

    ``captures``, ``system_calls``: a study requires packet captures and counts of system calls on this machine.  ``builds``:
    the caller builds the image next.
    """
    checks = [_system(), _user()]
    if not needs_lab or not checks[0].works:
        return checks
    image = _image(not builds)
    checks += _tools([*PURPOSES["container"], *(() if image.works else PURPOSES["image"])])
    checks.append(image)
    checks += _lab(captures, system_calls)
    checks.append(_cgroups())
    checks.append(_leftovers())
    return checks


def study(testbeds: Sequence[tuple[str, AnyDriver, DriverParams]]) -> list[Check]:
    """Return the checks of each driver of a study: (testbed's name, driver, params)."""
    checks: list[Check] = []
    for _, driver, params in testbeds:
        checks += [check for check in driver.check(params) if check not in checks]
    return checks + left_elsewhere({driver.name: driver for _, driver, _ in testbeds}.values())


def left_elsewhere(drivers: Iterable[AnyDriver]) -> list[Check]:
    """Report leftovers of dead controllers outside this machine's labs, for each driver that has any."""
    checks = []
    for driver in drivers:
        if left := driver.leftovers():
            status = f"{len(left)} of dead runs: {', '.join(leftover.what for leftover in left)}"
            checks.append(Check(f"leftovers of {driver.name}", False, status, f"{_sudo()}twinbed sweep", required=False))
    return checks


def network(beds: Sequence[tuple[Topology, AnyDriver, DriverParams]]) -> list[Check]:
    """Try once each thing that a study's topologies need from this machine: (topology, driver, params)."""
    wanted: dict[str, Ability] = {}
    contradictions: dict[str, Check] = {}
    refused: dict[Check, None] = {}
    for topology, driver, params in beds:
        refused |= dict.fromkeys(driver.check_topology(topology))
        if topology.role_hosts and not driver.in_lab:
            status = "the hosts of roles are on a switch of this machine"
            refused[Check(f"{driver.name}: roles", False, status, "a testbed of containers or guests")] = None
        if not driver.in_lab:
            continue  # the switches are elsewhere
        kinds = list(params.kinds().values())
        for ability in needed(topology, own_kernels=all(kind.own_kernel for kind in kinds)):
            wanted.setdefault(ability.what, ability)
        for kind in kinds:
            if not isinstance(kind, HostSettings):
                continue  # nothing is set on such hosts
            try:
                openvswitch.host_settings(topology, kind)
            except openvswitch.Unfit as error:
                contradictions.setdefault(str(error), Check(f"switch: {topology.switch}", False, str(error), error.advice))
    if not wanted:
        return list(refused)
    try:
        return [*refused, *abilities(probe_path(), list(wanted.values()), required=True), *contradictions.values()]
    except TwinbedError as error:
        return [Check("switches", False, str(error), error.advice)]


def backgrounds(loads: Sequence[tuple[AnyDriver, BackgroundParams]]) -> list[Check]:
    """Check that the machine has the programs that a study's background loads run on it: (driver, the load's params)."""
    checks: list[Check] = []
    for driver, load in loads:
        if driver.in_process and (load.programs() or load.machine_programs()):
            status = f"the driver {driver.name} has no machines to load"
            check = Check(f"{driver.name}: background", False, status, "for this testbed: no background load")
            checks += [] if check in checks else [check]
            continue
        for need in packages.of_programs(*load.machine_programs()):
            if driver.in_lab:
                what = f"{need.shows}, for background"
                check = Check(what, need.path is not None, need.path or packages.absent([need]), packages.mend([need]))
            else:
                status = f"the driver {driver.name} has no machine of its own under its hosts"
                check = Check("background: where: machine", False, status, "where: hosts, clients or servers")
            checks += [] if check in checks else [check]
    return checks


def programs(plugins: Sequence[tuple[str, InstrumentParams | BackgroundParams]]) -> list[Check]:
    """Check that the image has the programs that instruments and background loads need on hosts: (name, params). ``machine``
    reports a missing image."""
    needed = dict.fromkeys((program, name) for name, params in plugins for program in params.programs())
    try:
        image = find() if needed else None
    except TwinbedError:
        image = None
    if image is None:
        return []
    checks = []
    for program, name in needed:
        path = shutil.which(program, path=":".join(str(image.rootfs / folder) for folder in _PROGRAM_FOLDERS))
        status = "in the image" if path else "not in the image, and not in any package of Debian"
        checks.append(
            Check(f"{program}, for {name}", path is not None, status, f"choose another tool for {name}, such as irtt")
        )
    return checks


def confined(runs: Sequence[Run], drivers: Mapping[str, AnyDriver]) -> list[Check]:
    """Check that workloads which may run only in labs are asked to run there."""
    wrong = [run for run in runs if run.workload.params.lab_only and not is_in_a_lab(run, drivers)]
    mend = "use containers or guests on this machine"
    return list(dict.fromkeys(Check(f"workload {run.workload.kind}", False, not_in_a_lab(run), mend) for run in wrong))


def trials(plugins: Sequence[tuple[str, InstrumentParams | BackgroundParams]]) -> list[Check]:
    """Run the programs that a study's instruments need on this machine: (name, params)."""
    checks: list[Check] = []
    for name, params in plugins:
        for trial in params.trials() if isinstance(params, InstrumentParams) else ():
            what = f"{Path(trial.argv[0]).name}, for {name}"
            try:
                done = process.run(trial.argv, limit_s=_TRIAL_LIMIT_S, env={"PATH": _LAB_PATH})
            except process.ProcessFailed as error:
                check = Check(what, False, str(error).replace("\n", " "), trial.mend)
            else:
                output = (done.text or done.stderr.decode(errors="replace")).strip().splitlines()
                check = Check(what, True, output[0] if output else f"`{' '.join(trial.argv)}`")
            checks += [] if check in checks else [check]
    return checks


def disk_space(folder: Path, needed_bytes: int, rates_known: bool) -> Check:
    """Check the disk space for the runs that are still to be made.

    Without a rate on links their traffic is a guess. Too little space is then not a reason to refuse: a run on a full disk
    fails, and nothing is lost."""
    existing = next(path for path in (folder, *folder.absolute().parents) if path.exists())
    free = shutil.disk_usage(existing).free
    status = f"{free / 1e9:.1f} GB free, at most {needed_bytes / 1e9:.1f} GB needed"
    if not rates_known:
        status += f", with {UNSHAPED_RATE / 1e9:g} Gbit/s on links without a rate"
    mend = "use --output on a larger disk, or a smaller snaplen"
    return Check(f"disk space at {existing}", free > needed_bytes, status, mend, required=rates_known)


def _system() -> Check:
    system = platform.uname()
    works = system.system == "Linux" and system.machine == "x86_64"
    return Check("system", works, f"{system.system} {system.release} {system.machine}", "Linux on x86_64 is needed")


def _user() -> Check:
    if os.geteuid() == 0:
        return Check("user", True, "root")
    more = "" if more_ids() else "; programs in it cannot have other users: that needs newuidmap and ids for you in /etc/subuid"
    status = f"user {os.geteuid()}, without root: a lab gets its own user namespace{more}"
    return Check("user", True, status, required=False)


def _tools(wanted: Sequence[Need]) -> list[Check]:
    missing = packages.lacking(wanted)
    if not missing:
        return [Check("tools", True, ", ".join(need.shows for need in wanted))]
    return [Check("tools", False, packages.absent(missing), packages.mend(missing))]


def _image(required: bool = True) -> Check:
    try:
        image = find()
    except TwinbedError as error:
        return Check("image", False, str(error), error.advice, required)
    if image is None:
        mend = "twinbed image build" if os.geteuid() == 0 else build_command()
        searched = " or ".join(str(place) for place in places())
        return Check("image", False, f"not built in {searched}", mend, required)
    return Check("image", True, f"{image.digest}, guest kernel {image.kernel_version}")


def _lab(captures: bool, system_calls: bool) -> list[Check]:
    try:
        probe = probe_path()
    except TwinbedError as error:
        return [Check("lab", False, str(error), error.advice)]
    with contextlib.ExitStack() as stack:
        try:
            lab = stack.enter_context(open_lab(probe, stack.enter_context(scratch.folder())))
        except TwinbedError as error:
            return [Check("lab", False, f"namespaces cannot be made: {error}", _mend_namespaces())]
        except OSError as error:
            return [Check("lab", False, f"{error.filename}: {error.strerror}", "run as root")]
        return [
            Check("lab", True, "PID, network and mount namespaces"),
            _try(
                lab,
                "bridge and veth",
                ["ip", "-batch", "-"],
                f"{bridge.switch('trial')}link add v0 type veth peer name v1\n",
                "bridge veth",
            ),
            _try(lab, "HTB", ["tc", "-batch", "-"], shaping.plan("v0", Link(rate=10**9)), "sch_htb"),
            _try(lab, "TBF", ["tc", "-batch", "-"], shaping.plan("v1", Link(rate=10**9, shaper="tbf")), "sch_tbf"),
            _capture(lab, captures),
            _system_calls(lab, system_calls),
            _events(lab),
            idle_cpus(lab, own_cpus()),
        ]


def _try(lab: Lab, what: str, argv: list[str], stdin: str, module: str) -> Check:
    try:
        lab.machine.run(argv, stdin=stdin.encode(), limit_s=_TRIAL_LIMIT_S)
    except HostError as error:
        return Check(what, False, str(error).replace("\n", " "), f"{_sudo()}modprobe -a {module}" if module else "")
    return Check(what, True, f"`{' '.join(argv)}` in a trial lab")


def _capture(lab: Lab, required: bool) -> Check:
    """Begin a capture: only that shows whether tcpdump may change its user, as it does before it writes a file."""
    argv = ["tcpdump", "-i", "lo", "-Z", "root", "-w", f"{lab.machine.artifacts}/trial.pcap"]
    program = lab.machine.start(argv, env={"LD_PRELOAD": f"{lab.machine.bin}/{PRELOAD}"})
    try:
        program.says(b"listening on", _TRIAL_LIMIT_S)
    except HostError as error:
        mend = "run as root" if os.geteuid() else packages.mend(packages.of_programs("tcpdump"))
        return Check("packet capture", False, str(error).replace("\n", " "), mend, required)
    program.signal(9)
    return Check("packet capture", True, f"`{' '.join(argv[:5])}` in a trial lab")


def _system_calls(lab: Lab, required: bool) -> Check:
    """Count system calls as for containers. Guests have their own kernel, in which it works."""
    count = f"{lab.machine.artifacts}/trial.count"
    program = lab.machine.start(["twinbed-probe", "syscalls", "count", "--out", count])
    try:
        program.says(b"ready", _TRIAL_LIMIT_S)
        program.signal(2)
        program.wait(_TRIAL_LIMIT_S)
        header = lab.machine.read(count).decode(errors="replace").splitlines()
    except HostError as error:
        mend = "a kernel of 5.8 or newer with BPF" if os.geteuid() == 0 else "run as root"
        advice = f"{mend}; guests (driver: qemu) count their own calls, and `twinbed chain` reads strace's output"
        return Check("system calls", False, str(error).replace("\n", " "), advice, required)
    method = next((line.partition(" ")[2] for line in header if line.startswith("method ")), "an unknown method")
    return Check("system calls", True, f"counted by {method} in a trial lab", required=required)


def _events(lab: Lab) -> Check:
    """Count the kernel's events. Refused events are null in results, so the check is never required."""
    file = f"{lab.machine.artifacts}/trial.events"
    program = lab.machine.start(["twinbed-probe", "events", "--out", file, "--share", "1"])
    try:
        program.says(b"ready", _TRIAL_LIMIT_S)
        program.signal(15)
        program.wait(_TRIAL_LIMIT_S)
        lines = lab.machine.read(file).decode(errors="replace").splitlines()
    except HostError as error:
        return Check("kernel events", False, str(error).replace("\n", " "), required=False)
    counted = [line.split(" ")[2] for line in lines if line.startswith("counted ")]
    refused: dict[str, list[str]] = {}
    works = True
    for line in lines:
        if line.startswith("refused "):
            _, source, event, reason = line.split(" ", 3)
            refused.setdefault(reason, []).append(event)
            works &= source == "kvm"  # only a machine with guests needs it
    status = f"counted in a trial lab: {', '.join(counted) or 'none'}"
    why = "".join(f"; null: {', '.join(events)} ({reason})" for reason, events in refused.items())
    mend = "a kernel of 5.8 or newer with BTF" if os.geteuid() == 0 else "run as root"
    return Check("kernel events", works, status + why, "" if works else mend, required=False)


def _cgroups() -> Check:
    root = cgroup_root()
    status = str(root) if root else "this user cannot make control groups; hosts are not accounted for separately"
    return Check("control groups", root is not None, status, "run as root", required=False)


def _leftovers() -> Check:
    dead = leftovers()
    status = "none" if not dead else f"{len(dead)} of dead labs: {', '.join(scratch.name for scratch, _ in dead)}"
    return Check("leftovers", not dead, status, f"{_sudo()}twinbed sweep", required=False)


def _mend_namespaces() -> str:
    if os.geteuid() == 0:
        return "a kernel with CONFIG_NET_NS, CONFIG_PID_NS and CONFIG_UTS_NS, outside of a container without CAP_SYS_ADMIN"
    for name, wanted in (("user/max_user_namespaces", 15000), ("kernel/unprivileged_userns_clone", 1)):
        path = Path("/proc/sys") / name
        if path.exists() and path.read_text().strip() == "0":
            return f"sudo sysctl -w {name.replace('/', '.')}={wanted}"
    restricted = Path("/proc/sys/kernel/apparmor_restrict_unprivileged_userns")
    if restricted.exists() and restricted.read_text().strip() == "1":
        return "sudo sysctl -w kernel.apparmor_restrict_unprivileged_userns=0"
    return "run as root"


def _sudo() -> str:
    return "" if os.geteuid() == 0 else "sudo "
