"""nmap's XML report of one host (``-O -sV -vv -oX``) -> features.

``nmap_os`` is the first of the systems that nmap names, with its accuracy in per cent; ``nmap_service`` a service that listens.
The others are the lines of the fingerprint (nmap's book, chapter 8): each field of SEQ, and each other test as a whole.  The
line SCAN is left out: it has the time, place and target of the scan.

Source: nmap.dtd 1.05.  Limit: XML that nmap did not end (it was cut off, or the time was up) raises ValueError.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from xml.etree import ElementTree

from twinbed.readers.fingerprint.feature import Feature, number, word

PROBES = 16
"""Packets that nmap sends for one fingerprint: six SYNs, two echoes, ECN, T2 to T7, U1."""
MOST_BYTES = 4 * 2**20
_TEST = re.compile(r"([A-Z][A-Z0-9]*)\(([^()]*)\)")
_NUMBERS = frozenset({"SP", "GCD", "ISR"})
"""Fields of SEQ that are hexadecimal numbers."""


def read(host: str, report: bytes) -> list[Feature]:
    """Return the features of a report on ``host``. Raises ValueError for anything else."""
    return list(_features(host, _root(report)))


def _root(report: bytes) -> ElementTree.Element:
    if len(report) > MOST_BYTES:
        raise ValueError(f"{len(report)} bytes are too many for a report of nmap's on one host")
    # Entities are the only way in which XML grows; nmap declares none.
    if b"<!ENTITY" in report:
        raise ValueError("no report of nmap's: it declares entities")
    try:
        root = ElementTree.fromstring(report)
    except ElementTree.ParseError as error:
        raise ValueError(f"no XML of nmap's: {error}") from error
    finished = root.find("runstats/finished")
    if root.tag != "nmaprun" or finished is None:
        raise ValueError("no report of nmap's: it has no <nmaprun> with <finished>")
    if finished.get("exit") != "success":
        raise ValueError(f"nmap failed: {finished.get('errormsg', 'it does not say why')}")
    return root


def _features(host: str, root: ElementTree.Element) -> Iterator[Feature]:
    answers = root.find("host")
    if answers is None or answers.get("timedout") == "true":
        raise ValueError("nmap's time was up before it had looked at the host")
    best = answers.find("os/osmatch")
    accuracy = float(best.get("accuracy", "nan")) if best is not None else None
    yield Feature("active", host, "nmap_os", None if best is None else best.get("name"), accuracy, PROBES)
    for service in answers.findall("ports/port/service"):
        if service.get("method") == "probed":
            known = (service.get(part) for part in ("name", "product", "version", "extrainfo"))
            yield word("active", host, "nmap_service", " ".join(name for name in known if name))
    yield from _tests(host, answers)
    for element, name in (("tcpsequence", "difficulty"), ("ipidsequence", "class"), ("tcptssequence", "class")):
        sequence = answers.find(element)
        yield word("active", host, f"nmap_{element}", None if sequence is None else sequence.get(name), 6)
    distance = answers.find("distance")
    yield number("active", host, "nmap_hops", None if distance is None else float(distance.get("value", "nan")))


def _tests(host: str, answers: ElementTree.Element) -> Iterator[Feature]:
    fingerprint = answers.find("os/osfingerprint")
    # The text is in lines of 70 characters that begin with OS:.
    text = (
        ""
        if fingerprint is None
        else "".join(line.removeprefix("OS:") for line in fingerprint.get("fingerprint", "").splitlines())
    )
    for name, fields in _TEST.findall(text):
        if name == "SEQ":
            yield from _sequence(host, fields)
        elif name != "SCAN":
            yield word("active", host, f"nmap_{name.lower()}", fields)


def _sequence(host: str, fields: str) -> Iterator[Feature]:
    for part in fields.split("%"):
        field, _, value = part.partition("=")
        name = f"nmap_seq_{field.lower()}"
        if field in _NUMBERS and re.fullmatch(r"[0-9A-F]{1,8}", value):
            yield number("active", host, name, float(int(value, 16)), 6)
        else:
            yield word("active", host, name, value, 6)
