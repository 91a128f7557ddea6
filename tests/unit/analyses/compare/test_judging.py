"""Who judges makes no difference: this process, others, how many they are, and whether they die of it."""

from __future__ import annotations

import json
import math
import pickle
import random
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any, TypeVar

import pytest

from command import twinbed
from deaths import die_once
from synthetic_results import write_study
from twinbed.analyses.compare import judging
from twinbed.analyses.compare.decision import Case, Nature, Rules
from twinbed.analyses.compare.judging import judged
from twinbed.analyses.compare.method import analysis as compare
from twinbed.analyses.compare.rows import as_csv, order_rows, rows
from twinbed.executor import Executor, Here
from twinbed.executor.local import Processes
from twinbed.metrics.metric import Scale
from twinbed.model.comparison import Comparisons
from twinbed.observations.units import Arranged
from twinbed.report.advice.analysis import advise
from twinbed.report.advice.study import Settings
from twinbed.results.extract import extract
from twinbed.results.store import Store
from twinbed.statistics import bootstrap
from twinbed.statistics.sample import Sample
from twinbed.workloads.planted import planted

T = TypeVar("T")
R = TypeVar("R")
REPLICATES = 12
RULES = Rules(0.1, 0.05, 0.95)


@dataclass
class Watched:
    """An executor that notes the sizes of its tasks. Whoever is first given a task of the numbers in ``deadly`` dies of it, and
    leaves a file below ``marks``."""

    executor: Executor
    marks: Path = Path()
    deadly: frozenset[int] = frozenset()
    sizes: list[int] = field(default_factory=list)
    workers: int = 0

    def map(self, function: Callable[[T], R], arguments: Iterable[T]) -> Iterator[R]:
        tasks = list(arguments)
        self.sizes += [len(task) for task in tasks]  # type: ignore[arg-type]
        return self.executor.map(partial(_carried_out, function, self.marks, self.deadly), enumerate(tasks))


def _carried_out(function: Callable[[T], R], marks: Path, deadly: frozenset[int], task: tuple[int, T]) -> R:
    number, argument = task
    if number in deadly:
        die_once(marks / str(number))
    return function(argument)


@pytest.fixture(scope="module")
def results(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Two testbeds beside the reference, in four cells, with an outlier each, which asks for the bootstrap."""
    noise = random.Random(5)

    def respond(testbed: str, levels: Mapping[str, Any], replicate: int) -> Mapping[str, float | None]:
        rate = 1000 * math.exp(noise.gauss(0.02 * (testbed == "b"), 0.03)) * (4 if replicate == 7 else 1)
        requests = round(rate * 10)
        return {"requests": requests, "requests_per_second": rate, "packets": requests * 10, "bytes": requests * 1200}

    factors = {"payload": ["500B", "1MiB"], "offload": ["on", "off"]}
    return write_study(tmp_path_factory.mktemp("results"), ["ref", "a", "b"], factors, REPLICATES, respond)


@pytest.fixture(scope="module")
def tables(results: Path) -> Store:
    return extract(results, {"planted": planted}, {})


@pytest.fixture(scope="module")
def alone(tables: Store) -> Comparisons:
    """By this process."""
    return compare.run(tables)


def text(result: Comparisons) -> str:
    """All that is computed of values, to the last digit."""
    return as_csv(result.comparisons) + json.dumps(
        [rows(result.comparisons), order_rows(result.orderings), list(map(str, result.cautions))]
    )


@pytest.mark.parametrize(
    ("executor", "deadly"),
    [(Here(), ()), (Processes(1), ()), (Processes(3), ()), (Processes(2), (1, 4))],
    ids=["here", "one", "three", "killed"],
)
def test_comparisons_are_the_same_bytes_whoever_judges_and_dies(
    tables: Store,
    alone: Comparisons,
    monkeypatch: pytest.MonkeyPatch,
    executor: Executor,
    deadly: tuple[int, ...],
    tmp_path: Path,
) -> None:
    assert sum(each.bootstrap_interval is not None for each in alone.comparisons) >= 16
    monkeypatch.setattr(judging, "BATCH", 10_000)
    watched = Watched(executor, tmp_path, frozenset(deadly))
    by_many = compare.run_on(watched, tables)
    assert len(watched.sizes) > 8
    assert sum(watched.sizes) == len(alone.comparisons) == 48
    assert {path.name for path in tmp_path.iterdir()} == set(map(str, deadly))
    assert by_many == alone
    assert text(by_many) == text(alone)


def test_the_samples_of_a_comparison_stay_those_of_its_tables(tables: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    """What comes back from a worker brings none along: results would hold every value several times."""
    monkeypatch.setattr(judging, "BATCH", 10_000)
    result = compare.run_on(Processes(2), tables)
    reference = {id(each.estimate.values) for each in result.estimates if each.testbed == "ref"}
    assert {id(each.reference_estimate.values) for each in result.comparisons} == reference


def test_rules_of_settings_are_the_same_whoever_judges(tables: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    by_one = advise([tables], Settings(everything=True))
    monkeypatch.setattr(judging, "BATCH", 10_000)
    watched = Watched(Processes(2))
    assert advise([tables], Settings(everything=True), watched) == by_one
    assert sum(watched.sizes) > 48, "beside testbeds, levels of offload are held against each other"


def test_the_command_says_the_same_on_any_number_of_processes(results: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(judging, "BATCH", 10_000)
    asked = [twinbed("compare", results, "--all", "--format", "json", "--on", f"local:{workers}") for workers in (1, 2, 3)]
    assert len(json.loads(asked[0].stdout)["comparisons"]) == 48
    assert [each.stdout for each in asked[1:]] == [asked[0].stdout] * 2


@pytest.mark.parametrize(
    "command", [("compare",), ("report", "--csv", "-o", "-"), ("advise",), ("export", "--latex", "-o", "paper")]
)
def test_commands_hand_their_comparisons_to_what_on_names(
    results: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, command: tuple[str, ...]
) -> None:
    monkeypatch.setattr(judging, "BATCH", 10_000)
    there: list[int] = []

    def counted(self: Processes, function: Callable[[T], R], arguments: Iterable[T]) -> Iterator[R]:
        there.append(self.workers)
        return map(function, arguments)

    monkeypatch.setattr(Processes, "map", counted)
    name, *options = command
    assert twinbed(name, results, *options, "--on", "local:7", cwd=tmp_path).returncode in (0, 4, 5)
    assert set(there) == {7}


def sample(noise: random.Random, size: int) -> Sample:
    return Sample([math.exp(noise.gauss(0, 0.1)) for _ in range(size)])


def cases(number: int, size: int, *, skewed: bool = False) -> list[Case]:
    """Several samples against one reference."""
    noise = random.Random(1)
    reference = sample(noise, size)
    ones = [sample(noise, size) for _ in range(number)]
    return [Case(Scale.RATIO, one, reference, Arranged(one, reference), Nature(), RULES, skewed) for one in ones]


def test_few_comparisons_start_no_worker() -> None:
    class Nobody:
        workers = 8

        def map(self, function: object, arguments: object) -> Iterator[Any]:
            raise AssertionError("there is too little to do")

    for few in ([], cases(100, 30), cases(5, 30, skewed=True)):
        assert len(list(judged(few, Nobody()))) == len(few)


@pytest.mark.parametrize(
    ("number", "size", "skewed"),
    [(2000, 30, False), (60, 30, True), (5, bootstrap.MANY - 1, True), (200, 5000, True)],
)
def test_many_or_large_ones_are_worth_workers(number: int, size: int, skewed: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(judging, "judge", lambda case: case)
    watched = Watched(Here())
    many = cases(number, size, skewed=skewed)
    assert list(judged(many, watched)) == many
    assert len(watched.sizes) > 1
    assert max(watched.sizes[:-1]) - min(watched.sizes[:-1]) <= 1, "cases that are alike are cut evenly"


def test_what_is_sent_is_the_values_and_each_sample_once() -> None:
    """A float takes nine bytes as pickle writes it. What was computed of a sample here does not go along."""
    many = cases(20, 100)
    sent = pickle.dumps(many)
    for case in many:
        judging.judge(case)
    assert many[0].reference.ordered == sorted(many[0].reference)
    assert len(pickle.dumps(many)) == len(sent) < 9 * 100 * (len(many) + 1) + 200 * len(many)
    arrived = pickle.loads(sent)
    assert arrived == many
    assert type(arrived[0].reference) is Sample
    assert all(case.reference is arrived[0].reference is case.arranged.reference for case in arrived)
