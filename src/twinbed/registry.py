"""The explicit list of every plugin.  A new one is its file and a line here."""

from __future__ import annotations

import importlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import cache
from pathlib import Path

from twinbed.analyses import ANALYSES
from twinbed.backgrounds.stress import stress
from twinbed.backgrounds.traffic import traffic
from twinbed.contracts.analysis import Analysis
from twinbed.contracts.format import Format, FormatError, Measurement
from twinbed.contracts.params import WorkloadParams
from twinbed.contracts.plugins import AnyAnalysis, AnyWorkload, Plugins
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
from twinbed.workloads.command import CommandWorkload
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
        return {**self.workloads, imported.name: imported}


FORMATS = (
    *("iperf2", "iperf3", "ab", "wrk", "hey", "siege", "h2load", "ping", "irtt_json", "owping", "powstream", "netperf"),
    *("sockperf", "zeromq", "flent", "tcptrace", "zeek_conn", "suricata_eve", "generic", "capture", "system_calls", "bpftrace"),
    *("vmstat", "mpstat", "proc_snapshot", "ethtool", "nstat", "tc_statistics", "dmesg", "twinbed_metrics"),
)
"""Modules of ``imports/formats``. Where several formats recognise a file, the first one reads it."""


class Formats(dict[str, Format]):
    """All formats by their names. Other processes get the name of this function and import the formats themselves."""

    def __reduce__(self) -> tuple[Callable[[], Mapping[str, Format]], tuple[()]]:
        return formats, ()


@cache
def formats() -> Mapping[str, Format]:
    """Return every format by its name. They are imported on demand: few results are from other tools."""
    modules = [importlib.import_module(f"twinbed.imports.formats.{name}") for name in FORMATS]
    return Formats((format_.name, format_) for module in modules for format_ in module.FORMATS)


def read_as(name: str, path: Path, label: str) -> Measurement:
    """Return the one measurement of a host's file in a format; ``label`` is HOST/NAME. Raises FormatError."""
    measurements = read_file(formats()[name], File(path, label), {})
    if len(measurements) != 1:
        raise FormatError(f"holds {len(measurements)} measurements in the format {name}, and one is read")
    if wrong := [note for note in measurements[0].diagnostics if not note.harmless]:
        raise FormatError(str(wrong[0].text), wrong[0].line)
    host = label.partition("/")[0]
    return replace(measurements[0], tables={key: of_host(table, host) for key, table in measurements[0].tables.items()})


PLUGINS = Registry(
    drivers={
        driver.name: driver
        for driver in (
            container,
            qemu,
            Mixed({"container": container, "qemu": qemu, "remote": uplinked}),
            remote,
            minimega,
            model,
            fake,
        )
    },
    workloads={workload.name: workload for workload in (http, iperf3, planted, replay, CommandWorkload(formats, read_as))},
    instruments={
        instrument.name: instrument
        for instrument in (packets, counters, events, syscalls, latency, sockets, stations, monitor, fingerprint)
    },
    backgrounds={background.name: background for background in (stress, traffic)},
)


def analysis(name: str) -> AnyAnalysis:
    """Return an analysis by its name. It is imported on demand: its statistics are slow to load."""
    if name not in ANALYSES:
        raise KeyError(name)
    module = importlib.import_module(f"twinbed.analyses.{name}.method")
    if not isinstance(module.analysis, Analysis):
        raise TypeError(f"{module.__name__}.analysis is no Analysis")
    return module.analysis


def analysis_command(name: str) -> str:
    """Return what one types for an analysis: ``anatomy``, ``analyse tails``; empty for what is none."""
    entry = ANALYSES.get(name)
    return "" if entry is None else name if entry.own_command else f"analyse {name}"


def analysis_names() -> Sequence[str]:
    """Return the names of analyses, in the order of their list, without importing them."""
    return tuple(ANALYSES)


def analyses() -> Iterator[AnyAnalysis]:
    """Yield every analysis, in the order of their list."""
    return map(analysis, ANALYSES)


def catalogue() -> Catalogue:
    """Return the catalogue of plugins and settings that a study file may name."""
    everything = {**PLUGINS.drivers, **PLUGINS.workloads, **PLUGINS.accompanying}
    return Catalogue(
        drivers={name: plugin.params for name, plugin in PLUGINS.drivers.items()},
        workloads={name: plugin.params for name, plugin in PLUGINS.workloads.items()},
        instruments={name: plugin.params for name, plugin in PLUGINS.instruments.items()},
        backgrounds={name: plugin.params for name, plugin in PLUGINS.backgrounds.items()},
        summaries={name: plugin.summary for name, plugin in everything.items()},
        also={name: plugin.also for name, plugin in everything.items()},
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
