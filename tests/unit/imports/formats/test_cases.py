"""Every format against its cases, and every case's file recognised by its own format alone."""

from __future__ import annotations

from typing import Any

import pytest
import second_reading

from format_cases import Case, cases
from twinbed.contracts.format import FormatError, Measurement
from twinbed.imports.text.source import File
from twinbed.metrics.metric import Metric
from twinbed.registry import PLUGINS

CASES = list(cases())
BY_PROGRAMS = {"capture", "perf-data"}
"""Their second reading asks tshark, tcptrace and perf: not in each run of the tests."""


READ_TWICE = {*second_reading.OF_CASES, *second_reading.TEXT_READERS} - BY_PROGRAMS


@pytest.mark.parametrize("case", [case for case in CASES if case.format in READ_TWICE], ids=str)
def test_a_second_reading_agrees(case: Case) -> None:
    """On the numbers that a case expects; the second reading knows no measurement in some of the damaged files."""
    if isinstance(case.expected, dict):
        return
    found = second_reading.second(case.format, case.folder)
    assert len(found) in (0, len(case.expected))
    for sums, one in zip(found, case.expected, strict=False):
        assert not list(second_reading.differing(sums, one.get("values", {})))


@pytest.mark.parametrize("case", CASES, ids=str)
def test_a_case(case: Case) -> None:
    expected = case.expected
    _gives_reasons(case)
    source = File(case.input, case.input.name)
    if isinstance(expected, dict):
        with pytest.raises(FormatError) as refused:
            PLUGINS.formats[case.format].read(source, case.options)
        assert expected["error"] in str(refused.value)
        return
    found = PLUGINS.formats[case.format].read(source, case.options)
    assert len(found) == len(expected)
    for measurement, one in zip(found, expected, strict=True):
        _agrees(measurement, one)


def _gives_reasons(case: Case) -> None:
    how = (case.folder / "how.md").read_text()
    assert how.strip(), "a case says how its expected values were got"
    for one in case.expected if isinstance(case.expected, list) else ():
        for name in one.get("others", ()):
            assert f"`{name}`" in how, f"{name} is held by nothing, and how.md does not say why"


def _agrees(measurement: Measurement, expected: dict[str, Any]) -> None:
    values = {_name(value): value.value for value in measurement.values}
    assert len(values) == len(measurement.values), "a value is given twice"
    named = expected.get("values", {})
    for name, number in named.items():
        assert name in values, f"{name} is not among {sorted(values)}"
        assert values[name] == (number if number is None else pytest.approx(number, rel=1e-9)), name
    numbers = {name for name, number in values.items() if number is not None}
    assert sorted(numbers - set(named)) == sorted(expected.get("others", ())), "a value that no expectation names"
    for name, rows in expected.get("tables", {}).items():
        assert measurement.tables[name].num_rows == rows, name
    if "cautions" in expected:
        assert [caution.kind.name.lower() for caution in measurement.cautions] == expected["cautions"]
    if "flaws" in expected:
        assert [diagnostic.line for diagnostic in measurement.diagnostics] == expected["flaws"], [
            str(diagnostic) for diagnostic in measurement.diagnostics
        ]
    for name, fact in expected.get("facts", {}).items():
        assert measurement.facts.get(name) == fact, name
    if "of" in expected:
        assert measurement.run_key is not None
        of = {
            "testbed": measurement.run_key.testbed,
            "levels": dict(measurement.run_key.levels),
            "replicate": measurement.run_key.replicate,
        }
        assert (of if measurement.run_key.known else None) == expected["of"]
    if "started_s" in expected:
        assert measurement.started_s == pytest.approx(expected["started_s"])


def _name(value: Any) -> str:
    name = f"{value.metric}@{value.host}" if value.host else value.metric
    return f"{name}>{value.direction}" if value.direction else name


@pytest.mark.parametrize("case", CASES, ids=str)
def test_a_file_is_recognised_by_one_format(case: Case) -> None:
    head = File(case.input, case.input.name).head()
    found = [name for name, each in PLUGINS.formats.items() if each.recognises(head)]
    by_hand = case.format.startswith("generic-")
    assert found == ([] if by_hand else [case.format])


def test_every_format_has_cases_and_declares_its_metrics() -> None:
    assert {case.format for case in CASES} == set(PLUGINS.formats)
    declared: dict[str, tuple[object, ...]] = {}
    for plugin in (*PLUGINS.workloads.values(), *PLUGINS.accompanying.values(), *PLUGINS.formats.values()):
        for metric in plugin.metrics:
            known = declared.setdefault(metric.name, _about(metric))
            assert _about(metric) == known, f"{metric.name} of {plugin.name} is declared otherwise elsewhere"
    for name, each in PLUGINS.formats.items():
        assert name == each.name
        assert not each.work or each.work in {metric.name for metric in each.metrics}
        assert not each.rate or each.rate in {metric.name for metric in each.metrics}


def _about(metric: Metric) -> tuple[object, ...]:
    return metric.unit, metric.layer, metric.scale, metric.extensive
