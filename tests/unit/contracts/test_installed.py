"""Plug-ins of installed packages: found by name, imported when asked for, and never in place of a built-in."""

from __future__ import annotations

import json
import pickle
import sys
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path

import pytest

from plugin_packages import forget, unpacked
from twinbed import registry
from twinbed.cli.main import run as main
from twinbed.contracts.installed import PluginError, offered, refuse_lack, requirements
from twinbed.study.loading import load
from twinbed.study.schema import schema

STUDY = "study: echoes\ntestbeds: {a: {driver: container}}\nworkload: {kind: echo, count: 3}\nreplicates: 1\n"
Put = Callable[..., None]
STRESS = "[twinbed.instruments]\nstress = twinbed_echo:workload"


@pytest.fixture
def put(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Iterator[Put]:
    def package(name: str = "", points: str = "", modules: Mapping[str, str] | None = None) -> None:
        unpacked(monkeypatch, tmp_path, name, points, modules)

    yield package
    forget()


@pytest.fixture
def output(capsys: pytest.CaptureFixture[str]) -> Callable[[], str]:
    def both() -> str:
        captured = capsys.readouterr()
        return " ".join((captured.out + captured.err).split())

    return both


def test_built_ins_are_found_without_reading_metadata(monkeypatch: pytest.MonkeyPatch) -> None:
    def refused(kind: str) -> object:
        raise AssertionError(f"metadata of {kind} are read")

    monkeypatch.setattr("twinbed.contracts.installed.offered", refused)
    assert registry.PLUGINS.workloads["http"].name == "http"
    assert "container" in registry.PLUGINS.drivers and "packets" in registry.PLUGINS.accompanying
    assert load(STUDY.replace("echo, count: 3", "http"), "x.yaml", registry.catalogue()).cells
    with pytest.raises(AssertionError, match="workloads"):
        "unknown" in registry.PLUGINS.workloads  # noqa: B015


def test_a_plug_in_is_imported_when_it_is_asked_for(put: Put) -> None:
    put()
    assert set(offered("workloads")) == {"echo"} and "echo" in registry.PLUGINS.workloads
    assert "twinbed_echo" not in sys.modules
    (cell,) = load(STUDY, "x.yaml", registry.catalogue()).cells
    assert "twinbed_echo" in sys.modules and cell.workload.params.model_dump() == {"count": 3}
    assert requirements([("workloads", "echo"), ("workloads", "http")]) == {"workloads.echo": "twinbed-echo==1.0"}
    assert "echo" in json.dumps(schema(registry.catalogue()))
    assert registry.formats()["echo-text"].work == "answers" and "echoes" in registry.analysis_names()
    again = pickle.loads(pickle.dumps(registry.PLUGINS.read))
    assert again["echo"].name == "echo" and again["imported"].name == "imported"


def test_settings_of_a_plug_in_are_checked_with_their_line(put: Put, output: Callable[[], str], tmp_path: Path) -> None:
    put()
    file = tmp_path / "wrong.yaml"
    file.write_text(STUDY.replace("count: 3", "count: 0"))
    assert main(["plan", str(file)]) == 2
    assert "wrong.yaml:3:31: workload.count: 0 is not allowed; allowed: greater than or equal to 1" in output()


def test_no_package_replaces_a_built_in(put: Put, output: Callable[[], str]) -> None:
    builtin = registry.PLUGINS.workloads["http"]
    put(
        "twinbed-made",
        "[twinbed.workloads]\nhttp = twinbed_echo:workload\n" + STRESS,
    )
    assert registry.PLUGINS.workloads["http"] is builtin and list(registry.PLUGINS.workloads).count("http") == 1
    assert "stress" not in registry.PLUGINS.instruments
    assert main(["test-plugin", "twinbed-made"]) == 1
    text = output()
    assert "workload http of twinbed-made 1.0 has the name of twinbed's own http, which no package replaces" in text
    assert "instrument stress of twinbed-made 1.0 has the name of twinbed's own stress" in text


def test_two_packages_with_one_name_are_both_named(put: Put) -> None:
    put()
    put("twinbed-made", "[twinbed.workloads]\necho = twinbed_echo:workload")
    with pytest.raises(PluginError, match=r"has the name of the workload echo of twinbed-.*; remove one of the two"):
        registry.PLUGINS.workloads["echo"]


BROKEN = {
    "import no_such_module": "cannot be loaded: ModuleNotFoundError: No module named 'no_such_module'",
    "raise SystemExit(3)": "cannot be loaded: SystemExit: 3",
    "workload = (": "cannot be loaded: SyntaxError",
    "other = 1": "cannot be loaded: AttributeError",
    "workload = 1": "is no Workload: twinbed_made:workload is a int",
}


@pytest.mark.parametrize("source", BROKEN)
def test_a_broken_plug_in_breaks_only_what_needs_it(source: str, put: Put, output: Callable[[], str], tmp_path: Path) -> None:
    put("twinbed-made", "[twinbed.workloads]\necho = twinbed_made:workload", {"twinbed_made.py": source + "\n"})
    file, other = tmp_path / "needs.yaml", tmp_path / "other.yaml"
    file.write_text(STUDY)
    other.write_text(STUDY.replace("echo, count: 3", "http"))
    said = f"workload echo of twinbed-made 1.0 {BROKEN[source]}"
    assert "echo" not in list(registry.PLUGINS.workloads)
    for arguments, code in ((["plan", str(other)], 0), (["describe"], 0), (["schema"], 0), (["test-plugin", "echo"], 1)):
        assert main(arguments) == code, arguments
    assert said in output()
    for arguments in (["plan", str(file)], ["describe", "echo"]):
        assert main(arguments) == 2
        text = output()
        assert text.count(said) == 1 and "twinbed test-plugin twinbed-made" in text


def test_a_broken_analysis_is_listed_and_refused(put: Put, output: Callable[[], str]) -> None:
    put("twinbed-made", "[twinbed.analyses]\nmine = twinbed_made:analysis", {"twinbed_made.py": "import no_such_module\n"})
    assert main(["analyse", "--help"]) == 0
    assert "mine Of twinbed-made 1.0." in output()
    assert main(["analyse", "mine", "results"]) == 2
    assert "analysis mine of twinbed-made 1.0 cannot be loaded" in output()
    assert main(["mine"]) == 2
    assert "It is 'twinbed analyse mine'" in output()


def test_a_promise_that_is_not_kept_has_its_reason(put: Put, output: Callable[[], str]) -> None:
    source = """
from twinbed_echo import Echo, EchoParams
from twinbed.contracts.command import Command
from twinbed.contracts.workload import WorkloadPlan

class Params(EchoParams):
    bare: int = 1

class Wrong(Echo):
    name, params, rate = "wrong", Params, "speed"

    def plan(self, params, pairs):
        return WorkloadPlan(servers=[Command("elsewhere", ("sh", "-c", "true"))])

    def parse(self, params, artifacts):
        return None

workload = Wrong()
"""
    put()
    put("twinbed-made", "[twinbed.workloads]\nwrong = twinbed_made:workload", {"twinbed_made.py": source})
    assert main(["test-plugin", "wrong", "--no-run"]) == 1
    text = output()
    for wrong in (
        "FAILS bare",
        "speed is no metric",
        "sh is for elsewhere; sh is a shell",
        "sh has 0 signs",
        "clients are on []",
    ):
        assert wrong in text, wrong
    assert "FAILS it reads a folder without artifacts" in text
    assert main(["test-plugin", "no-such-thing"]) == 2
    assert "packages with plug-ins: " in output()


def test_a_machine_without_a_package_is_named_with_what_it_needs(put: Put) -> None:
    put()
    refuse_lack({"workloads.echo": "twinbed-echo==1.0"}, "it")
    with pytest.raises(
        PluginError, match=r"it lacks the workload echo of twinbed-echo==2.0 \(it has twinbed-echo==1.0\)"
    ) as other:
        refuse_lack({"workloads.echo": "twinbed-echo==2.0"}, "it")
    assert other.value.advice == "there: pip install twinbed-echo==2.0"
    with pytest.raises(PluginError, match="it lacks the instrument ruler of ruler==1"):
        refuse_lack({"instruments.ruler": "ruler==1"}, "it")
