"""The result of ``explain``."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from enum import StrEnum

from twinbed.analyses.explain.causes import CAUSES, Cause
from twinbed.analyses.explain.signs import Waits
from twinbed.model.caution import Cautioned
from twinbed.model.result import Interval
from twinbed.model.run import Level


@dataclass(frozen=True, slots=True)
class Response:
    """A headline that differs."""

    metric: str
    host: str
    direction: str
    ratio: float | None
    """The ratio to the reference's."""
    interval: Interval | None
    p: float
    """After Holm's correction over all headlines."""


@dataclass(frozen=True, slots=True)
class Candidate:
    """A cause whose sign differs between two testbeds."""

    cause: Cause
    role: str
    """The role of the hosts that show it most; empty for all hosts together."""
    own: float
    reference: float
    """The sign's mean over runs, on the testbed and on the reference."""
    p: float
    """The p-value of equal signs: Welch's test, after Holm's correction over all signs, cells and testbeds."""
    alone: bool
    """True if it works on only one of the two."""
    states: tuple[str | None, str | None] = (None, None)
    """The state of its switch on each, as read back; None if unknown or hosts differ."""
    waits: tuple[Waits | None, Waits | None] = (None, None)
    """Wake-ups of idle CPUs on each, if the kernel timed any: for the cause idle_cpus alone."""

    @property
    def set_apart(self) -> bool:
        """Return whether its own setting was read back from both, and differs."""
        own_state, reference_state = self.states
        return own_state is not None and reference_state is not None and own_state != reference_state

    @property
    def change(self) -> float:
        """Return by how much the signs differ, as a share of the larger one."""
        return abs(self.own - self.reference) / max(self.own, self.reference)


@dataclass(frozen=True, slots=True)
class Pair:
    """One testbed and cell that differs from the reference. ``candidates``: the most likely first."""

    cell: Mapping[str, Level]
    testbed: str
    reference: str
    responses: tuple[Response, ...]
    candidates: tuple[Candidate, ...]


class Proved(StrEnum):
    """The outcome of a study with the cause switched off."""

    PROVED = "proved"
    IN_PART = "in part"
    OVERSHOT = "overshot"
    """The difference is reversed: something else changed too."""
    NOT_PROVED = "not proved"
    GONE = "no difference to explain"


@dataclass(frozen=True, slots=True)
class Proof:
    """How a response's ratio changes when a cause works alike on both testbeds."""

    cell: Mapping[str, Level]
    testbed: str
    reference: str
    cause: Cause
    response: Response
    as_is: Interval
    """The ratio to the reference with the cause as found."""
    alike: Interval
    """The same with the cause alike on both."""
    level: Level
    """The common setting of the cause."""
    closed: float
    """The removed share of the difference of logarithms; above 1 where the ratio goes beyond 1."""
    closed_interval: Interval | None
    """At 1 - alpha, corrected for the number of proofs; None where the difference may be 0."""
    p: float
    """The p-value that nothing is removed: Welch's test, after Holm's correction over all proofs."""
    says: Proved


@dataclass(frozen=True, slots=True)
class Explanation(Cautioned):
    pairs: tuple[Pair, ...]
    compared: int
    """The number of testbeds and cells that were compared with the reference."""
    reference: str | None
    proofs: tuple[Proof, ...] = ()
    not_seen: Mapping[str, str] = field(default_factory=dict)
    """Cause -> why it was not looked for."""


def candidates_of(result: Explanation) -> Iterator[tuple[Pair, Candidate]]:
    """Yield all candidates, with the pair that each is of."""
    for pair in result.pairs:
        for candidate in pair.candidates:
            yield pair, candidate


def switchable(result: Explanation) -> list[Cause]:
    """Return the causes of candidates that a study can switch, the most likely first."""
    ranked = sorted(
        ((pair.candidates.index(candidate), candidate.cause) for pair, candidate in candidates_of(result)),
        key=lambda entry: (entry[0], CAUSES.index(entry[1])),
    )
    return list(dict.fromkeys(cause for _, cause in ranked if cause.switch))
