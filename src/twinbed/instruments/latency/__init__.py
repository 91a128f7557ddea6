"""Instrument ``latency``: probes between every client and its server during the workload, and the delays that they show.

Runs ``irtt server`` on servers and ``irtt client`` on clients, 100 packets a second as in the published studies, and
``twinbed-probe clock`` on both. Gives round-trip time, jitter, loss and order each way, one-way delay where the hosts' clocks
agree, and how far apart the clocks are. Values of the whole run (host empty) are over all pairs' probes; where there are
several pairs, each has values of its own (host: the client). Values about clocks are always by client.

Tables: ``probes`` (a row a probe), ``delay_windows`` (a row a window and direction) and ``clocks`` (a row a pair).

Jitter and round-trip times come from the monotonic clocks, which nobody steps; the drift of clocks is subtracted from one-way
delays first. One-way delays come from the wall clocks.  docs/latency.md has the definitions and their sources.

irtt 0.9 and OWAMP: irtt's client is started with a duration longer than any run and interrupted at the end (irtt-client(1)).
The client needs 72 bytes a result while it runs (Debian's 0.9.0), and about 8 kB while it writes. There is one owping a
direction, with its own packets (RFC 4656), so there is no round-trip time. It prints nothing before SIGINT ends it, so there is
nothing to wait for; if it cannot reach owampd it ends, and the run fails and names it. Captures contain its packets, whose
ports it chooses itself.

Limits: probes share hosts, queues and CPUs with the workload: they wait where it does, and slow it a little.  They run from
when the instruments are ready until shortly after the workload.  irtt does not record the arrival of a probe that is lost on
its way back.  The client keeps all results in memory and writes them at its end: about 0.8 MB for each second of a run.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Literal

from pydantic import Field, model_validator

from twinbed.contracts.command import Command, Ready
from twinbed.contracts.extracted import Extracted, artifacts_named
from twinbed.contracts.instrument import Instrument
from twinbed.contracts.params import InstrumentParams
from twinbed.contracts.place import PROBE_PORT, Target
from twinbed.metrics.latency import METRICS
from twinbed.model.caution import Caution, Kind
from twinbed.model.units import Duration, Size
from twinbed.readers.latency import host_clock
from twinbed.readers.latency.files import CLIENT_TO_SERVER, LEAST, SERVER_TO_CLIENT, WAYS, of_irtt, of_owping

PROBE_BYTES = 1_200
"""Bytes of a probe in the results."""
SIGINT = 2
MOST_PROBES = 1_000_000
"""The most probes of a run, for which the client allocates memory when it starts: 2.8 hours at 100 a second."""
OPEN_TIMEOUTS = "5s,5s,5s"
"""Timeouts of the client's attempts to open a session. The first is longer than the kernel's search for an address (3 s): if
a second attempt is answered too, its answer reaches the client while it probes, as an error that ends it."""
IRTT_TASKS = 8
"""irtt has 6 or 7 threads."""
STOP_LIMIT_S = 120.0
"""Writing the results of 10 minutes takes an emulated CPU half a minute."""
OWAMP_PORT = 861
OWAMP_PROGRAMS = ("owampd", "owping")
_OWPING_OPTIONS = {CLIENT_TO_SERVER: "-t", SERVER_TO_CLIENT: "-f"}


class LatencyParams(InstrumentParams):
    """Settings of how delay is probed."""

    tool: Literal["irtt", "owamp"] = Field(
        "irtt", description="irtt: probes there and back; owamp: one-way probes by owping and owampd, if installed"
    )
    interval: Duration = Field(0.01, ge=0.001, le=1.0, description="time between probes, such as 10ms")
    length: Size = Field(
        0, ge=0, le=1_472, description="bytes of UDP payload (owamp: padding); 0: as few as the time stamps need"
    )
    window: Duration = Field(1.0, ge=0.02, le=3600, description="length of the windows of jitter, such as 1s")

    @model_validator(mode="after")
    def _enough_in_a_window(self) -> LatencyParams:
        if self.window < LEAST * self.interval * (1 - 1e-9):
            raise ValueError(
                f"a window of {self.window:g} s has fewer than {LEAST} probes, one every {self.interval:g} s: lengthen it"
            )
        return self

    def programs(self) -> Sequence[str]:
        """Return the programs that hosts must have installed."""
        return OWAMP_PROGRAMS if self.tool == "owamp" else ("irtt",)

    def estimate_seconds(self) -> float:
        return 0.3

    def estimate_bytes(self, link_rate: int) -> float:
        return PROBE_BYTES / self.interval


class Latency(Instrument[LatencyParams]):
    """The instrument."""

    name = "latency"
    params = LatencyParams
    summary = "probes between clients and servers (irtt): round-trip time, one-way delay, jitter, loss, clocks of hosts"
    also = ("ping", "rtt", "delay", "irtt", "owamp", "jitter")
    files = ("irtt-*", "owping-*", "owampd*", "clock.json", "clock.out", "clock.out.err")
    raw = "the whole report of each probe, and windows of another length"
    metrics = METRICS

    def plan(self, params: LatencyParams, target: Target) -> Sequence[Command]:
        commands: list[Command] = []
        if params.tool == "owamp":
            for server, address in [*target.servers.items()][:1]:  # a client of several servers measures the first
                commands += _owpings(
                    *(target.name, server, address),
                    interval_s=params.interval,
                    most=MOST_PROBES,
                    padding=params.length,
                )
            commands += [_owampd(target.name)] if target.clients else []
        else:
            for server, address in [*target.servers.items()][:1]:  # a client of several servers measures the first
                commands.append(_irtt_client(target.name, server, address, interval_s=params.interval, length=params.length))
            commands += [_irtt_server(target)] if target.clients else []
        return [*commands, _host_clock(target.name)] if commands else ()

    def extract(self, params: LatencyParams, artifacts: Path) -> Extracted:
        import pyarrow as pa

        from twinbed.readers.latency import clocks, summary
        from twinbed.readers.latency import irtt as irtt_reader
        from twinbed.readers.latency import owamp as owamp_reader

        pattern, read = "irtt-*.json", irtt_reader.read
        if params.tool == "owamp":
            pattern, read = of_owping("*", CLIENT_TO_SERVER), owamp_reader.read
        files = artifacts_named(artifacts, pattern)
        summaries: list[summary.PairSummary] = []
        cautions: list[Caution] = []
        for file in files:
            try:
                pair = read(file)
            except (OSError, ValueError, LookupError) as error:
                cautions.append(Caution(Kind.UNREADABLE, str(error)))
                continue
            ends = (host_clock.read(artifacts / host / host_clock.ARTIFACT) for host in (pair.client, pair.server))
            related = clocks.relate(pair, *ends)
            cautions += clocks.cautions(pair, related)
            summaries.append(summary.summarise(pair, related, params.window))
        if not summaries:
            raise ValueError("; ".join(caution.detail for caution in cautions))
        # The run's values cover all pairs, so they are missing if one pair's are.
        complete = len(summaries) == len(files)
        values = list(summary.values(summaries, "")) if complete else summary.nothing()
        values += [value for pair in summaries for value in summary.clock_values(pair)]
        if len(files) > 1:
            values += [value for pair in summaries for value in summary.values([pair], pair.pair.client)]
        tables = {
            "probes": pa.concat_tables([summary.probes_table(pair_summary) for pair_summary in summaries]),
            "delay_windows": pa.concat_tables(
                [summary.windows_table(pair_summary, params.window) for pair_summary in summaries]
            ),
            "clocks": pa.Table.from_pylist(
                [summary.clocks_row(pair_summary) for pair_summary in summaries], summary.clocks_schema()
            ),
        }
        return Extracted(values, tables, cautions)


def _irtt_server(target: Target) -> Command:
    """Plan a server that listens only on the host's experiment interfaces. 0: no limit, as all clients belong to the run."""
    listen = ",".join(f"%{interface}:{PROBE_PORT}" for interface in sorted(target.interfaces))
    argv = ("irtt", "server", "-b", listen, "-i", "0", "--timeout=0")
    return Command(target.name, argv, "irtt-server.out", Ready(says=b"starting IPv4 listener"), tasks=IRTT_TASKS)


def _irtt_client(host: str, server: str, address: str, *, interval_s: float, length: int) -> Command:
    argv = (
        *("irtt", "client"),
        *("-i", f"{round(interval_s * 1e9)}ns"),
        *("-d", f"{round(interval_s * MOST_PROBES)}s"),
        *("-l", str(length)),
        f"--timeouts={OPEN_TIMEOUTS}",
        "-q",
        *("-o", f"{{artifacts}}/{of_irtt(server)}"),
        f"{address}:{PROBE_PORT}",
    )
    output, ready = f"{of_irtt(server)}.out", Ready(says=b"[Connected]")
    return Command(host, argv, output, ready, stop=SIGINT, stop_limit_s=STOP_LIMIT_S, round=1, tasks=IRTT_TASKS)


def _owampd(host: str) -> Command:
    """Plan owampd in the foreground, as root, with all its files in the artifacts."""
    argv = ("owampd", "-Z", "-f", "-a", "O", *(word for option in "cdR" for word in (f"-{option}", "{artifacts}")))
    return Command(host, argv, "owampd.out", Ready(listening=OWAMP_PORT))


def _owpings(host: str, server: str, address: str, *, interval_s: float, most: int, padding: int) -> list[Command]:
    """Plan one owping a direction. ``-i f``: at a fixed interval, not an exponential one."""
    common = ("-R", "-A", "O", "-c", str(most), "-i", f"{interval_s:g}f", "-s", str(padding), address)
    return [
        Command(
            *(host, ("owping", _OWPING_OPTIONS[way], *common), of_owping(server, way)),
            Ready(says=b""),
            stop=SIGINT,
            round=1,
        )
        for way in WAYS
    ]


def _host_clock(host: str) -> Command:
    argv = ("twinbed-probe", "clock", "--out", f"{{artifacts}}/{host_clock.ARTIFACT}")
    return Command(host, argv, "clock.out", Ready(says=b"ready"))


latency = Latency()

__all__ = ["Latency", "LatencyParams", "latency"]
