"""The schema for editors, against the reader: what one takes and refuses, the other does."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from pathlib import Path

import jsonschema
import pytest

from twinbed import registry
from twinbed.cli import main
from twinbed.study.declared import KEY, Declared, Subject, factor_paths, subjects, written
from twinbed.study.document import StudyError, parse, plain
from twinbed.study.factor import INSTRUMENTS, TESTBED
from twinbed.study.loading import load

REPOSITORY = Path(__file__).parents[3]
STUDIES = sorted((REPOSITORY / "studies").glob("*.yaml"))
SCHEMA = json.loads((REPOSITORY / "studies/schema.json").read_text(encoding="utf-8"))
VALIDATOR = jsonschema.Draft7Validator(SCHEMA)
SUBJECTS = subjects(registry.catalogue())
PLUGINS = [each for each in SUBJECTS if each.sort != KEY]
MANUAL = [(REPOSITORY / "docs" / page).read_text(encoding="utf-8") for page in ("study-design.md", "study-file.md")]
EXAMPLES = [text for page in MANUAL for text in re.findall(r"^```yaml\n(.*?)^```$", page, re.MULTILINE | re.DOTALL)]
REST = {
    "study": "study: x",
    "testbeds": "testbeds: {container: {driver: container}, guest: {driver: qemu}}",
    "workload": "workload: {kind: http}",
}


def completed(text: str) -> str:
    given = set(re.findall(r"^(\w+):", text, re.MULTILINE))
    return text + "\n" + "".join(line + "\n" for key, line in REST.items() if key not in given)


def mistakes(text: str) -> list[str]:
    """What the schema says of a study."""
    node = parse(text, "x", [])
    assert node is not None
    return [error.message for error in VALIDATOR.iter_errors(plain(node))]


def problems(text: str) -> list[str]:
    """What the reader says."""
    try:
        load(text, "x.yaml", registry.catalogue())
    except StudyError as error:
        return [str(problem) for problem in error.problems]
    return []


def test_it_is_a_schema_and_the_one_of_the_studies_is_up_to_date(capsys: pytest.CaptureFixture[str]) -> None:
    jsonschema.Draft7Validator.check_schema(SCHEMA)
    assert main.run(["schema"]) == 0
    assert capsys.readouterr().out == (REPOSITORY / "studies/schema.json").read_text(encoding="utf-8"), (
        "run: twinbed schema -o studies/schema.json"
    )


@pytest.mark.parametrize("path", STUDIES, ids=lambda path: path.stem)
def test_every_ready_study_passes_and_names_it(path: Path) -> None:
    text = path.read_text(encoding="utf-8")
    assert text.splitlines()[0] == "# yaml-language-server: $schema=schema.json"
    assert mistakes(text) == []


@pytest.mark.parametrize("text", EXAMPLES[:-1])  # the last one shows what a mistake looks like
def test_every_example_of_the_manual_passes(text: str) -> None:
    assert mistakes(completed(text)) == []


@pytest.mark.parametrize("subject", SUBJECTS, ids=lambda each: each.name)
def test_every_example_of_a_subject_passes(subject: Subject) -> None:
    assert mistakes(completed(subject.example)) == []


def with_setting(subject: Subject, setting: Declared, value: object) -> str:
    """A study that gives one setting of a plugin or of the topology a value."""
    needed = plain(parse(subject.example, "x", []) or pytest.fail())
    assert isinstance(needed, Mapping)
    (key, section), *_ = needed.items()
    inner = dict(section)
    for step in {"driver": ("mine",), "instrument": (subject.name,)}.get(subject.sort, subject.name.split(".")[1:]):
        inner = dict(inner[step])
    if subject.sort == "key":
        inner = {}
    inner[setting.name] = value
    for step in reversed({"driver": ("mine",), "instrument": (subject.name,)}.get(subject.sort, subject.name.split(".")[1:])):
        inner = {step: inner}
    return completed(f"{key}: {written(inner)}")


SETTINGS = {
    setting: subject
    for subject in SUBJECTS
    if subject.sort != KEY or subject.path
    for setting in subject.settings
    if setting.name != subject.name
}
"""Each once, of one of those that have it."""


@pytest.mark.parametrize(("setting", "subject"), SETTINGS.items(), ids=lambda each: each.name)
def test_what_the_reader_refuses_of_a_setting_the_schema_does(subject: Subject, setting: Declared) -> None:
    """Values of a wrong type, beyond bounds, and no choices; and those that are right."""
    tried: list[object] = [{"no": "such"}, ["a", "list"], "no such thing"]
    for kind in setting.kinds:
        at = kind.bounds
        tried += [end - 1 for end in (at.least, at.above) if end is not None]
        tried += [end + 1 for end in (at.most, at.below) if end is not None]
    refused = 0
    for value in tried:
        text = with_setting(subject, setting, value)
        wrong = [each for each in problems(text) if f"{setting.name}" in each.split(": ")[1]]
        if wrong and not takes_any_text(setting, value):
            assert mistakes(text), (value, wrong)
            refused += 1
    assert refused
    for example in setting.examples:
        assert mistakes(with_setting(subject, setting, example)) == [], example


def takes_any_text(setting: Declared, value: object) -> bool:
    """A text whose form only the reader knows, such as a path that must be there."""
    return isinstance(value, str) and any(
        kind.json == "string" and not kind.choices and not kind.pattern for kind in setting.kinds
    )


@pytest.mark.parametrize(
    "text",
    [
        "stdy: x",
        "testbeds: {a: {driver: containr}}",
        "testbeds: {a: {driver: container, nic: e1000}}",
        "testbeds: {a: {}}",
        "testbeds: {'a b': {driver: container}}",
        "testbeds: {m: {driver: mixed, client: {driver: container}}}",
        "testbeds: {m: {driver: mixed, client: {driver: nothing}, server: {driver: qemu}}}",
        "testbeds: {r: {driver: remote, hosts: {client: 5, server: root@s1}}}",
        "study: 'not a name'",
        "topology: {link: {rate: 100Mbps}}",
        "topology: {link: {rate: lots}}",
        "topology: {link: {bandwidth: 100mbit}}",
        "topology: [pairs]",
        "workload: {kind: http, payload: 16KIB}",
        "workload: {kind: http, keepalive: on}",
        "workload: {tool: ab}",
        "background: {kind: stress, cpus: 2}",
        "background: {stress: {cpu: 2}, trafic: {tcp: 1}}",
        "factors: {paylod: [500B, 1MiB]}",
        "factors: {payload: 500B}",
        "factors: {payload: []}",
        "factors: {payload: [500X]}",
        "factors: {testbed: container}",
        "factors: {instruments: [none, packet]}",
        "factors: {payload: {log_unifrm: [500B, 1MiB], samples: 4}}",
        "factors: {hypercube: {payload: {uniform: [500B, 1MiB]}}}",
        "factors: {hypercube: {samples: 4, paylod: {uniform: [500B, 1MiB]}}}",
        "uncertain: {payload: {uniform: [500B, 1MiB]}}",
        "uncertain: {samples: 0, payload: {uniform: [500B, 1MiB]}}",
        "exclude: [stal]",
        "exclude: {testbed: container}",
        "instruments: [packts]",
        "instruments: {packets: {snaplen: 1}}",
        "instruments: packets",
        "replicates: 0",
        "replicates: {least: 5}",
        "order: shuffled",
        "margin: 2",
        "confidence: 0.1",
        "tables: [{title: x, metric: rtt}]",
        "tables: [{title: x, metric: rtt, rows: [payload], unit: minutes}]",
        "profiles: {quick: {replicats: 2}}",
        "profiles: {quick: [replicates]}",
    ],
)
def test_what_is_wrong_is_wrong_in_both(text: str) -> None:
    study = completed(text)
    assert problems(study)
    assert mistakes(study)


def test_every_factor_of_the_reader_is_known_and_no_other() -> None:
    names = set(SCHEMA["else"]["properties"]["factors"]["properties"])
    paths = factor_paths(registry.catalogue())
    leaves = {path.rpartition(".")[2] for path in paths}
    known = {name for name in names if name.rpartition(".")[2] in leaves}
    assert names - known == {TESTBED, INSTRUMENTS, "hypercube"}
    mappings = {"client", "server", "router", "metrics", "work", "files", "roles", "events"}
    assert {leaf for leaf in leaves if leaf not in names} <= mappings
