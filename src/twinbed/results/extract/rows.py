"""Converts one run's artifacts to rows: values with their declarations, the plugins' own tables, cautions.

If a plugin cannot read its artifacts, only its own values become null, with a caution that gives the reason.
"""

from __future__ import annotations

import contextlib
import json
import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, TypeAlias, TypeVar, cast

from pydantic import ValidationError

from twinbed.contracts.extracted import UNREADABLE, Extracted
from twinbed.contracts.installed import PluginError, state
from twinbed.contracts.params import PluginParams
from twinbed.contracts.plugins import AnyBackground, AnyInstrument, AnyWorkload
from twinbed.contracts.workload import Described
from twinbed.metrics.derived import FAIRNESS, declared
from twinbed.metrics.metric import MOST, Metric, Value, computable
from twinbed.metrics.runs import OVERLAP, USAGE_METRICS
from twinbed.model.caution import Caution, Kind
from twinbed.model.clients import START_SKEW_LIMIT_S, ClientTimes, overlap_share, skew_s
from twinbed.model.drawn import Drawn
from twinbed.model.json import WRONG, Document, Json, integer, parsed, text
from twinbed.model.record import Record, Settings, refused
from twinbed.model.run import Status
from twinbed.model.services import Service
from twinbed.results.extract.cautions import above_link_rate, completeness, hellos_cut
from twinbed.results.extract.condense import condensed
from twinbed.results.extract.derived import derive, fairness, usage, work_done
from twinbed.results.extract.extra import extra
from twinbed.results.extract.kernel import NAME as KERNEL_MESSAGES
from twinbed.results.extract.kernel import kernel_messages
from twinbed.results.extract.pace import pace

if TYPE_CHECKING:
    import pyarrow as pa

RUN_EVENTS = "run_events"
REQUESTS = "requests"
"""The work of workloads whose requests captures show."""

Content = TypeVar("Content", dict[str, dict[str, Json]], list[dict[str, Json]])
Measuring: TypeAlias = AnyInstrument | AnyBackground
T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Readers:
    """The plugins that read artifacts, by name."""

    workloads: Mapping[str, AnyWorkload]
    accompanying: Mapping[str, Measuring]
    """Instruments and background loads."""


@dataclass(slots=True)
class RunRows:
    """The rows of one run; filled while its artifacts are read."""

    record: Record
    key: str
    values: list[tuple[Value, Metric]] = field(default_factory=list)
    tables: list[tuple[str, pa.Table]] = field(default_factory=list)
    cautions: list[Caution] = field(default_factory=list)
    facts: list[tuple[str, str, str]] = field(default_factory=list)
    """(place, fact, value)"""
    applied: list[tuple[str, str, str, str, str]] = field(default_factory=list)
    """(subject, setting, asked, found, source)"""


@dataclass(frozen=True, slots=True)
class KeptRows:
    """The rows of a run without artifacts; ``tables`` have the column ``run``."""

    record: Record
    key: str
    tables: Mapping[str, pa.Table]


@dataclass(frozen=True, slots=True)
class Extraction:
    """The part of a run that one plugin reads."""

    what: str
    """workload, instrument, background load"""
    name: str
    declaration: Described | None = None
    """None if this twinbed has no plugin of that name that it can use."""
    services: Sequence[Service] = ()
    """The services that a workload's clients use."""
    read: Callable[[Path], Extracted] = lambda artifacts: Extracted(())
    """Reads the run's artifacts. Raises ``UNREADABLE`` if they cannot be read."""
    of_all: Callable[[Extracted, Mapping[str, float]], Extracted] = lambda extracted, work: extracted
    """Extrapolates from the sampled hosts to all, by the work of each client."""
    lack: str = ""
    """Why this twinbed cannot use the plugin, and the package that has it."""


Outcome = Callable[[], Extracted]
"""Gives the content that an extraction has read, or raises as ``Extraction.read`` does."""


def extractions(record: Record, plugins: Readers) -> Sequence[Extraction]:
    """Return the extractions of a run, the workload's first. Effects are not divided by the work if this twinbed has no such
    workload. A failed run has none: its values are no measurement."""
    if record.status is not Status.COMPLETE:
        return ()
    settings = record.settings["workload"]
    workload, lack = _plugin(plugins.workloads, "workload", settings, record)
    declaration = Described((), "", "") if workload is None else described(workload, settings)
    others: list[tuple[str, Document, Drawn | None]] = []
    if not any(caution.kind is Kind.MODELLED for caution in record.cautions):
        # A model has no places that an instrument could be put at.
        others += [("instrument", chosen, record.drawn.get(name)) for name, chosen in record.settings["instruments"].items()]
    others += [("background load", chosen, None) for chosen in record.settings.get("background", {}).values()]
    if workload is None:
        first = Extraction("workload", str(settings["kind"]), lack=lack)
    else:
        read = partial(_parse, workload, settings, record.clients)
        first = Extraction("workload", workload.name, declaration, _services(workload, settings), read=read)
    return [
        first,
        *(
            _accompanying(what, *_plugin(plugins.accompanying, what, chosen, record), chosen, first, declaration, drawn)
            for what, chosen, drawn in others
        ),
    ]


def _plugin(known: Mapping[str, T], what: str, settings: Document, record: Record) -> tuple[T | None, str]:
    """Return the plugin of settings; None if it cannot be used, with the reason and the package that the run's record names."""
    kind = text(settings["kind"])
    try:
        plugin = known.get(kind)
    except PluginError as error:
        return None, error.message
    package = record.plugins.get(f"{what}s.{kind}")
    install = f"; the run was made with {package}: pip install {package}" if package else ""
    return plugin, "" if plugin is not None else f"this twinbed has no {what} {kind}{install}"


def _accompanying(
    what: str,
    plugin: Measuring | None,
    lack: str,
    settings: Document,
    of_workload: Extraction,
    workload: Described,
    drawn: Drawn | None,
) -> Extraction:
    if plugin is None:
        return Extraction(what, str(settings["kind"]), lack=lack)
    read = partial(_extract, plugin, settings, of_workload.services if what == "instrument" else None)
    known = Extraction(what, plugin.name, replace(workload, metrics=plugin.metrics), read=read)
    if drawn is None or len(drawn.pairs) == drawn.of:
        return known
    # Hosts are drawn for instruments alone.
    return replace(known, of_all=partial(cast(AnyInstrument, plugin).of_all, drawn))


def _parse(workload: AnyWorkload, settings: Document, clients: Sequence[ClientTimes], artifacts: Path) -> Extracted:
    params = _params(workload, settings)
    if skew_s(clients) > START_SKEW_LIMIT_S:
        return workload.parse_overlap(params, artifacts, clients)
    return workload.parse(params, artifacts)


def _extract(plugin: Measuring, settings: Document, services: Sequence[Service] | None, artifacts: Path) -> Extracted:
    """Read a plugin's artifacts; only an instrument's may depend on the services of the workload."""
    if services is None:
        return plugin.extract(_params(plugin, settings), artifacts)
    return cast(AnyInstrument, plugin).extract_of(_params(plugin, settings), artifacts, services)


def read_run(
    folder: Path,
    record: Record,
    key: str,
    sizes: Mapping[str, int | None],
    extractions: Sequence[Extraction],
    outcomes: Sequence[Outcome],
) -> RunRows:
    """Return everything known about a run; ``outcomes`` belong to ``extractions``. A failed run has no values."""
    rows = RunRows(record, key, cautions=list(record.cautions))
    _facts(folder, rows)
    if not extractions:
        return rows
    for artifact in record.artifacts:
        size = sizes.get(artifact["path"])
        if size != artifact["bytes"]:
            size_now = "is missing" if size is None else f"has {size} bytes"
            rows.cautions.append(
                Caution(Kind.UNREADABLE, f"{artifact['path']} {size_now}, {artifact['bytes']} were recorded", record.id)
            )
    for plugin, package in record.plugins.items():
        if plugin.startswith("formats.") and not state(plugin)[2]:
            detail = f"this twinbed cannot use the format {plugin.partition('.')[2]} of {package}: pip install {package}"
            rows.cautions.append(Caution(Kind.UNREADABLE, detail, record.id))
    pairs = integer(record.settings["topology"].get("pairs", 1))
    work: float | None = None
    work_metric = ""
    requests: float | None = None
    of_each: Mapping[str, float] = {}
    for extraction, outcome in zip(extractions, outcomes, strict=True):
        if extraction.declaration is None:
            rows.cautions.append(Caution(Kind.UNREADABLE, extraction.lack, record.id))
        elif extraction.what == "workload":
            work = _add(rows, extraction.name, extraction.declaration, outcome, folder, None)
            work_metric = extraction.declaration.work
            of_each = _work_of_each(rows, work_metric)
            of_clients = [value for value, _ in rows.values]
            # By turns the study counts requests in its own way, such as only those of one kind.
            requests = work if work_metric == REQUESTS and not any(service.turns for service in extraction.services) else None
            rows.values.extend((value, FAIRNESS) for value in fairness(of_clients, extraction.declaration.rate, pairs))
        else:
            _add(rows, extraction.name, extraction.declaration, _extrapolated(extraction, outcome, of_each), folder, work)
    if len(record.clients) > 1:
        rows.values.append((Value(OVERLAP.name, overlap_share(record.clients), OVERLAP.unit), OVERLAP))
    used = list(usage(record.programs))
    known = declared(USAGE_METRICS, work_metric)
    rows.values.extend((value, known[value.metric]) for value in (*used, *derive(used, known, work_metric, work)))
    try:
        messages = kernel_messages(folder / "artifacts", (f"{artifact['path']}" for artifact in record.artifacts))
        rows.tables.extend([(KERNEL_MESSAGES, messages)] if messages is not None else [])
    except UNREADABLE as error:
        rows.cautions.append(Caution(Kind.UNREADABLE, f"kernel logs: {error}".replace(f"{folder}/", ""), record.id))
    if record.events:
        import pyarrow as pa

        rows.tables.append((RUN_EVENTS, pa.Table.from_pylist([dict(event.to_json()) for event in record.events])))
    lossy = any(caution.kind is Kind.CAPTURE_DROPS for caution in rows.cautions)
    values, cautions = pace(record.id, rows.tables, lossy=lossy)
    rows.values.extend(values)
    rows.cautions.extend(cautions)
    values, cautions = completeness(record.id, rows.tables, requests, of_each, pairs)
    rows.values.extend(values)
    rows.cautions.extend(cautions)
    values, rows.tables = extra(rows.tables, extractions[0].services)
    rows.values.extend(values)
    rows.cautions.extend(hellos_cut(record, rows.tables))
    rows.tables = condensed(rows.tables)
    _without_nonsense(rows)
    rows.cautions.extend(above_link_rate(record, [value for value, _ in rows.values]))
    return rows


def _extrapolated(extraction: Extraction, outcome: Outcome, work: Mapping[str, float]) -> Outcome:
    return lambda: extraction.of_all(outcome(), work)


def _work_of_each(rows: RunRows, work: str) -> Mapping[str, float]:
    """Return host -> the work done from it, if known."""
    known = [value for value, _ in rows.values if value.metric == work and value.host and not value.direction]
    return {value.host: value.value for value in known if value.value is not None}


def _params(plugin: AnyWorkload | Measuring, settings: Document) -> PluginParams:
    return plugin.params.model_validate({name: value for name, value in settings.items() if name != "kind"})


def of_plugins(settings: Settings) -> Mapping[str, Document]:
    """Return the settings that plugins read, by their place in the settings of a run."""
    given = {"workload": settings["workload"]}
    for section, of_section in (("instruments", settings["instruments"]), ("background", settings.get("background", {}))):
        given |= {f"{section}.{name}": own for name, own in of_section.items()}
    return given


def refused_settings(given: Mapping[str, Document], plugins: Readers) -> str | None:
    """Describe which of these settings a plugin of this twinbed refuses; None if all are taken."""
    for where, own in given.items():
        known = plugins.workloads if where == "workload" else plugins.accompanying
        try:
            if (plugin := known.get(text(own["kind"]))) is not None:
                _params(plugin, own)
        except ValidationError as error:
            return f"settings.{where}: {refused(error)} (the {own['kind']} of this twinbed)"
        except PluginError:
            continue  # reported when its artifacts are read
    return None


def described(workload: AnyWorkload, settings: Document) -> Described:
    """Describe a workload; unreadable settings describe nothing, and reading the artifacts reports them."""
    with contextlib.suppress(*UNREADABLE):
        return workload.described(_params(workload, settings))
    return Described(workload.metrics, workload.work, workload.rate)


def _services(workload: AnyWorkload, settings: Document) -> Sequence[Service]:
    with contextlib.suppress(*UNREADABLE):
        return workload.services(_params(workload, settings))
    return ()


def _add(rows: RunRows, name: str, declaration: Described, outcome: Outcome, folder: Path, done: float | None) -> float | None:
    """Add what one plugin has read; return the work done, which the workload itself reports."""
    metrics, work = {metric.name: metric for metric in declaration.metrics}, declaration.work
    try:
        extracted = outcome()
    except UNREADABLE as error:
        # An absolute path would make the same results differ by where they lie.
        detail = f"{name}: {error}".replace(f"{folder}/", "")
        rows.cautions.append(Caution(Kind.UNREADABLE, detail, rows.record.id))
        extracted = Extracted([Value(metric.name, None, metric.unit) for metric in declaration.metrics])
    undeclared = sorted({value.metric for value in extracted.values} - metrics.keys())
    if undeclared:
        raise TypeError(f"{name} gives {', '.join(undeclared)}, which it does not declare")
    if done is None:
        done = work_done(extracted.values, work)
    known = declared(declaration.metrics, work)
    seen: set[tuple[str, str, str]] = set()
    for value in (*extracted.values, *derive(extracted.values, metrics, work, done)):
        place = (value.metric, value.host, value.direction)
        if place in seen:
            raise TypeError(f"{name} gives {value.metric} twice for host {value.host!r} direction {value.direction!r}")
        seen.add(place)
        rows.values.append((value, known[value.metric]))
    rows.tables.extend(extracted.tables.items())
    rows.cautions.extend(caution for caution in extracted.cautions if caution not in rows.cautions)
    return done


def _without_nonsense(rows: RunRows) -> None:
    """Remove values of a size that no measurement has."""
    for at, (value, metric) in enumerate(rows.values):
        if value.value is not None and math.isfinite(value.value) and not computable(value.value):
            detail = f"{value.metric} is {value.value:.3g}: no measurement is above {MOST:g} or below {1 / MOST:g}"
            rows.cautions.append(Caution(Kind.UNREADABLE, detail, rows.record.id))
            rows.values[at] = replace(value, value=None), metric


def finite(value: float | None) -> float | None:
    """Return the value; None if it is not finite."""
    return float(value) if value is not None and math.isfinite(value) else None


def _facts(folder: Path, rows: RunRows) -> None:
    try:
        passport = _json(folder / "passport.json", dict)
        rows.facts.extend((place, fact, _text(value)) for place, facts in passport.items() for fact, value in _flat(facts))
        for item in _json(folder / "applied.json", list):
            rows.applied.append(
                (
                    str(item["subject"]),
                    str(item["setting"]),
                    _text(item["asked"]),
                    _text(item["found"]),
                    str(item.get("source", "")),
                )
            )
    except (OSError, *WRONG) as error:
        rows.cautions.append(Caution(Kind.UNREADABLE, f"passport.json or applied.json: {error}", rows.record.id))


def _json(file: Path, kind: type[Content]) -> Content:
    try:
        data = parsed(file.read_bytes())
    except FileNotFoundError:
        return kind()
    if not isinstance(data, kind):
        raise ValueError(f"{file.name} is not a JSON {'object' if kind is dict else 'list'}")
    return data


def _flat(facts: Mapping[str, object], prefix: str = "") -> Iterator[tuple[str, object]]:
    """Yield nested facts (offloads of an interface) as ``name.inner``."""
    for name, value in facts.items():
        if isinstance(value, Mapping):
            yield from _flat(value, f"{prefix}{name}.")
        else:
            yield f"{prefix}{name}", value


def _text(value: object) -> str:
    return value if isinstance(value, str) else json.dumps(value, sort_keys=True, ensure_ascii=False)
