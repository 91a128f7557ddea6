"""Reasons to doubt a result.  They travel with results and are always shown with them, with advice."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from enum import Enum

from twinbed.model.json import Document, text, value_of


class Kind(Enum):
    """Every kind of caution: (what it means, what to do about it)."""

    CAPTURE_DROPS = (
        "the capture lost packets",
        "enlarge the capture buffer, lower snaplen, or measure without the packets instrument",
    )
    INCOMPLETE_CAPTURE = (
        "the capture holds fewer requests than the client counted",
        "it was cut off, began late or lost packets: counts for each request and connection are too small by as much",
    )
    CALLS_LOST = (
        "system calls were lost before they were counted",
        "raise the instrument's states (count) or buffer (trace), or count instead of tracing",
    )
    EVENTS_LOST = (
        "events of the kernel were lost before they were counted",
        "counts by device are too small by as many; where there are many devices, the largest counts hold all the same",
    )
    STATIONS_LOST = (
        "packets or calls went by without a record of their stations",
        "requests that lack one are not split; raise the instrument's limit, or record a share of the connections",
    )
    UNSAMPLED = (
        "TCP connections went by without a sample",
        "values of the instrument sockets are of those that have one; the instrument packets sees short connections too",
    )
    SLOW_TRACING = (
        "system calls were seen by a slower method than the best there is",
        "the reason is in the detail; hosts that are seen by different methods are slowed down differently",
    )
    BAD_CHECKSUMS = (
        "captured packets have bad checksums",
        "damaged on the way, or by the capture: look where; receivers drop them and senders send them again",
    )
    CHECKSUM_OFFLOAD = (
        "checksums in the capture are unfinished: they are offloaded",
        "as on NICs with offload; for packets as a wire has them, switch tx checksum offload off on the hosts",
    )
    HELLOS_CUT = (
        "hellos of TLS were not captured as a whole: JA3, JA3S and JA4 are missing",
        "the instrument packets keeps 96 bytes of a packet unless its snaplen says otherwise; 2048 keeps hellos whole",
    )
    REPLAYED_OTHERWISE = (
        "some packets of the capture were not replayed, or not as they were",
        "the detail says which and why; what does not depend on them holds",
    )
    REQUEST_CAP = (
        "the request cap ended the run before its time was up",
        "raise max_requests, or shorten duration, so that every cell runs equally long",
    )
    SKEWED_START = (
        "clients did not start together",
        "what they share is not shared from the first to the last second: make the run longer, or omit its start",
    )
    BACKGROUND_ENDED = (
        "a background load ended before the workload did",
        "the run was measured partly without it: look at what it said in the run folder; memory may have run out",
    )
    CUT_SHORT = (
        "a stream ended before its time was up",
        "look at the client's report in the run folder; rates are over the time that there was",
    )
    FAILED_REQUESTS = (
        "some requests failed",
        "look at the server's log in the run folder; a rate over failures is not a rate",
    )
    NON_2XX = ("some answers were not 2xx", "look at the server's log in the run folder")
    CPU_EXHAUSTED = (
        "a host or the machine ran out of CPU",
        "the result says more about the CPU than about the network; use fewer hosts or more cores",
    )
    STEAL = ("the machine's hypervisor took CPU time away", "run on a quiet or bare-metal machine")
    NIC_RESET = (
        "the kernel log shows a NIC reset or transmit timeout",
        "distrust this run; see the kernel log in its folder",
    )
    OUT_OF_MEMORY = (
        "the kernel log shows that memory ran out, and that a process was killed for it",
        "distrust this run if it was then: see the log for which process, and give the host more memory",
    )
    CLOCK_STEP = (
        "a clock was set while the run was on",
        "distrust times of the day and one-way delays of this run; stop what sets the clock (ntpd, chronyd, the hypervisor)",
    )
    CLOCKS_APART = (
        "the hosts' clocks are neither shared nor synchronised well enough for one-way delays",
        "jitter, round-trip times and loss hold all the same; for one-way delays synchronise the clocks (PTP, or chrony with a "
        "close server)",
    )
    CLOCK_BOUND = (
        "a host's own clock is known less well than some parts of requests are long",
        "take those parts together, link to softirq of one packet and driver to link of another: what one lacks the other has",
    )
    ABOVE_LINK_RATE = (
        "goodput above what the link can carry",
        "the shaper counts no preamble, gap or checksum of frames, and lets its burst through: take it for the link's limit",
    )
    ABOVE_GIVEN_RATE = (
        "goodput above what the link can carry, by the rate that was given of it",
        "see whether the rate (bits a second, not bytes) and the MTU are those of the link that the traffic took, and whether "
        "its ends were on two machines at all",
    )
    LINK_NOT_FILLED = (
        "the link check could not fill a link",
        "that the link is no faster than asked was seen only up to the figure in the detail; that it is as fast was not",
    )
    LINK_NOT_MEASURED = (
        "the link check could not measure a link",
        "what is set on the link was read back all the same; the detail says what kept it from being measured",
    )
    LINK_UNTOLD = (
        "the link check could not tell the link from its hosts",
        "hosts that pause look like delay and bursts; check on a quieter machine, or take what was measured for the link's",
    )
    SOFTWARE_CPU = (
        "guests ran on an emulated CPU (TCG), not on hardware virtualisation",
        "ratios against hardware are about the emulator; use a machine where KVM boots a guest",
    )
    MODELLED = (
        "the numbers are a model's: nothing was measured",
        "they are as good as the model's parameters, which its passport has; docs/model.md says how far it was from containers",
    )
    DELAY_LINE = (
        "delays were made by a program of twinbed's, as the machine's kernel has no netem",
        "frames are late by what the detail says, more where the machine is busy: compare delays that are long beside it, or "
        "use a kernel with netem",
    )
    STAND_IN = (
        "one machine stands in for several",
        "what machines do not share (CPUs, clocks, interrupts, memory bandwidth) is shared here: use a host for each",
    )
    NOT_SET = (
        "what lies between the hosts is not twinbed's to set, and is as it was found",
        "see for yourself that it is what the study says",
    )
    CAPTURED_AT_HOSTS = (
        "links were captured on the hosts themselves",
        "segments that the NIC cuts or joins count as the kernel sees them, and the capture takes the hosts' own CPU time",
    )
    LINK_DOWN = (
        "a link went down while the run lasted",
        "distrust this run; look at cables, ports and the kernel log in its folder",
    )
    SAMPLED = (
        "totals over all hosts were estimated from hosts drawn at random",
        "the interval in the detail is what the draw alone leaves open: for a narrower one ask for a larger share of the hosts",
    )
    FEW_REPLICATES = (
        "too few replicates for an interval that means much",
        "raise replicates; `twinbed plan` says what it costs",
    )
    RESIDUE = ("a factor still varies inside this cell", "name it as a factor (of an import: --factor NAME), or fix it")
    STACKS_DIFFER = (
        "the testbeds' hosts differ in what is known to change results, and nobody asked for it",
        "set it alike, or make it a factor; `twinbed passport` shows all that differs",
    )
    SHARED_CPU = (
        "hosts of the testbed share a CPU with each other or with the instruments",
        "pin them apart, or use more cores",
    )
    UNPINNED = ("hosts were not pinned to CPUs", "the scheduler may be part of the result; set cpus: auto")
    IDLE_WAKE_UPS = (
        "programs waited for idle CPUs to be woken",
        "a pair alone may then be slower than several at once: set idle: busy, which keeps CPUs awake, or cpus: shared",
    )
    FAILED_RUNS = (
        "some runs of this cell failed and are missing from it",
        "the report lists them with their reasons; failures are rarely random",
    )
    UNMATCHED = (
        "some cells were not measured on the reference",
        "their numbers stand alone, and no verdict is about them: measure them there, or name the level that its runs had",
    )
    INCOMPLETE = ("the study is not complete; some runs have not been made", "run the same command again to go on")
    UNREADABLE = ("an artifact could not be read in full", "its missing values are null, not 0; the raw file is kept")
    MACHINE_APART = (
        "a machine of the fleet was left out after it had made runs",
        "they are in the results, whole blocks of them: hold verdicts against those without the machine, and look at it",
    )
    CONTRADICTED = (
        "a file contradicts itself, or another of its run",
        "both values are in the detail; what is counted from intervals or rows is taken, not a tool's summary of them",
    )
    MISNAMED = (
        "files contradict what their paths say of them",
        "the name is wrong, or an option was forgotten in measuring: these cells may not be what they are called, and no "
        "verdict on them holds until that is known",
    )
    SKEWED = ("values are far from normal or hold outliers", "look at the distribution; the interval may be wrong")
    FEW_COUNTS = (
        "some values occur too rarely for the test's approximation",
        "take the verdict as rough; raise replicates",
    )
    COARSE = (
        "values come in steps that may hide a difference",
        "measure with a finer clock, or let the program print more digits; more replicates do not help",
    )
    CENSORED = (
        "several runs have the same largest time, as of a time-out",
        "how much longer they would have taken is not known, and no mean is: raise the limit, or compare medians",
    )
    UNLIKE_LENGTHS = (
        "a quantile is of more requests or probes on one testbed than on the other",
        "quantiles of few lie lower, the more so the closer to 100 %: compare runs of as many, or a lower quantile",
    )
    LOOKS = (
        "the study ends with its first verdict, which holds for runs that do not depend on each other",
        "runs of a testbed that are alike for a while end it too soon: where that may be, measure in sessions and compare with "
        "--sessions, or raise the least number of replicates",
    )
    DRIFT = (
        "a metric drifted while it was measured",
        "look at residuals against run order in the report, find what changed (temperature, disk, caches) and run again: a "
        "mean over a drift is that of no steady state",
    )
    BLOCK_EFFECT = (
        "runs of one block are alike and unlike those of others",
        "something changed between blocks that is no factor: a comparison within blocks takes it off, one of independent runs "
        "errs towards inconclusive",
    )
    SERIAL = (
        "a run depends on the run before it",
        "replicates are then worth less than they count for and intervals are too narrow: let the machine settle between runs, "
        "or randomise the order",
    )
    STALL = (
        "a run stood still for a while",
        "a mean hides that, and a run that is slow for a while may be one of a kind that few runs show: `twinbed analyse "
        "stalls` has retransmissions and kernel messages of that time; compare tails too (`twinbed analyse tails`)",
    )
    EXCLUDED_UNEQUALLY = (
        "runs were left out for a caution, and not as many of each testbed",
        "a testbed that is often disturbed looks better for it: take the result with all runs too, and say in both what "
        "was left out",
    )
    EXCLUDED_AFTERWARDS = (
        "what leaves a run out was decided when there were runs already",
        "a choice that was made with the results in view proves nothing: report the result with all runs, or repeat the study "
        "with this file",
    )
    UNSETTLED = (
        "runs never settle: the rate inside them still changes when they end",
        "their means are those of no steady state, and hang on how long runs are: let the workload warm up, or last longer "
        "(`twinbed analyse steady`)",
    )
    APART = (
        "testbeds and times are one: no session has runs of both",
        "what changed in between cannot be told from the testbed, so that there is no verdict: measure both in turn, several "
        "sessions of each (`--sessions time`), or state that sessions do not matter (`--sessions none`)",
    )
    SUCCESSION = (
        "testbeds were measured one after the other",
        "what drifted meanwhile looks like a difference between them, or hides one: measure them in turn "
        "(`order: randomized-blocks`)",
    )
    ONE_SESSION = (
        "all runs are of one session",
        "a state that a testbed keeps from run to run is told as surely as the testbed: measure it again in another session, "
        "or after a boot, and see whether it can be told from itself",
    )
    SESSIONS = (
        "runs of one session are alike and unlike those of others",
        "they are worth less than they count for: compare with --sessions, which takes the session for the unit; more sessions "
        "then say more than more runs",
    )
    ALIKE = (
        "levels differ in case or blanks alone",
        "they count as different levels: write them alike if they are not",
    )
    REPEATED_ROWS = (
        "rows are the same in every column, to the last digit of the response",
        "measurements hardly repeat so exactly: look whether rows were copied, since each counts as a run of its own",
    )
    WARM_UP = ("the warm-up request failed or was skipped", "first requests may pay for cold caches")
    UNKNOWN = (
        "another version of twinbed cautioned against this run",
        "the detail has the caution's name; read the results with the twinbed that made them",
    )

    @classmethod
    def named(cls, name: str) -> Kind | None:
        """Return the kind of this name in results; None where this twinbed has none of it."""
        return cls.__members__.get(name.upper())

    @property
    def meaning(self) -> str:
        return self.value[0]

    @property
    def advice(self) -> str:
        return self.value[1]


@dataclass(frozen=True, slots=True)
class Caution:
    """One caution about one run, cell or study. ``detail`` gives the numbers."""

    kind: Kind
    detail: str = ""
    subject: str = ""
    """What it is about: a run's id, a cell, a testbed or a metric; empty for all."""

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
    """What the runs of a testbed carry: ``2 of 20 runs, such as 55 ms``, where their details differ; ``20 of 20 runs: tcg``."""
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
