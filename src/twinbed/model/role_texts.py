"""Roles of a workload's hosts: their hosts' names, and texts that stand for own and other hosts.

The only host of a role has its name; several are ``node1``, ``node2`` and so on.  In texts ``{name}``, ``{address}`` and
``{number}`` are the own host's, and ``{node1}`` is a host's address.  ``{each node: {name}=http://{address}:2380}`` is a
text for each host of a role, joined by commas; ``{each node by space: ...}`` joins otherwise, and ``by argument`` makes each
an argument.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence

from twinbed.model.near import nearest
from twinbed.model.run import Level
from twinbed.model.template import TemplateError, filled

NAME_PATTERN = "^[a-z]([a-z0-9]{0,7}[a-z])?$"
"""Ports and hosts are called after a role; names of devices have at most 15 bytes."""
OWN = ("name", "address", "number")
"""Names in braces for the own host."""
_RESERVED = re.compile(rf"{'|'.join(OWN)}|artifacts|pair|machine|router|other.*")
_EACH = re.compile(r"\{each ([^{}: ]*)(?: by ([^{}:]+))?: ((?:[^{}]|\{[^{}]*\})*)\}")
_ARGUMENT = "argument"


def is_reserved(role: str) -> bool:
    return _RESERVED.fullmatch(role) is not None


def hosts_of(role: str, count: int) -> Sequence[str]:
    return [role] if count == 1 else [f"{role}{number}" for number in range(1, count + 1)]


def of_host(host: str, number: int) -> dict[str, Level]:
    """Return what ``OWN`` is on a host."""
    return {"name": host, "address": f"{{address:{host}}}", "number": number}


def places(hosts: Mapping[str, Sequence[str]]) -> dict[str, Level]:
    """Return host -> its address, which is filled in once it is known. ``hosts``: by role."""
    return {host: f"{{address:{host}}}" for of_role in hosts.values() for host in of_role}


def plain(text: str) -> str:
    """Return a text without ``{each ...}`` around what it repeats."""
    return _EACH.sub(lambda match: match[3], text)


def texts(text: str, known: Mapping[str, Level], hosts: Mapping[str, Sequence[str]]) -> Iterator[str]:
    """Yield the arguments that a text stands for: one, or one for each host. Raises TemplateError."""
    whole = _EACH.fullmatch(text)
    if whole and whole[2] == _ARGUMENT:
        yield from _repeated(whole, known, hosts)
    else:
        yield filled_in(text, known, hosts)


def filled_in(text: str, known: Mapping[str, Level], hosts: Mapping[str, Sequence[str]]) -> str:
    """Return a text with its names filled in. Raises TemplateError for an unknown name, form or role."""
    made, at = [], 0
    for match in _EACH.finditer(text):
        separator = match[2] or ","
        if separator == _ARGUMENT:
            raise TemplateError(f"{text!r}: by argument needs an argument of its own", match[0])
        joined = (" " if separator == "space" else separator).join(_repeated(match, known, hosts))
        made += [filled(text[at : match.start()], known), joined]
        at = match.end()
    return "".join([*made, filled(text[at:], known)])


def _repeated(match: re.Match[str], known: Mapping[str, Level], hosts: Mapping[str, Sequence[str]]) -> Iterator[str]:
    role = match[1]
    if role not in hosts:
        raise TemplateError(f"{{each {role}: ...}}: {role} is no role", ", ".join(hosts), nearest(role, hosts))
    for number, host in enumerate(hosts[role], start=1):
        yield filled(match[3], {**known, **of_host(host, number)})
