"""How often ``detectability`` tells equal testbeds, and how well others: studies of the ``fake`` testbed."""

from __future__ import annotations

import math
import random
from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
import pyarrow as pa
from scipy.special import ndtr

from benchmarks.simulated.little import InMemory, record
from benchmarks.simulated.observed import Made, observed
from twinbed.analyses.detectability.method import analysis as detectability
from twinbed.analyses.detectability.result import Accuracy
from twinbed.model.caution import Kind
from twinbed.model.result import Pairing
from twinbed.model.tables import Outline, StudyDocument
from twinbed.statistics.detector import logistic
from twinbed.statistics.separation import PairsOut
from twinbed.testbeds.fake import FakeHost, FakeSettings
from twinbed.workloads.planted import parse_features

ALPHA = 0.05


@dataclass(frozen=True)
class Outcome:
    area: float
    """Mean over studies."""
    deviation: float
    holds: float
    """Share of intervals that hold the best area that there is."""
    shown: float
    """Share of studies with p at most ALPHA."""


def best(shift: float) -> float:
    """The chance that the shifted of two normal values is the larger: Phi(d / sqrt 2)."""
    return float(ndtr(shift / math.sqrt(2)))


def fake_study(runs: int, features: int, shift: float, seed: int, *, paired: bool = False) -> InMemory:
    """What two ``fake`` testbeds answer, ``other`` shifted."""
    beds = {"real": FakeSettings(), "other": FakeSettings(shift=shift)}
    records, rows = [], []
    for replicate in range(runs):
        for name, settings in beds.items():
            one = record(name, replicate, len(records), {"testbed": name})
            records.append(one)
            host = FakeHost("client", "", settings, random.Random(f"{seed}/{name}/{replicate}"))
            answer = host.answer(("planted-response", "--features", str(features)))
            assert answer is not None
            about = {"run": one.id, "observer": "passive", "host": "client", "text": None, "seen": 1}
            values = parse_features(answer.stdout)
            rows += [{**about, "feature": f"planted_{at}", "value": value} for at, value in enumerate(values, 1)]
    data = StudyDocument(comparison=Pairing.PAIRED if paired else Pairing.INDEPENDENT)
    return InMemory({"fingerprints": pa.Table.from_pylist(rows)}, Outline("fake", tuple(beds), "real", data=data), records)


def slow_states(runs: int, features: int, correlation: float, seed: int, *, apart_s: float | None = None) -> InMemory:
    """Two equal testbeds, each with a state of its own that lasts from run to run: an autoregression of the first order. Runs
    take turns, or those of the second come ``apart_s`` after the first's."""
    noise = np.random.default_rng([seed, runs, features])
    records, rows = [], []
    for number, name in enumerate(("real", "other")):
        state = noise.normal(size=features)
        for replicate in range(runs):
            position = 2 * replicate + number if apart_s is None else number * runs + replicate
            one = record(name, replicate, position, {"testbed": name})
            records.append(replace(one, started_s=one.started_s + number * (apart_s or 0.0)))
            about = {"run": one.id, "observer": "passive", "host": "client", "text": None, "seen": 1}
            rows += [{**about, "feature": f"planted_{at}", "value": float(value)} for at, value in enumerate(state, 1)]
            state = correlation * state + math.sqrt(1 - correlation**2) * noise.normal(size=features)
    data = StudyDocument(comparison=Pairing.INDEPENDENT)
    return InMemory(
        {"fingerprints": pa.Table.from_pylist(rows)}, Outline("fake", ("real", "other"), "real", data=data), records
    )


def told_of_states(
    runs: int, features: int, correlation: float, studies: int, *, apart_s: float | None = None
) -> tuple[float, float]:
    """Shares of studies in which equal testbeds are told apart, and in which no caution on times goes with that."""
    about = {Kind.APART, Kind.SUCCESSION, Kind.ONE_SESSION}
    found = [detectability.run(slow_states(runs, features, correlation, seed, apart_s=apart_s)) for seed in range(studies)]
    told = [each for each in found if each.detections[0].as_is.p <= ALPHA]
    alone = [each for each in told if not any(caution.kind in about for caution in each.cautions)]
    return len(told) / studies, len(alone) / studies


def _outcome(told: Sequence[Accuracy], shift: float) -> Outcome:
    areas = np.array([each.area for each in told])
    holds = [each.interval.low <= best(shift) + 1e-9 and best(shift) - 1e-9 <= each.interval.high for each in told]
    shown = [each.p <= ALPHA for each in told]
    return Outcome(float(areas.mean()), float(areas.std()), float(np.mean(holds)), float(np.mean(shown)))


def outcome(runs: int, features: int, shift: float, studies: int, *, paired: bool = False) -> Outcome:
    told = [
        detectability.run(fake_study(runs, features, shift, seed, paired=paired)).detections[0].as_is for seed in range(studies)
    ]
    return _outcome(told, shift)


def outcome_of_windows(runs: int, studies: int) -> Outcome:
    """Equal testbeds whose packets are observed in blocks of several lengths."""
    worlds = (observed({"real": Made(), "other": Made()}, runs, seed) for seed in range(studies))
    return _outcome([detectability.run(each).detections[0].as_is for each in worlds], 0.0)


def areas_of_rules(runs: int, features: int, shift: float, studies: int) -> tuple[float, float]:
    """Mean areas by the discriminant, and by logistic regression with the same ridge, of the same pairs left out."""
    labels = np.arange(2 * runs) < runs
    both = []
    for seed in range(studies):
        noise = np.random.default_rng(seed)
        rows = noise.normal(size=(2 * runs, features))
        rows[labels, 0] += shift
        own = float(PairsOut.of(rows, np.arange(2 * runs)).areas(labels[None])[0])
        above = []
        for one in range(runs):
            for other in range(runs, 2 * runs):
                kept = np.delete(np.arange(2 * runs), [one, other])
                scores = logistic(rows[kept], labels[kept]).scores(rows[[one, other]])
                above.append((np.sign(scores[0] - scores[1]) + 1) / 2)
        both.append((own, float(np.mean(above))))
    discriminant, regression = np.array(both).mean(axis=0)
    return float(discriminant), float(regression)
