"""Format ``tc-s``: queueing disciplines and their counts, of ``tc -s qdisc``, as text or with ``-j``, and ``tc -s class``.

Settings of each device are facts (``qdisc.eth0.root``: tbf rate 1Mbit ..., ``class.1:10``: htb rate ...), except the default of
devices without a queue.  Counts are since a discipline was made, so one output has no values, only the table ``counters``.
With several outputs in a file, one after another, the differences from the first to the last are values: sums over the
disciplines at the roots, which count packets that the disciplines below them drop.

Limits: text and JSON write the same settings in different units.  With a device given (``show dev eth0``), and for classes
always, tc does not print the device, so two such outputs may be of two devices.  They are before a run and after it only with
``before_and_after: true`` in the manifest.  Source: tc(8) and its own output.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass

from twinbed.contracts.format import Diagnostic, Format, FormatError, Measurement, Source
from twinbed.imports.text.counter_deltas import CounterDelta, counter_deltas, counter_table, resets, summed
from twinbed.imports.text.documents import documents, line_of
from twinbed.imports.text.figures import count, unread
from twinbed.metrics.metric import Layer, Metric, Value
from twinbed.model.json import Document, Json

_TEXT = re.compile(
    rb"(?:[^\n]{0,200}\n)?\s*"
    rb"(?:qdisc [a-z_0-9]+ [0-9a-f]+:|class [a-z_0-9]+ [0-9a-f]*:[0-9a-f]+) (?:dev \S+ )?(?:root|parent)\b[^\n]*\r?\n"
    rb"[ \t]+(?:Sent \d+ bytes|\(dropped \d)"
)
"""The command may stand before it."""
_JSON = re.compile(rb'\s*\[\s*\{\s*"kind"\s*:\s*"[a-z_0-9]+"\s*,\s*"handle"\s*:.*?"(?:bytes|packets)"\s*:', re.DOTALL)
_ONE = re.compile(
    r"(?P<what>qdisc|class) (?P<kind>[a-z_0-9]+) (?P<handle>[0-9a-f]*:[0-9a-f]*) (?:dev (?P<device>\S{1,64}) )?"
    r"(?:root|parent (?P<parent>\S{1,64}))(?P<settings>(?: .*)?)"
)
_SENT = re.compile(
    r"\s+Sent (\d{1,18}) bytes (\d{1,18}) pkt \(dropped (\d{1,18}), overlimits (\d{1,18}) requeues (\d{1,18})\)\s*"
)
_COUNTS = ("sent_bytes", "sent_packets", "dropped", "overlimits", "requeues")
_JSON_COUNTS = dict(zip(_COUNTS, ("bytes", "packets", "drops", "overlimits", "requeues"), strict=True))
_NO_SETTING = re.compile(r" ?\b(?:refcnt \d+(?: bands \d+)?|direct_packets_stat \d+|leaf [0-9a-f]+:|offloaded\b)")
_GIVEN_BY_KERNEL = re.compile(r"0|[89a-e][0-9a-f]{3}|f[0-9a-e][0-9a-f]{2}")
"""Handles that the kernel chose: 0 or, counted up, 8001 and so on; ffff is the ingress."""
_DEFAULT = "noqueue"
_OF_ONE_DEVICE = (
    "does not print the device, so its outputs may be from several devices; set before_and_after if they are from one"
)


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
    """``device`` is empty where it is not printed. ``place``: root, a discipline's handle or parent, a class's id.

    ``handle`` is with the kind: where either changes, the discipline was made again.
    """

    what: str
    device: str
    place: str
    handle: str
    settings: str
    counts: Mapping[str, int]

    @property
    def name(self) -> str:
        return f"{self.device}.{self.place}" if self.device else self.place


def _recognises(head: bytes) -> bool:
    return _TEXT.match(head) is not None or _JSON.match(head) is not None


def _read(source: Source, options: Document) -> Sequence[Measurement]:
    text = source.text()
    diagnostics: list[Diagnostic] = []
    disciplines = _of_json(text, diagnostics) if text.lstrip().startswith("[") else list(_of_text(text, diagnostics))
    if not disciplines:
        raise FormatError("has no queueing discipline that can be read")
    before_and_after = options.get("before_and_after") is True
    outputs = _outputs([discipline for discipline in disciplines if discipline.what == "qdisc"])
    classes = _outputs([discipline for discipline in disciplines if discipline.what == "class"])
    facts: dict[str, str] = {}
    deltas: dict[str, CounterDelta] = {}
    values: list[Value] = []
    for several in (outputs, classes):
        if (
            len(several) > 1
            and not before_and_after
            and not all(discipline.device for output in several for discipline in output)
        ):
            diagnostics.append(Diagnostic(_OF_ONE_DEVICE))
            continue
        facts |= {
            f"{discipline.what}.{discipline.name}": discipline.settings
            for discipline in (several or [[]])[-1]
            if discipline.settings
        }
        remade = _remade(several)
        diagnostics += [Diagnostic(f"{name} was replaced between the outputs, and counted from 0 again") for name in remade]
        of_these = counter_deltas([dict(_keys(output, remade)) for output in several])
        deltas |= of_these
        if len(several) > 1 and several is outputs:
            roots = [_key(discipline, remade) for discipline in outputs[-1] + outputs[0] if discipline.place == "root"]
            for name, metric in _METRICS.items():
                values.append(summed(of_these, metric, dict.fromkeys(f"{root}.{name}" for root in roots)))
    return [Measurement(values, {"counters": counter_table("tc -s", deltas)}, (), [*diagnostics, *resets(deltas)], facts)]


def _remade(outputs: Sequence[Sequence[_Discipline]]) -> list[str]:
    """Return the names of disciplines that another has replaced."""
    handles: dict[str, set[str]] = {}
    for discipline in (discipline for output in outputs for discipline in output):
        handles.setdefault(discipline.name, set()).add(discipline.handle)
    return [name for name, own in handles.items() if len(own) > 1]


def _key(discipline: _Discipline, remade: Collection[str]) -> str:
    """Return the key of a discipline, as the instrument ``counters`` writes it: ``tc:eth0.root``."""
    what = "" if discipline.what == "qdisc" else f"{discipline.what}."
    return f"tc:{what}{discipline.name}" + (f"({discipline.handle})" if discipline.name in remade else "")


def _keys(output: Sequence[_Discipline], remade: Collection[str]) -> Iterator[tuple[str, int]]:
    for discipline in output:
        yield from ((f"{_key(discipline, remade)}.{name}", value) for name, value in discipline.counts.items())


def _outputs(disciplines: Sequence[_Discipline]) -> list[list[_Discipline]]:
    """Split disciplines into outputs: one that is there already begins the next."""
    outputs: list[list[_Discipline]] = []
    for discipline in disciplines:
        if not outputs or any(discipline.name == other.name for other in outputs[-1]):
            outputs.append([])
        outputs[-1].append(discipline)
    return outputs


def _of_text(text: str, diagnostics: list[Diagnostic]) -> Iterator[_Discipline]:
    named: re.Match[str] | None = None
    for number, line in enumerate(text.split("\n"), 1):
        if line.startswith(("qdisc ", "class ", "filter ")):
            named = _ONE.fullmatch(line.rstrip())
            if named is None and not line.startswith("filter "):
                diagnostics.append(unread(line, number, "is not a readable queueing discipline"))
        elif line.lstrip().startswith("Sent ") and named is not None:
            sent = _SENT.fullmatch(line)
            if sent is None:
                diagnostics.append(unread(line, number, "has no counts that can be read"))
            else:
                yield _named(named, dict(zip(_COUNTS, map(int, sent.groups()), strict=True)))
            named = None


def _named(match: re.Match[str], counts: Mapping[str, int]) -> _Discipline:
    is_class = match["what"] == "class"
    place = match["handle"] if is_class else _place(match["handle"], match["parent"])
    settings = _NO_SETTING.sub("", match["settings"]).strip()
    return _Discipline(
        match["what"],
        match["device"] or "",
        place,
        f"{match['kind']} {match['handle']}",
        _settings(match["kind"], settings, is_class),
        counts,
    )


def _place(handle: str, parent: str | None) -> str:
    """Return a place that stays the same when a discipline is made again."""
    if parent is None:
        return "root"
    own = handle.removesuffix(":")
    return parent if _GIVEN_BY_KERNEL.fullmatch(own) else own


def _settings(kind: str, settings: str, is_class: bool) -> str:
    """Return settings as a fact; empty for classes without settings: flows of fq_codel are classes too, and come and go."""
    return "" if kind == _DEFAULT or (is_class and not settings) else f"{kind} {settings}".strip()


def _of_json(text: str, diagnostics: list[Diagnostic]) -> list[_Discipline]:
    disciplines: list[_Discipline] = []
    end = 0
    for document, end in documents(text):
        for element in document if isinstance(document, list) else []:
            discipline = _discipline(element)
            if discipline is None:
                diagnostics.append(Diagnostic("has a queueing discipline that cannot be read", line_of(text, end)))
            else:
                disciplines.append(discipline)
    if text[end:].strip():
        diagnostics.append(Diagnostic("ends early, or is damaged", line_of(text, end)))
    return disciplines


def _discipline(element: Json) -> _Discipline | None:
    if not isinstance(element, dict):
        return None
    kind, handle, device = element.get("kind"), element.get("handle"), element.get("dev", "")
    parent = None if element.get("root") is True else element.get("parent")
    numbers = {name: element.get(key) for name, key in _JSON_COUNTS.items()}
    counts = {name: count(str(number)) for name, number in numbers.items() if not isinstance(number, bool)}
    known = {name: number for name, number in counts.items() if number is not None}
    if not all(isinstance(text, str) for text in (kind, handle, device)) or len(known) < len(_COUNTS):
        return None
    if not isinstance(parent, str) and element.get("root") is not True:
        return None
    settings = element.get("options")
    given = settings.items() if isinstance(settings, dict) else ()
    text = " ".join(f"{name} {value}" for name, value in given if name != "direct_packets_stat")
    own = f"{kind} {handle}"
    return _Discipline("qdisc", str(device), _place(str(handle), parent), own, _settings(str(kind), text, False), known)


FORMATS = (
    Format("tc-s", "queueing disciplines and their drops, from tc -s qdisc", tuple(_METRICS.values()), _recognises, _read),
)
