"""``keep`` of a study file: what it resolves to, and what is said of a wrong one."""

from __future__ import annotations

import pytest

from twinbed import design, registry
from twinbed.model.keep import Keep, Word
from twinbed.study.document import StudyError
from twinbed.study.loading import load
from twinbed.study.study import Study

STUDY = """study: less
testbeds: {a: {driver: container}}
workload: {kind: http}
background: {kind: stress, cpu: 1}
instruments: [packets, counters]
replicates: 2
"""


def read(keep: str = "", *overrides: str) -> Study:
    return load(f"{STUDY}{keep}\n", "less.yaml", registry.catalogue(), overrides)


@pytest.mark.parametrize(
    ("keep", "expected", "shown"),
    [
        ("", Keep(), "everything"),
        ("keep: everything", Keep(), "everything"),
        ("keep: headers", Keep(Word.HEADERS), "headers"),
        ("keep: {default: tables}", Keep(Word.TABLES), "tables"),
        ("keep: {packets: tables}", Keep(of={"packets": Word.TABLES}), "packets=tables, default=everything"),
        (
            "keep: {http: everything, packets: headers, stress: tables, default: tables}",
            Keep(Word.TABLES, {"http": Word.EVERYTHING, "packets": Word.HEADERS}),
            "http=everything, packets=headers, default=tables",
        ),
    ],
)
def test_what_it_resolves_to(keep: str, expected: Keep, shown: str) -> None:
    study = read(keep)
    assert (study.keep, str(study.keep)) == (expected, shown)
    assert study.to_json().get("keep", "everything") == expected.to_json()


def test_it_is_no_setting_of_runs() -> None:
    assert [run.id for run in design.runs(read("keep: tables"))] == [run.id for run in design.runs(read())]


def test_by_an_override() -> None:
    assert read("", "keep=headers").keep == Keep(Word.HEADERS)
    assert read("keep: {counters: tables}", "keep.packets=headers").keep == Keep(
        of={"counters": Word.TABLES, "packets": Word.HEADERS}
    )


def test_an_instrument_that_a_level_alone_names() -> None:
    study = read("factors: {instruments: [none, [packets, counters], [packets, counters, latency]]}\nkeep: {latency: tables}")
    assert study.keep.word("latency") is Word.TABLES and study.keep.word("packets") is Word.EVERYTHING


@pytest.mark.parametrize(
    ("keep", "says"),
    [
        (
            "keep: table",
            "less.yaml:7:7: keep: 'table' is not known; allowed: everything, headers or tables; did you mean 'tables'?",
        ),
        (
            "keep: {paket: tables}",
            "less.yaml:7:8: keep.paket: is not an instrument, workload or background load of this study; "
            "allowed: http, packets, counters, stress, default; did you mean 'packets'?",
        ),
        (
            "keep: {latency: tables}",
            "less.yaml:7:8: keep.latency: is not an instrument, workload or background load of this study; "
            "allowed: http, packets, counters, stress, default",
        ),
        (
            "keep: {packets: header}",
            "less.yaml:7:17: keep.packets: 'header' is not known; "
            "allowed: everything, headers, tables; did you mean 'headers'?",
        ),
        (
            "keep: {packets: [tables]}",
            "less.yaml:7:17: keep.packets: is not a single value; allowed: everything, headers, tables",
        ),
        ("keep: {packets: 1}", "less.yaml:7:17: keep.packets: 1 is not known; allowed: everything, headers, tables"),
    ],
)
def test_what_is_said_of_a_wrong_one(keep: str, says: str) -> None:
    with pytest.raises(StudyError) as caught:
        read(keep)
    assert [str(problem) for problem in caught.value.problems] == [says]
