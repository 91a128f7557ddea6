"""JSON of ``twinbed-probe fingerprint``: answers to HTTP requests, ICMP and ARP, and the machine's own facts.

Limit: an answer is kept up to 64 KiB; a longer body's digest is of the kept part.
"""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Iterator, Sequence
from itertools import pairwise

from twinbed.model.json import Document, Json, loads
from twinbed.readers.fingerprint.feature import Feature, moments, number, word

STEP = 1024
"""The largest step of an IP identification that counts up."""
_DIGITS = 16


def http(host: str, content: bytes) -> list[Feature]:
    """Return of each request: status, names of the header fields in their order and case, body. Raises ValueError."""
    document = _document(content)
    features: list[Feature] = []
    for request in _list(document, "answers"):
        if not isinstance(request, dict):
            raise ValueError(f"answers holds {request!r}, expected objects")
        name, answer = f"http_{_text(request, 'request')}", request.get("answer")
        features += _answer(host, name, answer.encode("latin-1") if isinstance(answer, str) else None)
        features.append(word("active", host, f"{name}_end", _text(request, "end") if isinstance(answer, str) else None))
    times_s = [_number(time_s) for time_s in _list(document, "times_s")]
    return [*features, *moments("active", host, "http_time", "_s", times_s)]


def _answer(host: str, name: str, answer: bytes | None) -> Iterator[Feature]:
    """Yield an answer's features. One without a head (HTTP/0.9) is a body alone; no answer is null."""
    head, separator, body = (answer or b"").partition(b"\r\n\r\n")
    lines = head.decode("latin-1").split("\r\n")
    if answer and not head.startswith(b"HTTP/"):
        separator, body, lines = b"", answer, [""]
    status = lines[0] if separator else None
    fields = [line.partition(":") for line in lines[1:]] if separator else []
    code = status.split(" ")[1] if status and status.count(" ") else ""
    yield Feature("active", host, f"{name}_status", status, float(code) if code.isdecimal() else None, 1)
    yield word("active", host, f"{name}_header_order", ",".join(field for field, _, _ in fields) if separator else None)
    servers = [value.strip() for field, _, value in fields if field.lower() == "server"]
    yield word("active", host, f"{name}_server", servers[0] if servers else None)
    digest = hashlib.sha256(body).hexdigest()[:_DIGITS] if answer else None
    yield Feature("active", host, f"{name}_body", digest, float(len(body)) if answer else None, 1)


def link(host: str, content: bytes) -> list[Feature]:
    """Return features of ICMP and ARP. Raises ValueError."""
    document = _document(content)
    features: list[Feature] = []
    echoes = document.get("echoes")
    if isinstance(echoes, list):
        replies = [echo for echo in echoes if isinstance(echo, dict)]
        count = len(replies)
        features.append(number("active", host, "icmp_replies", float(count), count))
        for name, field in (("icmp_ttl", "ttl"), ("icmp_tos", "type_of_service"), ("icmp_code", "code")):
            features.append(number("active", host, name, _most([_number(reply.get(field)) for reply in replies]), count))
        fragment = [float(reply.get("dont_fragment") is True) for reply in replies]
        features.append(number("active", host, "icmp_df", _most(fragment), count))
        features.append(word("active", host, "icmp_ip_id", identifications([_number(e.get("ip_id")) for e in replies]), count))
        features += moments("active", host, "icmp_delay", "_s", [_number(reply.get("delay_s")) for reply in replies])
    answered = document.get("timestamp_answered")
    features.append(number("active", host, "icmp_timestamp", float(answered) if isinstance(answered, bool) else None))
    arp = document.get("arp")
    if isinstance(arp, list):
        replies = [reply for reply in arp if isinstance(reply, dict)]
        features.append(number("active", host, "arp_replies", float(len(replies)), len(replies)))
        sizes = [_number(reply.get("bytes")) for reply in replies]
        features.append(number("active", host, "arp_reply_bytes", _most(sizes), len(replies)))
        features += moments("active", host, "arp_delay", "_s", [_number(reply.get("delay_s")) for reply in replies])
    return features


def refused(content: bytes) -> list[str]:
    """Return the requests to a neighbour that were refused."""
    return [str(request) for request in _list(_document(content), "refused")]


def identifications(ids: Sequence[float]) -> str | None:
    """Return zero, same, increasing, random or mixed: the kind of nine of ten; None for fewer than two."""
    if len(ids) < 2:
        return None
    steps = [int(after - before) % 2**16 for before, after in pairwise(ids)]
    kinds = Counter("same" if step == 0 else "increasing" if step <= STEP else "random" for step in steps)
    kind, count = kinds.most_common(1)[0]
    if sum(identification == 0 for identification in ids) >= 0.9 * len(ids):
        return "zero"
    return kind if count >= 0.9 * len(steps) else "mixed"


def machine(host: str, content: bytes) -> list[Feature]:
    """Return features of the host itself. Raises ValueError."""
    document = _document(content)
    hypervisor = document.get("cpuid_hypervisor")
    features = [number("host", host, "cpuid_hypervisor", float(hypervisor) if isinstance(hypervisor, bool) else None)]
    for name in ("cpuid_hypervisor_vendor", "cpu_vendor", "cpu_model", "clock_source"):
        features.append(word("host", host, name, _optional_text(document, name)))
    for name in ("cpu_flags", "pci_ids", "block_devices"):
        values = document.get(name)
        words = [str(value) for value in values] if isinstance(values, list) else None
        features.append(Feature("host", host, name, None if words is None else " ".join(words), _count(words), 1))
    for pair in _list(document, "dmi"):
        if not isinstance(pair, list) or len(pair) != 2:
            raise ValueError(f"dmi holds {pair!r}, expected a name and a value")
        name, value = pair
        features.append(word("host", host, f"dmi_{name}", value if isinstance(value, str) else None))
    devices = [device for device in _list(document, "net_devices") if isinstance(device, dict) and device.get("name") != "lo"]
    for name, field in (("net_devices", "name"), ("net_drivers", "driver"), ("net_mac_vendors", "mac_vendor")):
        features.append(word("host", host, name, " ".join(str(device.get(field) or "-") for device in devices) or None))
    costs = ("timer_cost_s", "rdtsc_cost_s", "cpuid_cost_s")
    return [*features, *(number("host", host, name, _number(document.get(name)), 101) for name in costs)]


def _count(words: Sequence[str] | None) -> float | None:
    return None if words is None else float(len(words))


def _most(values: Sequence[float]) -> float | None:
    """Return the most frequent value, the first of several."""
    return Counter(values).most_common(1)[0][0] if values else None


def _document(content: bytes) -> Document:
    try:
        document = loads(content)
    except ValueError as error:
        raise ValueError(f"no JSON of twinbed-probe's: {error}") from error
    if not isinstance(document, dict):
        raise ValueError("no JSON object of twinbed-probe's")
    return document


def _list(document: Document, name: str) -> Sequence[Json]:
    value = document.get(name)
    if not isinstance(value, list):
        raise ValueError(f"{name} is {value!r}, expected a list")
    return value


def _text(document: Document, name: str) -> str:
    value = document.get(name)
    if not isinstance(value, str):
        raise ValueError(f"{name} is {value!r}, expected a text")
    return value


def _optional_text(document: Document, name: str) -> str | None:
    value = document.get(name)
    return value if isinstance(value, str) else None


def _number(value: Json) -> float:
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise ValueError(f"{value!r} is no number")
    return float(value)
