"""Reasons to doubt a result. They travel with results, and every output shows them with advice."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from enum import Enum, StrEnum

from twinbed.model.json import Document, text, value_of


class Rank(StrEnum):
    """How much a caution takes from a result."""

    INVALIDATES = "invalidates"
    """The comparison must not be used as it stands."""
    WEAKENS = "weakens"
    NOTE = "note"


class Kind(Enum):
    """Every kind of caution: (what it means, what to do about it)."""

    CAPTURE_DROPS = (
        "the capture lost packets",
        "enlarge the capture buffer, lower snaplen, or measure without the packets instrument",
    )
    INCOMPLETE_CAPTURE = (
        "the capture holds fewer requests than the client counted",
        "counts for each request and connection are too small by that share; the detail says whether it began late or was "
        "cut off",
    )
    CALLS_LOST = (
        "system calls were lost before they were counted",
        "raise the instrument's states (count) or buffer (trace), or count instead of tracing",
    )
    EVENTS_LOST = (
        "kernel events were lost before they were counted",
        "add the lost events to the counts by device; with many devices only the largest counts are reliable",
    )
    STATIONS_LOST = (
        "some packets or calls have no record of their stations",
        "raise the instrument's limit, or record a share of the connections; requests that lack a station are not split",
    )
    UNSAMPLED = (
        "some TCP connections ended without a sample",
        "use the instrument packets, which sees short connections too; the instrument sockets describes sampled ones",
    )
    SLOW_TRACING = (
        "system calls were traced by a slower method than the best",
        "the detail gives the reason; hosts traced by different methods are slowed down differently",
    )
    BAD_CHECKSUMS = (
        "captured packets have bad checksums",
        "find where they were damaged: on the link or in the capture; receivers drop such packets and senders repeat them",
    )
    CHECKSUM_OFFLOAD = (
        "checksums in the capture are unfinished because they are offloaded",
        "nothing, if real NICs offload too; to see packets as on a wire, switch tx checksum offload off on the hosts",
    )
    HELLOS_CUT = (
        "TLS hellos were cut in the capture, so JA3, JA3S and JA4 are missing",
        "set snaplen 2048 in the instrument packets, which keeps hellos whole (default: 96 bytes)",
    )
    REPLAYED_OTHERWISE = (
        "some packets of the capture were not replayed, or were changed",
        "the detail says which and why; metrics that do not depend on them are valid",
    )
    REQUEST_CAP = (
        "the request cap ended the run before its time was up",
        "raise max_requests or shorten duration, so that all cells run equally long",
    )
    SKEWED_START = (
        "clients did not start together",
        "lengthen the run or leave its start out: clients shared the link only part of the time",
    )
    BACKGROUND_ENDED = (
        "a background load ended before the workload did",
        "read the load's output in the run folder (memory may have run out); part of the run had no load",
    )
    CUT_SHORT = (
        "a stream ended before its time was up",
        "read the client's report in the run folder; rates cover the time that the stream lasted",
    )
    FAILED_REQUESTS = (
        "some requests failed",
        "read the server's log in the run folder; a rate that counts failures is not a rate of service",
    )
    NON_2XX = ("some answers were not 2xx", "read the server's log in the run folder")
    CPU_EXHAUSTED = (
        "a host or the machine ran out of CPU",
        "use fewer hosts or more cores; these results describe the CPU more than the network",
    )
    STEAL = ("the hypervisor of the machine took CPU time away", "measure on a quiet or bare-metal machine")
    NIC_RESET = ("the kernel log shows a NIC reset or transmit timeout", "distrust this run; read the kernel log in its folder")
    OUT_OF_MEMORY = (
        "the kernel killed a process because memory ran out",
        "give the host more memory; the kernel log shows whether it happened during this run",
    )
    CLOCK_STEP = (
        "a clock was set during the run",
        "stop what sets the clock (ntpd, chronyd, the hypervisor); do not use wall-clock times and one-way delays of this run",
    )
    CLOCKS_APART = (
        "the hosts' clocks are not synchronised well enough for one-way delays",
        "synchronise the clocks (PTP, or chrony with a close server); jitter, round-trip times and loss are not affected",
    )
    CLOCK_BOUND = (
        "a host's clock is known less precisely than some parts of requests last",
        "add the parts next to each other (link and softirq of one packet, driver and link of another)",
    )
    ABOVE_LINK_RATE = (
        "goodput is above what the link can carry",
        "read it as the link's limit: the shaper counts no preamble, gap or frame checksum, and lets its burst pass",
    )
    ABOVE_GIVEN_RATE = (
        "goodput is above the link rate that was given",
        "check the given rate (bits a second, not bytes), the MTU, and that the traffic crossed this link between two machines",
    )
    LINK_NOT_FILLED = (
        "the link check could not fill a link",
        "up to the rate in the detail the link is not faster than asked; it was not measured whether it reaches the asked rate",
    )
    LINK_NOT_MEASURED = (
        "the link check could not measure a link",
        "the detail says what prevented it; the link's settings were read back",
    )
    LINK_UNTOLD = (
        "the link check could not separate the link from its hosts",
        "check on a quieter machine: hosts that pause look like delay and bursts",
    )
    SOFTWARE_CPU = (
        "guests ran on an emulated CPU (TCG), not on hardware virtualisation",
        "use a machine where KVM boots a guest (`twinbed check`); these ratios describe the CPU emulator",
    )
    MODELLED = (
        "a model made these numbers; nothing was measured",
        "see docs/model.md for how far the model was from containers; its passport has the parameters",
    )
    DELAY_LINE = (
        "a twinbed program delayed frames, because this kernel has no netem",
        "compare delays well above the lateness in the detail, or use a kernel with netem",
    )
    STAND_IN = (
        "one machine stands in for several",
        "use one machine for each host: here they share CPUs, clocks, interrupts and memory bandwidth",
    )
    NOT_SET = ("twinbed did not set what lies between the hosts", "check yourself that it matches the study file")
    CAPTURED_AT_HOSTS = (
        "links were captured on the hosts themselves",
        "remember that the kernel sees segments before the NIC cuts or after it joins them, and that capturing costs host CPU",
    )
    LINK_DOWN = ("a link went down during the run", "distrust this run; check cables, ports and the kernel log in its folder")
    SAMPLED = (
        "totals over all hosts were estimated from a random sample of hosts",
        "sample a larger share of the hosts for a narrower interval; the detail has the interval of the sampling",
    )
    FEW_REPLICATES = ("too few replicates for a meaningful interval", "raise replicates; `twinbed plan` shows the cost")
    RESIDUE = ("a factor still varies inside a cell", "make it a factor (of an import: --factor NAME), or fix its value")
    STACKS_DIFFER = (
        "hosts differ in settings known to change results, and the study does not ask for it",
        "set them alike or make them a factor; `twinbed passport` lists all differences",
    )
    SHARED_CPU = (
        "hosts of the testbed share a CPU with each other or with the instruments",
        "pin them to different CPUs, or use more cores",
    )
    UNPINNED = ("hosts were not pinned to CPUs", "set cpus: auto; without it the scheduler may be part of the result")
    IDLE_WAKE_UPS = (
        "programs waited for idle CPUs to wake up",
        "set idle: busy (CPUs stay awake) or cpus: shared; otherwise one pair alone may be slower than several",
    )
    FAILED_RUNS = (
        "some runs failed and are missing from their cells",
        "read their reasons in the report; failures are rarely random",
    )
    UNMATCHED = (
        "some cells were not measured on the reference",
        "measure them there, or name the level of the reference's runs; without it these cells have no verdict",
    )
    INCOMPLETE = ("some runs of the study have not been made", "run the same command again to make them")
    UNREADABLE = ("an artifact could not be read in full", "read the raw file, which is kept; missing values are null, not 0")
    MACHINE_APART = (
        "a machine of the fleet was left out after it had made runs",
        "compare the verdicts with those without the machine, and find out what is wrong with it",
    )
    CONTRADICTED = (
        "a file contradicts itself, or another file of its run",
        "the detail has both values; twinbed counts intervals or rows rather than trusting a tool's summary",
    )
    MISNAMED = (
        "files contradict what their paths say",
        "correct the path, or measure again with the forgotten option; these cells have no verdict until then",
    )
    SKEWED = ("values are far from normal or hold outliers", "look at the distribution; the interval may be wrong")
    FEW_COUNTS = ("some values occur too rarely for the test's approximation", "treat the verdict as rough; raise replicates")
    COARSE = (
        "values come in steps that may hide a difference",
        "measure with a finer clock, or let the program print more digits; more replicates do not help",
    )
    CENSORED = (
        "several runs share the same largest time, as a time-out gives",
        "raise the limit or compare medians; the true times, and so any mean, are unknown",
    )
    UNLIKE_LENGTHS = (
        "one testbed's quantiles come from more requests or probes than the other's",
        "compare runs of equal length, or a lower quantile: quantiles of few values lie lower",
    )
    LOOKS = (
        "the study ends with its first verdict, which assumes independent runs",
        "measure in sessions and compare with --sessions, or raise the least number of replicates, if neighbouring runs "
        "may be alike",
    )
    DRIFT = (
        "a metric drifted while it was measured",
        "plot residuals against run order (report), find what changed (temperature, disk, caches) and measure again",
    )
    BLOCK_EFFECT = (
        "runs of one block resemble each other more than runs of other blocks",
        "find what changed between blocks; comparing within blocks removes it, comparing independent runs tends to "
        "inconclusive",
    )
    SERIAL = (
        "a run depends on the run before it",
        "let the machine settle between runs, or randomise the order; intervals are too narrow until then",
    )
    STALL = (
        "a run stalled for a while",
        "see retransmissions and kernel messages of that time (`twinbed analyse stalls`), and compare tails (`twinbed analyse"
        " tails`): a mean hides a stall",
    )
    EXCLUDED_UNEQUALLY = (
        "a caution left out more runs of one testbed than of another",
        "report the result with all runs too: leaving out disturbed runs makes a disturbed testbed look better",
    )
    EXCLUDED_AFTERWARDS = (
        "the rule that leaves runs out was made after runs existed",
        "report the result with all runs, or repeat the study with this file: a rule made afterwards proves nothing",
    )
    UNSETTLED = (
        "runs never settle: their rate still changes when they end",
        "warm the workload up, or let runs last longer (`twinbed analyse steady`); the mean depends on the length of the run",
    )
    APART = (
        "no session has runs of both testbeds, so testbed and time cannot be separated",
        "measure both in turn, several sessions of each (`--sessions time`), or state that sessions do not matter "
        "(`--sessions none`)",
    )
    SUCCESSION = (
        "testbeds were measured one after the other",
        "measure them in turn (`order: randomized-blocks`): a drift in between looks like a difference, or hides one",
    )
    ONE_SESSION = (
        "all runs are of one session",
        "measure again in another session, or after a boot: a state that lasts a session looks like the testbed",
    )
    SESSIONS = (
        "runs of one session resemble each other more than runs of other sessions",
        "compare with --sessions, which makes the session the unit; more sessions then count, not more runs",
    )
    ALIKE = (
        "levels differ only in case or blanks",
        "write them the same way if they mean the same; now they count as different levels",
    )
    REPEATED_ROWS = (
        "rows repeat in every column, to the last digit",
        "check whether rows were copied; each counts as a run of its own",
    )
    WARM_UP = ("the warm-up request failed or was skipped", "expect the first requests to be slower: caches may have been cold")
    UNKNOWN = (
        "another version of twinbed made this caution",
        "read the results with the twinbed that made them; the detail has the caution's name",
    )

    @classmethod
    def named(cls, name: str) -> Kind | None:
        """Return the kind of this name in results; None where this twinbed has none of it."""
        return cls.__members__.get(name.upper())

    @property
    def rank(self) -> Rank:
        """Return how much it takes from a result."""
        if self in _INVALIDATING:
            return Rank.INVALIDATES
        return Rank.NOTE if self in _NOTES else Rank.WEAKENS

    @property
    def meaning(self) -> str:
        return self.value[0]

    @property
    def advice(self) -> str:
        return self.value[1]


_INVALIDATING = frozenset(
    {
        Kind.SOFTWARE_CPU,
        Kind.MODELLED,
        Kind.MISNAMED,
        Kind.APART,
        Kind.EXCLUDED_AFTERWARDS,
        Kind.ABOVE_GIVEN_RATE,
        Kind.REPEATED_ROWS,
    }
)
_NOTES = frozenset(
    {
        Kind.CHECKSUM_OFFLOAD,
        Kind.ABOVE_LINK_RATE,
        Kind.LINK_NOT_FILLED,
        Kind.LINK_NOT_MEASURED,
        Kind.NOT_SET,
        Kind.CAPTURED_AT_HOSTS,
        Kind.SAMPLED,
        Kind.FEW_COUNTS,
        Kind.LOOKS,
        Kind.INCOMPLETE,
        Kind.UNMATCHED,
        Kind.SLOW_TRACING,
        Kind.UNSAMPLED,
        Kind.HELLOS_CUT,
        Kind.WARM_UP,
        Kind.ALIKE,
        Kind.ONE_SESSION,
        Kind.CLOCK_BOUND,
        Kind.CLOCKS_APART,
        Kind.UNKNOWN,
        Kind.STAND_IN,
        Kind.REQUEST_CAP,
    }
)
BY_CHANCE = (Kind.DRIFT, Kind.BLOCK_EFFECT, Kind.SERIAL)
"""Tests of the order of runs, each at the error rate of the study: of many, some warn by chance."""


@dataclass(frozen=True, slots=True)
class Caution:
    """One caution about one run, cell or study. ``detail`` gives the numbers."""

    kind: Kind
    detail: str = ""
    subject: str = ""
    """Its subject: a run's id, a cell, a testbed or a metric; empty for all."""

    def to_json(self) -> dict[str, str]:
        return {"kind": self.kind.name.lower(), "detail": self.detail, "subject": self.subject}

    @classmethod
    def from_json(cls, data: Document) -> Caution:
        """Raises ValueError where ``data`` is none. One of a kind that this twinbed does not know is kept as text."""
        detail, subject = text(data.get("detail", "")), text(data.get("subject", ""))
        return cls.of(value_of(data, "kind", text), detail, subject)

    @classmethod
    def of(cls, name: str, detail: str, subject: str = "") -> Caution:
        """Return the caution of a kind's name, as results have it."""
        kind = Kind.named(name)
        if kind is None:
            return cls(Kind.UNKNOWN, f"{name}: {detail}" if detail else name, subject)
        return cls(kind, detail, subject)


def counted(carrying: int, of: int, details: Iterable[str]) -> str:
    """Return what the runs of a testbed carry: ``2 of 20 runs, such as 55 ms``; ``20 of 20 runs: tcg`` where details agree."""
    known = list(dict.fromkeys(detail for detail in details if detail))
    such = f"{', such as' if len(known) > 1 else ':'} {known[0]}" if known else ""
    return f"{carrying} of {of} runs{such}"


NO_VERDICT = (Kind.MISNAMED, Kind.APART)
"""A comparison with one of these has no verdict, whatever its numbers are."""
OF_RUNS = tuple(
    kind.name.lower()
    for kind in (
        Kind.STALL,
        Kind.NIC_RESET,
        Kind.LINK_DOWN,
        Kind.CPU_EXHAUSTED,
        Kind.STEAL,
        Kind.OUT_OF_MEMORY,
        Kind.CLOCK_STEP,
        Kind.CAPTURE_DROPS,
        Kind.INCOMPLETE_CAPTURE,
        Kind.FAILED_REQUESTS,
        Kind.NON_2XX,
        Kind.REQUEST_CAP,
        Kind.CUT_SHORT,
        Kind.SKEWED_START,
        Kind.BACKGROUND_ENDED,
    )
)
"""Cautions about what happened in one run: those for which a study may leave it out."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Cautioned:
    """The part that results of analyses have in common."""

    cautions: Sequence[Caution] = ()
    left_out: Mapping[str, int] = field(default_factory=dict)
    """Reason -> number of runs, requests or rows left out."""
