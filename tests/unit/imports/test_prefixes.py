"""Lines with what a harness wrote before each of them: read without it, and said."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from twinbed import registry
from twinbed.cli.main import run
from twinbed.imports.text.source import prefixes
from twinbed.results.extract import extract
from twinbed.results.store import Store

BODY = (Path(__file__).parents[2] / "golden/formats/ping/iputils/input.txt").read_text()
PREFIXED = {
    "label": lambda line, _: f"[OUTPUT] {line}",
    "task": lambda line, _: f"[task-3.out]{' ' if line else ''}{line}",
    "host": lambda line, _: f"node1: {line}",
    "compose": lambda line, _: f"client-1  | {line}",
    "date": lambda line, at: f"2026-01-01T10:00:{at % 60:02}.250+01:00 {line}",
    "day": lambda line, at: f"10:00:{at % 60:02}.5 {line}",
    "epoch": lambda line, at: f"[{1_700_000_000 + at}.25] {line}",
    "log": lambda line, at: f"Jan  1 10:00:{at % 60:02} {line}",
}


def rtt(results: Path) -> dict[str, float]:
    store = Store.open(results)
    testbed = {each.id: str(each.levels["testbed"]) for each in store.records}
    rows = extract(results, registry.PLUGINS.read, {}).table("metrics").to_pylist()
    return {testbed[row["run"]]: row["value"] for row in rows if row["metric"] == "probe_rtt_mean"}


def test_what_a_harness_writes_before_each_line_is_taken_off_and_said(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    texts = {name: [each(line, at) for at, line in enumerate(BODY.split("\n"))] for name, each in PREFIXED.items()}
    texts["plain"] = BODY.split("\n")
    for name, lines in texts.items():
        (tmp_path / "in" / name).mkdir(parents=True)
        (tmp_path / "in" / name / "1.txt").write_text("\n".join(lines))
    arguments = ["import", str(tmp_path / "in"), "-o", str(tmp_path / "out"), "--reference", "plain"]
    assert run([*arguments, "--pattern", "{testbed}/{replicate:int}.txt", "--format", "json"]) == 0
    outcomes = {each["testbed"]: each["reason"] for each in json.loads(capsys.readouterr().out)["outcomes"]}
    assert {name for name, reason in outcomes.items() if "each line is read without" in reason} == set(PREFIXED)
    assert "'[OUTPUT]'" in outcomes["label"] and "'node1:'" in outcomes["host"]
    # Read again from the results, as an extraction does.
    found = rtt(tmp_path / "out")
    assert set(found) == set(texts) and set(found.values()) == {found["plain"]}


@pytest.mark.parametrize(
    "text",
    [
        "[OUTPUT] a\nb\n",
        "[OUTPUT] a\n[OTHER] b\n",
        "node1: a\nnode2: b\n",
        "[OUTPUT] a\n",
        "[ 5] a\n[ 5] b\n",
    ],
)
def test_what_not_all_lines_have_alike_is_no_prefix(text: str) -> None:
    assert not list(prefixes(text.encode()))
