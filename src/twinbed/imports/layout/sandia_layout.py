"""The folder names of the harness behind "Virtually the Same" and its LDRD report (Sandia, project "que").

As its scripts make and read them (github.com/jcrussell/que-ldrd-tools, ``experiments/concurrent/run.bash``,
``sweep-physical.bash``, ``tools/utils.py``)::

    <kvm|container>-<NIC>-<vCPUs>-<on|off>-<rate|none>-<workers>-<pairs>-<workload>[-extras]/<iteration>/que<n>/...
    physical-<speed>g-<on|off>-<workers>-<workload>[-instr]/<iteration>/...

Extras are ``instr``, ``pinning``, ``gre``, ``colocated``, ``stresscpu<n>``, ``stressio<n>``, ``stressmem<n>``, ``noht``; the
NIC of a container is ``host``, ``virtio-net-pci`` is virtio.  As there, a physical run counts as one pair of one vCPU.
Rates are Mbit/s.  A level that never varies in a folder is no factor, but a fact.

Below an iteration each pair has a folder with a random number, ``que<n>``.  Pairs are counted from 1 in the order of these
numbers.  Folders ``client/`` and ``server/`` are the hosts'.  Files such as ``client.pcap`` or ``client.tcptrace`` were
captured at the link of one. A file that ends in a machine's name (``vmstat.en7``) is of that machine.  A host has
``ethtool.1``, ``ethtool.2`` and so on, taken every 5 s: the last is read.  The harness's own logs, output of minimega and rond,
and snapshots of /proc/interrupts (separate files before and after a run) are not read.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from twinbed.imports.layout.names import natural
from twinbed.imports.layout.run_key import FileKey, NotAssigned
from twinbed.model.run import Level

_INSTANCE = re.compile(r"que\d+")
_SNAPSHOT = re.compile(r"ethtool\.\d+")
_ITERATION = re.compile(r"\d+")
_STRESS = re.compile(r"stress(cpu|io|mem)(\d+)")
_OF_MACHINE = re.compile(r"vmstat\.(?P<machine>(?!log$)[\w-]+)")
_MEASURED = "ab.out"
"""The file that every run has; any other may be of an unknown kind, as sysdig's own captures are."""
_READ = re.compile(
    r".*\.pcap(\.gz|\.zst)?|.*\.tcptrace|ab\.out|vmstat\.[\w-]+|dmesg|ping\.out|owping\.out|powstream-[cs]2[cs]\.out|ethtool\.\d+"
    r"|.*\.scap|topscalls-\w+\.out"
)
_SWITCHED = {"instr": "instrumented", "pinning": "pinned", "gre": "gre", "colocated": "colocated"}


@dataclass(frozen=True)
class SandiaLayout:
    """An ``Assigner`` for that layout."""

    pairs: Mapping[str, int]
    """Folder of a pair -> its number."""
    last: frozenset[str]
    """The last snapshots of their kind and host."""
    factors: frozenset[str]
    """The factors that vary."""

    @classmethod
    def of(cls, paths: Iterable[str]) -> SandiaLayout:
        """Return the layout of a folder with these files."""
        iterations: dict[str, set[str]] = {}
        snapshots: dict[str, str] = {}
        cells: dict[str, dict[str, Level]] = {}
        for path in paths:
            parts = path.split("/")
            for index, part in enumerate(parts[:-1]):
                if part not in cells and (of_part := _levels(part)) is not None:
                    cells[part] = of_part[1]
                if _INSTANCE.fullmatch(part):
                    iterations.setdefault("/".join(parts[:index]), set()).add(part)
            if _SNAPSHOT.fullmatch(parts[-1]):
                folder = "/".join(parts[:-1])
                snapshots[folder] = max(snapshots.get(folder, path), path, key=natural)
        numbered = {
            f"{folder}/{name}": number
            for folder, names in iterations.items()
            for number, name in enumerate(sorted(names, key=natural), start=1)
        }
        names = next(iter(cells.values()), {})
        varying = frozenset(name for name in names if len({levels[name] for levels in cells.values()}) > 1)
        return cls(numbered, frozenset(snapshots.values()), varying)

    def assign(self, path: str) -> FileKey:
        parts = path.split("/")
        for index in range(len(parts) - 2):
            if not _ITERATION.fullmatch(parts[index + 1]) or (of_part := _levels(parts[index])) is None:
                continue
            if _SNAPSHOT.fullmatch(parts[-1]) and path not in self.last:
                raise NotAssigned("is one of several snapshots; only the last is read")
            if not _READ.fullmatch(parts[-1]):
                raise NotAssigned("is a file of the harness that is not read")
            testbed, levels = of_part
            pair = self.pairs.get("/".join(parts[: index + 3]))
            below = parts[index + (2 if pair is None else 3) :]
            host = _host(below, "" if pair is None or levels["pairs"] == 1 else str(pair))
            return FileKey(
                testbed,
                {name: level for name, level in levels.items() if name in self.factors},
                str(int(parts[index + 1])),
                host,
                facts={name: level for name, level in levels.items() if name not in self.factors},
                optional=parts[-1] != _MEASURED,
            )
        raise NotAssigned("is not in a folder of the harness, such as kvm-virtio-1-on-1000-1-1-http/1/")


def _levels(name: str) -> tuple[str, dict[str, Level]] | None:
    """Return the testbed and the levels of a folder's name; None where it is not the harness's."""
    parts = name.replace("virtio-net-pci", "virtio").split("-")
    if parts[0] == "physical" and len(parts) >= 5 and re.fullmatch(r"\d+g", parts[1]):
        speed, offload, workers, workload = parts[1:5]
        testbed, vcpus, rate, pairs, extras = "physical", "1", f"{int(speed[:-1]) * 1000}", "1", parts[5:]
    elif parts[0] in ("kvm", "container") and len(parts) >= 8:
        nic, vcpus, offload, rate, workers, pairs, workload = parts[1:8]
        testbed, extras = (nic if parts[0] == "kvm" else "container"), parts[8:]
    else:
        return None
    numbers = {"threads": workers, "pairs": pairs, "vcpus": vcpus}
    if any(not text.isdecimal() for text in numbers.values()) or not (rate.isdecimal() or rate == "none"):
        return None
    levels: dict[str, Level] = {
        "workload": workload,
        **{factor: int(text) for factor, text in numbers.items()},
        "rate_mbit": int(rate) if rate.isdecimal() else None,
        "offload": offload == "on",
        **dict.fromkeys(_SWITCHED.values(), False),
        "hyperthreading": True,
        **{f"stress_{kind}": 0 for kind in ("cpu", "io", "mem")},
    }
    for extra in extras:
        if extra in _SWITCHED:
            levels[_SWITCHED[extra]] = True
        elif extra == "noht":
            levels["hyperthreading"] = False
        elif stress := _STRESS.fullmatch(extra):
            levels[f"stress_{stress[1]}"] = int(stress[2])
        else:
            return None
    return testbed, levels


def _host(below: list[str], pair: str) -> str:
    """Return the host of a file, by its path below the pair's folder; empty for ab's file of a single pair."""
    if not pair and below[-1] == _MEASURED:
        return ""
    for part in below:
        end = part.partition(".")[0]
        if end in ("client", "server"):
            return f"{end}{pair}"
    machine = _OF_MACHINE.fullmatch(below[-1])
    return machine["machine"] if machine else ""
