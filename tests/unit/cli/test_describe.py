"""``twinbed describe`` against the declarations that check a study file: nothing is missing, every example is right."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from pydantic import BaseModel, TypeAdapter
from pydantic.fields import FieldInfo

from twinbed import registry
from twinbed.cli import main
from twinbed.study.declared import Declared, Subject, declared, subjects
from twinbed.study.document import parse, plain
from twinbed.study.loading import load
from twinbed.study.run import Choice
from twinbed.study.study import KEYS, Head

SUBJECTS = subjects(registry.catalogue())
NAMES = [*dict.fromkeys(subject.name for subject in SUBJECTS)]


def said(capsys: pytest.CaptureFixture[str], *names: str) -> str:
    assert main.run(["describe", *names]) == 0
    text = capsys.readouterr().out
    assert all(len(line) <= 80 for line in text.splitlines()), text
    return text


def models() -> Iterator[type[BaseModel]]:
    """All that a study file is checked by, and what is in them."""
    found: list[type[BaseModel]] = [Head, *(subject.model for subject in SUBJECTS if subject.model is not None)]
    for model in found:
        inner = (kind.model for setting in declared(model) for kind in setting.models)
        found += [each for each in dict.fromkeys(inner) if each is not None and each not in found]
        yield model


SETTINGS = [(model, setting) for setting, model in {each: model for model in models() for each in declared(model)}.items()]


@pytest.mark.parametrize(("model", "setting"), SETTINGS, ids=lambda each: getattr(each, "__name__", None) or each.name)
def test_every_setting_has_a_sentence_and_examples_that_are_right(model: type[BaseModel], setting: Declared) -> None:
    assert setting.about
    assert setting.examples or setting.models or any(len(kind.choices) == 1 for kind in setting.kinds)
    field = field_of(model, setting)
    adapter = TypeAdapter(field.rebuild_annotation())
    for example in setting.examples:
        adapter.validate_python(example)
    if setting.default:
        assert adapter.validate_python(plain(parse(setting.default, "x", []))) == field.default
    assert setting.null == accepts(adapter, None) or setting.kinds[0].name == "any value"


def field_of(model: type[BaseModel], setting: Declared) -> FieldInfo:
    return next(field for name, field in model.model_fields.items() if setting.name == (field.alias or name))


def accepts(adapter: TypeAdapter[object], value: object) -> bool:
    try:
        adapter.validate_python(value)
    except ValueError:
        return False
    return True


@pytest.mark.parametrize(("model", "setting"), SETTINGS, ids=lambda each: getattr(each, "__name__", None) or each.name)
def test_bounds_and_choices_are_those_that_are_checked(model: type[BaseModel], setting: Declared) -> None:
    adapter: TypeAdapter[object] = TypeAdapter(field_of(model, setting).rebuild_annotation())
    for kind in setting.kinds:
        assert all(accepts(adapter, choice) for choice in kind.choices)
        assert not kind.choices or not accepts(adapter, "no-such-choice")
        at = kind.bounds
        for end, inside in ((at.least, True), (at.most, True), (at.above, False), (at.below, False)):
            assert end is None or accepts(adapter, end) == inside
        assert at.least is None or not accepts(adapter, at.least - 1)
        assert at.most is None or not accepts(adapter, at.most + 1)


def test_without_a_name_everything_has_a_line(capsys: pytest.CaptureFixture[str]) -> None:
    lines = [line.split()[0] for line in said(capsys).splitlines() if line.startswith("  ")]
    plugins = registry.PLUGINS
    for names in (KEYS, plugins.drivers, plugins.workloads, plugins.backgrounds, plugins.instruments):
        assert set(names) <= set(lines)


@pytest.mark.parametrize("subject", SUBJECTS, ids=lambda subject: subject.name)
def test_a_subject_is_told_with_every_setting(subject: Subject, capsys: pytest.CaptureFixture[str]) -> None:
    text = said(capsys, subject.name)
    for setting in subject.settings:
        assert f"\n  {setting.name}" in text
    if subject.model is not None:
        assert {setting.name for setting in subject.settings} >= set(subject.model.model_fields)


@pytest.mark.parametrize("subject", SUBJECTS, ids=lambda subject: subject.name)
def test_the_example_of_a_subject_is_read(subject: Subject) -> None:
    """Put into a study that has what such an example speaks of."""
    key = subject.example.partition(":")[0]
    rest = {
        "study": "study: x",
        "testbeds": "testbeds: {container: {driver: container}, guest: {driver: qemu}}",
        "workload": "workload: {kind: http}",
        "factors": "factors: {payload: [500B, 1MiB]}",
    }
    if key in ("workload", "uncertain", "topology"):
        del rest["factors"]
    text = "\n".join([subject.example, *(line for name, line in rest.items() if name != key)])
    assert load(text, "example.yaml", registry.catalogue()).cells


def test_a_setting_is_found_wherever_it_is(capsys: pytest.CaptureFixture[str]) -> None:
    text = said(capsys, "payload")
    assert "In workload http:" in text and "In workload iperf3:" in text
    assert "from 1B to 64GiB" in text and "from 1B to 1MiB" in text
    assert said(capsys, "topology.link.rate").startswith("In topology.link:\n  rate\n")


def test_every_metric_is_described_with_what_measures_it(capsys: pytest.CaptureFixture[str]) -> None:
    text = said(capsys, "metric", "transfer_rate", "packets_per_request")
    assert "unit: bytes/s" in text and "measured by: workload http" in text
    assert "measured by: workload planted, instrument packets" in text
    every = said(capsys, "metric")
    http = Choice("http", registry.PLUGINS.workloads["http"].params())
    for name in registry.metrics(http, tuple(registry.PLUGINS.accompanying)):
        assert f"\n  {name} " in f"\n{every}" or "_per_" in name


def test_every_factor_is_described_with_levels_that_are_right(capsys: pytest.CaptureFixture[str]) -> None:
    assert "example: factors: {payload: [500B, 16KiB]}" in said(capsys, "factor", "payload")
    for name in ("keep_alive", "vcpus", "rate", "testbed", "instruments"):
        said(capsys, "factor", name)
    assert "warm_up_requests" in said(capsys, "factor")


@pytest.mark.parametrize(
    ("names", "near"),
    [
        (["htpp"], "http"),
        (["paylod"], "payload"),
        (["metric", "request_per_second"], "requests_per_second"),
        (["factor", "vcpu"], "vcpus"),
    ],
)
def test_an_unknown_name_is_told_the_nearest(names: list[str], near: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main.run(["describe", *names]) == 2
    assert f"Did you mean '{near}'" in capsys.readouterr().err


@pytest.mark.parametrize("name", NAMES)
def test_names_are_told_apart(name: str) -> None:
    plugins = [subject for subject in SUBJECTS if subject.name == name]
    assert len(plugins) == 1
