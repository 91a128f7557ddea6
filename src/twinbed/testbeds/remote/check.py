"""Preflight of hosts over SSH: login, root, tools, disk space, NICs. Nothing is put on the hosts or changed."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass

from twinbed.contracts.check import Check
from twinbed.hosts import packages, process, ssh
from twinbed.hosts.error import HostError
from twinbed.links import device
from twinbed.testbeds.remote import nic
from twinbed.testbeds.remote.settings import RemoteHost, RemoteSettings

_LIMIT_S = 30.0
_NEEDED_TOOLS = tuple(need.shows for need in packages.PURPOSES["container"])
_IMAGE_BYTES = 600_000_000
"""For the packed and the unpacked image together, with some to spare."""
_SURVEY = """
folder=$1; shift
echo "system $(uname -srm)"
while [ ! -d "$folder" ]; do folder=$(dirname "$folder"); done
echo "room $(df -Pk "$folder" | tail -n 1 | while read -r _ _ _ free _; do echo "$free"; done)"
[ -w "$folder" ] && echo "writable $folder"
grep -q overlay /proc/filesystems && echo "overlay yes"
for tool in "$@"; do command -v "$tool" >/dev/null && echo "tool $tool"; done
echo "from $TWINBED_FROM"
echo "nics $(ip -j -d addr show 2>/dev/null)"
"""


# With the search path of a run's programs.
_MISSING = """
PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin
for program in "$@"; do command -v "$program" >/dev/null || echo "$program"; done
"""


@dataclass(frozen=True, slots=True)
class _Host:
    name: str
    settings: RemoteHost


def checks(params: RemoteSettings) -> Sequence[Check]:
    """Check all hosts side by side."""
    client = ssh.there()
    first = Check("ssh", client is not None, client or "not installed", packages.mend(packages.of_programs("ssh")))
    if client is None:
        return [first]
    hosts = [_Host(name, settings) for name, settings in params.hosts.items()]
    tried = process.side_by_side(lambda host: _try(host, params), hosts)
    return [first, *(check for call in tried for check in call.result())]


def programs(params: RemoteSettings, wanted: Mapping[str, Collection[str]]) -> Sequence[Check]:
    """Check that hosts with their own tools have the programs of the run. ``checks`` reports hosts that cannot be reached."""
    if params.image == "archive":
        return []
    hosts = [_Host(name, settings) for name, settings in params.hosts.items() if wanted.get(name)]
    asked = process.side_by_side(lambda host: _programs(host, sorted(wanted[host.name])), hosts)
    return [check for call in asked if (check := call.result())]


def _programs(host: _Host, wanted: Sequence[str]) -> Check | None:
    try:
        output = ssh.run(host.settings.reached(host.name), _MISSING, wanted, limit_s=_LIMIT_S)
    except HostError:
        return None
    missing = output.splitlines()
    return Check(f"host {host.name}: programs", not missing, _status(missing, wanted), _install(missing))


def _try(host: _Host, params: RemoteSettings) -> list[Check]:
    tools = (*_NEEDED_TOOLS, "tar")
    try:
        output = ssh.run(host.settings.reached(host.name), _SURVEY, [host.settings.folder, *tools], limit_s=_LIMIT_S)
    except HostError as error:
        reason, _, remedy = str(error).splitlines()[0].rpartition(": ")
        return [Check(f"host {host.name}", False, reason or remedy, remedy if reason else "")]
    facts: dict[str, str] = {}
    found_tools = set()
    for line in output.splitlines():
        key, _, value = line.partition(" ")
        if key == "tool":
            found_tools.add(value)
        else:
            facts[key] = value
    tools_check = _image(host, facts, found_tools) if params.image == "archive" else _tools(host, found_tools)
    return [_system(host, facts), _disk_space(host, facts, params), tools_check, _nic(host, facts, params)]


def _status(missing: Sequence[str], needed: Sequence[str]) -> str:
    return f"without {', '.join(missing)}" if missing else ", ".join(needed)


def _system(host: _Host, facts: Mapping[str, str]) -> Check:
    system = facts.get("system", "")
    works = system.startswith("Linux ") and system.endswith(" x86_64")
    return Check(f"host {host.name}", works, f"{system}, root over SSH", "use a host with Linux on x86_64")


def _disk_space(host: _Host, facts: Mapping[str, str], params: RemoteSettings) -> Check:
    free = int(facts["room"]) * 1024 if facts.get("room", "").isdigit() else 0
    needed = _IMAGE_BYTES if params.image == "archive" else 0
    folder = host.settings.folder
    status = f"{free / 1e9:.1f} GB free for {folder}" if "writable" in facts else f"{folder} cannot be written"
    remedy = f"free {needed / 1e9:g} GB there, or set another folder: folder: /PATH"
    return Check(f"host {host.name}: room", free > needed and "writable" in facts, status, remedy)


def _image(host: _Host, facts: Mapping[str, str], found_tools: set[str]) -> Check:
    missing = {"overlay file system": "overlay" not in facts, "tar": "tar" not in found_tools}
    remedies = {"overlay file system": "modprobe overlay", "tar": "apt-get install tar"}
    lacks = [part for part, is_missing in missing.items() if is_missing]
    remedy = f"on the host: {'; '.join(remedies[part] for part in lacks)}; or use the host's own tools: image: none"
    return Check(f"host {host.name}: image", not lacks, _status(lacks, ["overlay", "tar"]), remedy)


def _tools(host: _Host, found_tools: set[str]) -> Check:
    missing = [tool for tool in _NEEDED_TOOLS if tool not in found_tools]
    return Check(f"host {host.name}: tools", not missing, _status(missing, _NEEDED_TOOLS), _install(missing))


def _install(programs: Sequence[str]) -> str:
    """Return the remedy for missing programs, with Debian's names: the host's system is unknown until it is used."""
    names = " ".join(sorted({packages.debian(program) for program in programs}))
    return f"on the host: apt-get install {names}; or set image: archive"


def _nic(host: _Host, facts: Mapping[str, str], params: RemoteSettings) -> Check:
    """Check that a named NIC exists and does not carry the SSH connection. Without a name the run finds the NIC."""
    what = f"host {host.name}: NIC"
    try:
        devices: Sequence[device.Device] = device.parse(facts.get("nics", "").encode())
    except ValueError as error:
        return Check(what, False, str(error), "")
    if not devices:
        return Check(what, True, "unknown until the run, which looks with the image's tools", required=False)
    words = facts.get("from", "").split()
    carries = nic.with_address(devices, words[2]) if len(words) == 4 else None
    shown = ", ".join(other.name for other in devices if other.name != "lo")
    named = host.settings.nic
    if named is None:
        able = nic.candidates(devices, carries)
        works = len(able) == 1 and carries is not None
        status = able[0].name if works else f"{len(able)} of {shown} could be the experiment's"
        return Check(what, works, status, "set the host's nic: NAME")
    if named not in {other.name for other in devices}:
        return Check(what, False, f"no {named}; the host has {shown}", "set the host's nic to one of these")
    if named == carries:
        return Check(what, False, f"{named} carries the SSH connection", f"set the host's nic to another of {shown}")
    return Check(what, True, named)
