"""The explicit list of every plugin.  A new one is its file and a line here."""

from __future__ import annotations

import importlib
from collections.abc import Iterator, Mapping, Sequence
from functools import cache

from twinbed.analyses import ANALYSES
from twinbed.backgrounds.stress import stress
from twinbed.backgrounds.traffic import traffic
from twinbed.contracts.analysis import Analysis
from twinbed.contracts.format import Format
from twinbed.contracts.plugins import AnyAnalysis, AnyWorkload, Plugins
from twinbed.imports.workload import Imported
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
from twinbed.testbeds.container import container
from twinbed.testbeds.fake import fake
from twinbed.testbeds.minimega import minimega
from twinbed.testbeds.mixed import Mixed
from twinbed.testbeds.model import model
from twinbed.testbeds.qemu import qemu
from twinbed.testbeds.remote import remote, uplinked
from twinbed.workloads.http import http
from twinbed.workloads.iperf3 import iperf3
from twinbed.workloads.planted import planted
from twinbed.workloads.replay import replay


class Registry(Plugins):
    """The plugins, with what reads the artifacts of runs that were imported."""

    @property
    def formats(self) -> Mapping[str, Format]:
        """Of files that were made elsewhere."""
        return formats()

    @property
    def read(self) -> Mapping[str, AnyWorkload]:
        """All that a run's artifacts may be of: workloads, and what was imported."""
        imported = Imported(formats)
        return {**self.workloads, imported.name: imported}


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
    workloads={workload.name: workload for workload in (http, iperf3, planted, replay)},
    instruments={
        instrument.name: instrument
        for instrument in (packets, counters, events, syscalls, latency, sockets, stations, monitor, fingerprint)
    },
    backgrounds={background.name: background for background in (stress, traffic)},
)


@cache
def formats() -> Mapping[str, Format]:
    """Every format by its name. Imported only when asked for: few results were made elsewhere."""
    from twinbed.imports.formats.ab import ab_csv, ab_text, ab_tsv
    from twinbed.imports.formats.bpftrace import bpftrace
    from twinbed.imports.formats.capture import capture
    from twinbed.imports.formats.dmesg import dmesg
    from twinbed.imports.formats.ethtool_features import ethtool_features
    from twinbed.imports.formats.ethtool_statistics import ethtool_statistics
    from twinbed.imports.formats.flent import flent
    from twinbed.imports.formats.generic_csv import generic_csv
    from twinbed.imports.formats.generic_json import generic_json
    from twinbed.imports.formats.h2load import h2load
    from twinbed.imports.formats.hey import hey
    from twinbed.imports.formats.iperf2 import iperf2
    from twinbed.imports.formats.iperf3 import iperf3_json, iperf3_text
    from twinbed.imports.formats.irtt_json import irtt_json
    from twinbed.imports.formats.mpstat_json import mpstat_json
    from twinbed.imports.formats.mpstat_text import mpstat_text
    from twinbed.imports.formats.netperf import netperf
    from twinbed.imports.formats.nstat import nstat
    from twinbed.imports.formats.owping import owping
    from twinbed.imports.formats.perf_data import perf_data
    from twinbed.imports.formats.perf_script import perf_script
    from twinbed.imports.formats.ping import ping
    from twinbed.imports.formats.powstream import powstream
    from twinbed.imports.formats.proc_snapshot import proc_snapshot
    from twinbed.imports.formats.siege import siege
    from twinbed.imports.formats.siege_log import siege_log
    from twinbed.imports.formats.sockperf import sockperf
    from twinbed.imports.formats.strace import strace
    from twinbed.imports.formats.strace_summary import strace_summary
    from twinbed.imports.formats.suricata_eve import suricata_eve
    from twinbed.imports.formats.sysdig import sysdig
    from twinbed.imports.formats.tc_statistics import tc_statistics
    from twinbed.imports.formats.tcptrace_csv import tcptrace_csv
    from twinbed.imports.formats.tcptrace_text import tcptrace_text
    from twinbed.imports.formats.trace_cmd import trace_cmd
    from twinbed.imports.formats.twinbed_metrics import twinbed_metrics
    from twinbed.imports.formats.vmstat import vmstat
    from twinbed.imports.formats.wrk import wrk, wrk2
    from twinbed.imports.formats.zeek_conn_json import zeek_conn_json
    from twinbed.imports.formats.zeek_conn_tsv import zeek_conn_tsv
    from twinbed.imports.formats.zeromq import zeromq_perf

    every: Sequence[Format] = (
        iperf2,
        iperf3_json,
        iperf3_text,
        ab_text,
        ab_csv,
        ab_tsv,
        wrk,
        wrk2,
        hey,
        siege,
        siege_log,
        h2load,
        ping,
        irtt_json,
        owping,
        powstream,
        netperf,
        sockperf,
        zeromq_perf,
        flent,
        tcptrace_text,
        tcptrace_csv,
        zeek_conn_tsv,
        zeek_conn_json,
        suricata_eve,
        generic_csv,
        generic_json,
        capture,
        strace,
        strace_summary,
        perf_data,
        perf_script,
        trace_cmd,
        sysdig,
        bpftrace,
        vmstat,
        mpstat_json,
        mpstat_text,
        proc_snapshot,
        ethtool_statistics,
        ethtool_features,
        nstat,
        tc_statistics,
        dmesg,
        twinbed_metrics,
    )
    return {each.name: each for each in every}


def analysis(name: str) -> AnyAnalysis:
    """An analysis by its name. Imported only when asked for: the statistics behind them are slow to load."""
    if name not in ANALYSES:
        raise KeyError(name)
    module = importlib.import_module(f"twinbed.analyses.{name}.method")
    if not isinstance(module.analysis, Analysis):
        raise TypeError(f"{module.__name__}.analysis is no Analysis")
    return module.analysis


def analysis_names() -> Sequence[str]:
    """In the order of their list; imports none of them."""
    return tuple(ANALYSES)


def analyses() -> Iterator[AnyAnalysis]:
    """Every analysis, in the order of their list."""
    return map(analysis, ANALYSES)


def catalogue() -> Catalogue:
    """The settings that a study file may give to each plugin."""
    return Catalogue(
        drivers={name: plugin.params for name, plugin in PLUGINS.drivers.items()},
        workloads={name: plugin.params for name, plugin in PLUGINS.workloads.items()},
        instruments={name: plugin.params for name, plugin in PLUGINS.instruments.items()},
        backgrounds={name: plugin.params for name, plugin in PLUGINS.backgrounds.items()},
        summaries={
            name: plugin.summary
            for plugins in (PLUGINS.drivers, PLUGINS.workloads, PLUGINS.accompanying)
            for name, plugin in plugins.items()
        },
        also={
            name: plugin.also
            for plugins in (PLUGINS.drivers, PLUGINS.workloads, PLUGINS.accompanying)
            for name, plugin in plugins.items()
        },
        metrics=metrics,
        printed=table_names(),
    )


def metrics(workload: str, others: Sequence[str]) -> Mapping[str, str]:
    """The metrics of runs with these (instruments, background loads), those per unit of work too, and their units."""
    work = PLUGINS.workloads[workload].work
    plugins = (PLUGINS.workloads[workload], *(PLUGINS.accompanying[name] for name in others))
    of_each = (*(plugin.metrics for plugin in plugins), runs.USAGE_METRICS, (runs.OVERLAP,))
    units = {name: each.unit for metrics in of_each for name, each in declared(metrics, work).items()}
    return {
        **units,
        FAIRNESS.name: FAIRNESS.unit,
        **{metric.name: metric.unit for metric in (*runs.METRICS, *runs.COMPLETENESS_METRICS, *monitor_metrics.EXTRA_METRICS)},
    }


def every_metric() -> Mapping[str, tuple[Metric, tuple[str, ...]]]:
    """Every metric by its name, those per unit of work too, and what measures it, for readers."""
    works = dict.fromkeys(workload.work for workload in PLUGINS.workloads.values())
    found: dict[str, tuple[Metric, tuple[str, ...]]] = {}

    def add(metrics: Mapping[str, Metric], by: str) -> None:
        for name, metric in metrics.items():
            known, measured_by = found.get(name, (metric, ()))
            found[name] = known, tuple(dict.fromkeys((*measured_by, by)))

    for workload in PLUGINS.workloads.values():
        add(declared(workload.metrics, workload.work), f"workload {workload.name}")
    for kind, plugins in (("instrument", PLUGINS.instruments), ("background", PLUGINS.backgrounds)):
        for plugin in plugins.values():
            for work in works:
                add(declared(plugin.metrics, work), f"{kind} {plugin.name}")
    for work in works:
        add(declared(runs.USAGE_METRICS, work), "every run")
    add({each.name: each for each in (FAIRNESS, runs.OVERLAP)}, "runs of two or more pairs")
    add({each.name: each for each in (*runs.METRICS, *runs.COMPLETENESS_METRICS)}, "instrument packets")
    add({each.name: each for each in monitor_metrics.EXTRA_METRICS}, "instrument monitor")
    for each in formats().values():
        add({metric.name: metric for metric in each.metrics}, f"files in the format {each.name}")
    return found
