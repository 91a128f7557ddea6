"""What preflight tries of hosts over SSH: logging in, becoming root, tools, disk space, NICs.  Nothing is put on them or
changed."""

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
"""For the packed and the unpacked image together, with space to spare."""
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


# With the path that programs of a run are looked for in.
_MISSING = """
PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin
for program in "$@"; do command -v "$program" >/dev/null || echo "$program"; done
"""


@dataclass(frozen=True, slots=True)
class _Host:
    name: str
    settings: RemoteHost


def checks(params: RemoteSettings) -> Sequence[Check]:
    """All hosts are tried side by side."""
    client = ssh.there()
    first = Check("ssh", client is not None, client or "no ssh", packages.mend(packages.of_programs("ssh")))
    if client is None:
        return [first]
    hosts = [_Host(name, settings) for name, settings in params.hosts.items()]
    tried = process.side_by_side(lambda host: _try(host, params), hosts)
    return [first, *(check for call in tried for check in call.result())]


def programs(params: RemoteSettings, wanted: Mapping[str, Collection[str]]) -> Sequence[Check]:
    """Whether hosts that use their own tools have what is to be started on them; those that are not reached are passed over,
    as ``checks`` says so."""
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
    status = f"without {', '.join(missing)}" if missing else ", ".join(wanted)
    return Check(f"host {host.name}: programs", not missing, status, _install_there(missing))


def _try(host: _Host, params: RemoteSettings) -> list[Check]:
    tools = (*_NEEDED_TOOLS, "tar")
    try:
        output = ssh.run(host.settings.reached(host.name), _SURVEY, [host.settings.folder, *tools], limit_s=_LIMIT_S)
    except HostError as error:
        reason, _, mend = str(error).splitlines()[0].rpartition(": ")
        return [Check(f"host {host.name}", False, reason or mend, mend if reason else "")]
    facts: dict[str, str] = {}
    there = set()
    for line in output.splitlines():
        key, _, value = line.partition(" ")
        if key == "tool":
            there.add(value)
        else:
            facts[key] = value
    result = [_system(host, facts), _disk_space(host, facts, params)]
    if params.image == "archive":
        result.append(_image(host, facts, there))
    else:
        result.append(_tools(host, there))
    return [*result, _nic(host, facts, params)]


def _system(host: _Host, facts: Mapping[str, str]) -> Check:
    system = facts.get("system", "")
    works = system.startswith("Linux ") and system.endswith(" x86_64")
    return Check(f"host {host.name}", works, f"{system}, root over SSH", "Linux on x86_64 is needed")


def _disk_space(host: _Host, facts: Mapping[str, str], params: RemoteSettings) -> Check:
    free = int(facts["room"]) * 1024 if facts.get("room", "").isdigit() else 0
    needed = _IMAGE_BYTES if params.image == "archive" else 0
    folder = host.settings.folder
    status = f"{free / 1e9:.1f} GB free for {folder}" if "writable" in facts else f"{folder} cannot be written"
    return Check(
        f"host {host.name}: room",
        free > needed and "writable" in facts,
        status,
        "make room, or give a folder elsewhere: folder: /PATH",
    )


def _image(host: _Host, facts: Mapping[str, str], there: set[str]) -> Check:
    missing = ["overlay file system"] * ("overlay" not in facts) + ["tar"] * ("tar" not in there)
    mend = "modprobe overlay, apt-get install tar, or use the host's own tools: image: none"
    return Check(
        f"host {host.name}: image", not missing, "overlay, tar" if not missing else f"without {', '.join(missing)}", mend
    )


def _tools(host: _Host, there: set[str]) -> Check:
    missing = [tool for tool in _NEEDED_TOOLS if tool not in there]
    status = f"without {', '.join(missing)}" if missing else ", ".join(_NEEDED_TOOLS)
    return Check(f"host {host.name}: tools", not missing, status, _install_there(missing))


def _install_there(programs: Sequence[str]) -> str:
    """In Debian's names: what a host runs is not known before it is used."""
    return f"apt-get install {' '.join(sorted({packages.debian(each) for each in programs}))} there, or image: archive"


def _nic(host: _Host, facts: Mapping[str, str], params: RemoteSettings) -> Check:
    """Whether a NIC that is named is there and does not carry the SSH connection. One that is not named is found when it is
    used."""
    what = f"host {host.name}: NIC"
    try:
        devices: Sequence[device.Device] = device.parse(facts.get("nics", "").encode())
    except ValueError as error:
        return Check(what, False, str(error), "")
    if not devices:
        return Check(what, True, "looked for with the image's tools when it is used", required=False)
    words = facts.get("from", "").split()
    carries = nic.with_address(devices, words[2]) if len(words) == 4 else None
    shown = ", ".join(each.name for each in devices if each.name != "lo")
    named = host.settings.nic
    if named is None:
        able = nic.candidates(devices, carries)
        works = len(able) == 1 and carries is not None
        return Check(what, works, able[0].name if works else f"{len(able)} could be it, of {shown}", "name it: nic: NAME")
    if named not in {each.name for each in devices}:
        return Check(what, False, f"no {named}; there are {shown}", "name another: nic: NAME")
    if named == carries:
        return Check(what, False, f"{named} carries the SSH connection", "name another: nic: NAME")
    return Check(what, True, named)
