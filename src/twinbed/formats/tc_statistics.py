"""Format ``tc-s``: queueing disciplines and what they counted, of ``tc -s qdisc``, as text or with ``-j``.

What shapes each device is a fact (``qdisc.eth0.root``: tbf rate 1Mbit ...), but for the default of devices without a queue.
Counts are since a discipline was made, so one output has no values, only the table ``counters``.  Of several outputs in a
file, one after another, the differences from the first to the last are values: sums over the disciplines at the roots, which
count what those below them drop.

Limits: text and JSON write the same settings in different units.  Source: tc(8) and its own output.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from twinbed.model.format import Flaw, FormatError, Reading, Source
from twinbed.model.metric import Layer, Metric, Value
from twinbed.reading.counted import differences, flaws, summed, table
from twinbed.reading.documents import documents, line_of
from twinbed.reading.figures import count

_TEXT = re.compile(rb"\s*qdisc [a-z_0-9]+ [0-9a-f]+: (?:dev \S+ )?(?:root|parent)\b[^\n]*\r?\n[ \t]+Sent \d+ bytes")
_JSON = re.compile(rb'\s*\[\s*\{\s*"kind"\s*:\s*"[a-z_0-9]+"\s*,\s*"handle"\s*:[^\]]*"(?:bytes|packets)"\s*:', re.DOTALL)
_QDISC = re.compile(r"qdisc (?P<kind>[a-z_0-9]+) (?P<handle>[0-9a-f]+:) dev (?P<device>\S{1,64}) (?P<rest>(?:root|parent)\b.*)")
_SENT = re.compile(
    r"\s+Sent (\d{1,18}) bytes (\d{1,18}) pkt \(dropped (\d{1,18}), overlimits (\d{1,18}) requeues (\d{1,18})\)\s*"
)
_COUNTS = ("sent_bytes", "sent_packets", "dropped", "overlimits", "requeues")
_JSON_COUNTS = dict(zip(_COUNTS, ("bytes", "packets", "drops", "overlimits", "requeues"), strict=True))
_NO_SETTING = re.compile(r" ?\b(?:refcnt \d+(?: bands \d+)?|direct_packets_stat \d+|offloaded)\b")
_DEFAULT = "noqueue"


def _metric(name: str, unit: str, description: str) -> Metric:
    return Metric(name, unit, Layer.NETWORK, f"{description} the queueing disciplines at the devices' roots", extensive=True)


_METRICS = {
    "sent_bytes": _metric("qdisc_sent_bytes", "bytes", "bytes of frames sent by"),
    "sent_packets": _metric("qdisc_sent_packets", "1", "packets sent by"),
    "dropped": _metric("qdisc_dropped_packets", "1", "packets dropped by"),
    "overlimits": _metric("qdisc_overlimits", "1", "times that packets had to wait in"),
    "requeues": _metric("qdisc_requeues", "1", "times that a device gave packets back to"),
}


@dataclass(frozen=True, slots=True)
class _Discipline:
    """``place``: root, or its handle."""

    device: str
    place: str
    kind: str
    settings: str
    counts: Mapping[str, int]


class TcStatistics:
    """The format."""

    name = "tc-s"
    summary = "queueing disciplines and their drops, of tc -s qdisc"
    metrics: Sequence[Metric] = tuple(_METRICS.values())
    work = ""
    rate = ""

    def recognises(self, head: bytes) -> bool:
        return _TEXT.match(head) is not None or _JSON.match(head) is not None

    def read(self, source: Source, options: Mapping[str, Any]) -> Sequence[Reading]:
        text = source.text()
        unread: list[Flaw] = []
        outputs = _of_json(text, unread) if text.lstrip().startswith("[") else _of_text(text, unread)
        if not outputs:
            raise FormatError("has no queueing discipline that can be read")
        facts = {
            f"qdisc.{each.device}.{each.place}": f"{each.kind} {each.settings}".strip()
            for each in outputs[-1]
            if each.kind != _DEFAULT
        }
        found = differences([dict(_keys(output)) for output in outputs])
        values: list[Value] = []
        if len(outputs) > 1:
            for name, metric in _METRICS.items():
                values.append(summed(found, metric, [key for key in found if key.endswith(f".root.{name}")]))
        return [Reading(values, {"counters": table("tc -s qdisc", found)}, (), [*unread, *flaws(found)], facts)]


def _keys(output: Sequence[_Discipline]) -> Iterator[tuple[str, int]]:
    """As the instrument ``counters`` calls them: ``tc:eth0.root.dropped``."""
    for each in output:
        yield from ((f"tc:{each.device}.{each.place}.{name}", value) for name, value in each.counts.items())


def _add(outputs: list[list[_Discipline]], found: _Discipline) -> None:
    """A discipline that there is already begins another output."""
    if not outputs or any((each.device, each.place) == (found.device, found.place) for each in outputs[-1]):
        outputs.append([])
    outputs[-1].append(found)


def _of_text(text: str, unread: list[Flaw]) -> list[list[_Discipline]]:
    outputs: list[list[_Discipline]] = []
    named: re.Match[str] | None = None
    for number, line in enumerate(text.split("\n"), 1):
        if line.startswith(("qdisc ", "class ", "filter ")):
            named = _QDISC.fullmatch(line.rstrip())
            if named is None:
                unread.append(Flaw(f"is no queueing discipline that can be read: {line.strip()[:80]!r}", number))
        elif line.lstrip().startswith("Sent ") and named is not None:
            sent = _SENT.fullmatch(line)
            if sent is None:
                unread.append(Flaw(f"are no counts that can be read: {line.strip()[:80]!r}", number))
            else:
                counts = dict(zip(_COUNTS, map(int, sent.groups()), strict=True))
                _add(outputs, _named(named, counts))
            named = None
    return outputs


def _named(found: re.Match[str], counts: Mapping[str, int]) -> _Discipline:
    where, _, rest = found["rest"].partition(" ")
    is_root = where == "root"
    settings = rest if is_root else rest.partition(" ")[2]
    place = "root" if is_root else found["handle"].removesuffix(":")
    return _Discipline(found["device"], place, found["kind"], _NO_SETTING.sub("", settings).strip(), counts)


def _of_json(text: str, unread: list[Flaw]) -> list[list[_Discipline]]:
    outputs: list[list[_Discipline]] = []
    end = 0
    for document, end in documents(text):
        for each in document if isinstance(document, list) else []:
            found = _discipline(each)
            if found is None:
                unread.append(Flaw("has a queueing discipline that cannot be read", line_of(text, end)))
            else:
                _add(outputs, found)
    if text[end:].strip():
        unread.append(Flaw("ends early, or is damaged", line_of(text, end)))
    return outputs


def _discipline(each: Any) -> _Discipline | None:
    if not isinstance(each, dict):
        return None
    kind, handle, device = each.get("kind"), each.get("handle"), each.get("dev")
    numbers = {name: each.get(key) for name, key in _JSON_COUNTS.items()}
    counts = {name: count(str(number)) for name, number in numbers.items() if not isinstance(number, bool)}
    known = {name: number for name, number in counts.items() if number is not None}
    if not isinstance(kind, str) or not isinstance(handle, str) or not isinstance(device, str) or len(known) < len(_COUNTS):
        return None
    settings = each.get("options")
    given = settings.items() if isinstance(settings, dict) else ()
    text = " ".join(f"{name} {value}" for name, value in given if name != "direct_packets_stat")
    return _Discipline(device, "root" if each.get("root") is True else handle.removesuffix(":"), kind, text, known)


tc_statistics = TcStatistics()
