"""The explicit list of every plugin, with those of installed packages.  A new one of ours is its file and a line here."""

from __future__ import annotations

import importlib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import cache
from pathlib import Path

from twinbed.analyses import ANALYSES
from twinbed.backgrounds.stress import stress
from twinbed.backgrounds.traffic import traffic
from twinbed.contracts.analysis import Analysis
from twinbed.contracts.format import Format, FormatError, Measurement
from twinbed.contracts.installed import Both, Each, Extended, Offered, PluginError, every_offered, offered, requirements
from twinbed.contracts.params import WorkloadParams
from twinbed.contracts.plugins import AnyAnalysis, AnyBackground, AnyDriver, AnyInstrument, AnyWorkload, Plugins
from twinbed.imports.text.source import File
from twinbed.imports.text.source import read as read_file
from twinbed.imports.workload import Imported, of_host
from twinbed.instruments.counters import counters
from twinbed.instruments.events import events
from twinbed.instruments.fingerprint import fingerprint
from twinbed.instruments.latency import latency
from twinbed.instruments.monitor import monitor
from twinbed.instruments.packets import packets
from twinbed.instruments.sockets import sockets
from twinbed.instruments.stations import stations
from twinbed.instruments.syscalls import syscalls
from twinbed.metrics import monitor as monitor_metrics
from twinbed.metrics import runs
from twinbed.metrics.derived import FAIRNESS, declared
from twinbed.metrics.metric import Metric
from twinbed.published.printed import table_names
from twinbed.study.catalogue import Catalogue
from twinbed.study.run import Choice
from twinbed.testbeds.container import container
from twinbed.testbeds.fake import fake
from twinbed.testbeds.minimega import minimega
from twinbed.testbeds.mixed import Mixed
from twinbed.testbeds.model import model
from twinbed.testbeds.qemu import qemu
from twinbed.testbeds.remote import remote, uplinked
from twinbed.workloads.command.workload import CommandWorkload
from twinbed.workloads.http import http
from twinbed.workloads.iperf3 import iperf3
from twinbed.workloads.planted import planted
from twinbed.workloads.replay import replay


class Registry(Plugins):
    """The plugins, with the formats and the reader of imported runs."""

    @property
    def formats(self) -> Mapping[str, Format]:
        """Return the formats of files that other tools made."""
        return formats()

    @property
    def read(self) -> Mapping[str, AnyWorkload]:
        """Return the plugins whose artifacts a run may have: workloads, and the reader of imported files."""
        imported = Imported(formats)
        return Both({imported.name: imported}, self.workloads)


FORMATS = (
    *("iperf2", "iperf3", "ab", "wrk", "hey", "siege", "h2load", "ping", "irtt_json", "owping", "powstream", "netperf"),
    *("sockperf", "zeromq", "flent", "tcptrace", "zeek_conn", "suricata_eve", "generic", "capture", "system_calls", "bpftrace"),
    *("vmstat", "mpstat", "proc_snapshot", "ethtool", "nstat", "tc_statistics", "dmesg", "twinbed_metrics"),
)
"""Modules of ``imports/formats``. Where several formats recognise a file, the first one reads it."""


@cache
def own_formats() -> Mapping[str, Format]:
    """Return twinbed's own formats by name."""
    modules = [importlib.import_module(f"twinbed.imports.formats.{name}") for name in FORMATS]
    return {format_.name: format_ for module in modules for format_ in module.FORMATS}


@cache
def formats() -> Mapping[str, Format]:
    """Return every format by its name. They are imported on demand: few results are from other tools."""
    return Extended("formats", own_formats)


def packages_of_formats(names: Iterable[str]) -> Mapping[str, str]:
    """Return which of these formats are of packages: ``formats.NAME`` -> the package and its version. Raises PluginError."""
    return requirements(("formats", name) for name in names if name in formats() and formats()[name])


def read_as(name: str, path: Path, label: str) -> Measurement:
    """Return the one measurement of a host's file in a format; ``label`` is HOST/NAME. Raises FormatError."""
    measurements = read_file(formats()[name], File(path, label), {})
    if len(measurements) != 1:
        raise FormatError(f"holds {len(measurements)} measurements in the format {name}, and one is read")
    if wrong := [note for note in measurements[0].diagnostics if not note.harmless]:
        raise FormatError(str(wrong[0].text), wrong[0].line)
    host = label.partition("/")[0]
    return replace(measurements[0], tables={key: of_host(table, host) for key, table in measurements[0].tables.items()})


_DRIVERS = (
    container,
    qemu,
    Mixed({"container": container, "qemu": qemu, "remote": uplinked}),
    remote,
    minimega,
    model,
    fake,
)
_WORKLOADS = (http, iperf3, planted, replay, CommandWorkload(formats, read_as))
_INSTRUMENTS = (packets, counters, events, syscalls, latency, sockets, stations, monitor, fingerprint)
_BACKGROUNDS = (stress, traffic)
_NAMES = tuple(each.name for kind in (_DRIVERS, _WORKLOADS, _INSTRUMENTS, _BACKGROUNDS) for each in kind)
"""A name belongs to one plugin of any kind."""

PLUGINS = Registry(
    drivers=Extended("drivers", {driver.name: driver for driver in _DRIVERS}, _NAMES),
    workloads=Extended("workloads", {workload.name: workload for workload in _WORKLOADS}, _NAMES),
    instruments=Extended("instruments", {instrument.name: instrument for instrument in _INSTRUMENTS}, _NAMES),
    backgrounds={background.name: background for background in _BACKGROUNDS},
)
_ANALYSES: Extended[AnyAnalysis] = Extended("analyses", {}, ANALYSES)


def analysis(name: str) -> AnyAnalysis:
    """Return an analysis by its name. It is imported on demand: its statistics are slow to load. Raises KeyError if there is
    none, and PluginError if a package's cannot be used."""
    if name not in ANALYSES:
        return _ANALYSES[name]
    module = importlib.import_module(f"twinbed.analyses.{name}.method")
    if not isinstance(module.analysis, Analysis):
        raise TypeError(f"{module.__name__}.analysis is no Analysis")
    return module.analysis


def analysis_command(name: str) -> str:
    """Return what one types for an analysis: ``anatomy``, ``analyse tails``; empty for what is none."""
    if name not in ANALYSES:
        return f"analyse {name}" if name in _ANALYSES else ""
    return name if ANALYSES[name].own_command else f"analyse {name}"


def analysis_names() -> Sequence[str]:
    """Return the names of analyses, in the order of their list, then of those of packages. None of ours is imported."""
    return (*ANALYSES, *_ANALYSES)


def analyses() -> Iterator[AnyAnalysis]:
    """Yield every analysis, in the order of their list."""
    return map(analysis, analysis_names())


def catalogue() -> Catalogue:
    """Return the catalogue of plugins and settings that a study file may name."""
    everything: Mapping[str, AnyDriver | AnyWorkload | AnyInstrument | AnyBackground] = Both(
        Both(PLUGINS.drivers, PLUGINS.workloads), PLUGINS.accompanying
    )
    return Catalogue(
        drivers=Each(PLUGINS.drivers, lambda plugin: plugin.params),
        workloads=Each(PLUGINS.workloads, lambda plugin: plugin.params),
        instruments=Each(PLUGINS.instruments, lambda plugin: plugin.params),
        backgrounds=Each(PLUGINS.backgrounds, lambda plugin: plugin.params),
        summaries=Each(everything, lambda plugin: plugin.summary),
        also=Each(everything, lambda plugin: plugin.also),
        metrics=metrics,
        formats=lambda: {format_.name: [metric.name for metric in format_.metrics] for format_ in formats().values()},
        printed=table_names(),
    )


def metrics(workload: Choice[WorkloadParams], others: Sequence[str]) -> Mapping[str, str]:
    """Return the metrics of runs with these plugins, also per unit of work, and their units."""
    plugin = PLUGINS.workloads[workload.kind]
    described = plugin.described(workload.params)
    work = described.work
    others_metrics = (PLUGINS.accompanying[name].metrics for name in others)
    of_each = (plugin.metrics, described.metrics, *others_metrics, runs.USAGE_METRICS, (runs.OVERLAP,))
    units = {name: metric.unit for metrics in of_each for name, metric in declared(metrics, work).items()}
    return {
        **units,
        FAIRNESS.name: FAIRNESS.unit,
        **{metric.name: metric.unit for metric in (*runs.METRICS, *runs.COMPLETENESS_METRICS, *monitor_metrics.EXTRA_METRICS)},
    }


def of_packages() -> Iterator[tuple[Offered, object]]:
    """Yield each plugin of an installed package; in place of one that cannot be used, the PluginError that says why."""
    kinds: Mapping[str, Mapping[str, object]] = {
        "drivers": PLUGINS.drivers,
        "workloads": PLUGINS.workloads,
        "instruments": PLUGINS.instruments,
        "formats": formats(),
        "analyses": _ANALYSES,
    }
    for offer in every_offered():
        known = kinds[offer.kind]
        assert isinstance(known, Extended)
        try:
            yield offer, known.load(offered(offer.kind)[offer.name])
        except PluginError as error:
            yield offer, error


def every_metric() -> Mapping[str, tuple[Metric, tuple[str, ...]]]:
    """Return every metric by its name, also per unit of work, and the plugins that measure it, for readers."""
    works = dict.fromkeys(workload.work for workload in PLUGINS.workloads.values())
    measured: dict[str, tuple[Metric, tuple[str, ...]]] = {}

    def add(metrics: Mapping[str, Metric], by: str) -> None:
        for name, metric in metrics.items():
            known, measured_by = measured.get(name, (metric, ()))
            measured[name] = known, tuple(dict.fromkeys((*measured_by, by)))

    for workload in PLUGINS.workloads.values():
        add(declared(workload.metrics, workload.work), f"workload {workload.name}")
    for kind, plugins in (("instrument", PLUGINS.instruments), ("background", PLUGINS.backgrounds)):
        for plugin in plugins.values():
            for work in works:
                add(declared(plugin.metrics, work), f"{kind} {plugin.name}")
    for work in works:
        add(declared(runs.USAGE_METRICS, work), "every run")
    add({metric.name: metric for metric in (FAIRNESS, runs.OVERLAP)}, "runs of two or more pairs")
    add({metric.name: metric for metric in (*runs.METRICS, *runs.COMPLETENESS_METRICS)}, "instrument packets")
    add({metric.name: metric for metric in monitor_metrics.EXTRA_METRICS}, "instrument monitor")
    for format_ in formats().values():
        add({metric.name: metric for metric in format_.metrics}, f"files in the format {format_.name}")
    return measured
