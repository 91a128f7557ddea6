"""Rules of thumb from studies whose truth is planted: the right sentences are known beforehand."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
from benchmarks.simulated.little import InMemory
from benchmarks.simulated.ruled import PAYLOADS, study

import twinbed
from synthetic_results import write_study
from twinbed import registry
from twinbed.cli.main import run
from twinbed.model.caution import Kind
from twinbed.model.comparison import FEW
from twinbed.model.run import Level
from twinbed.model.units import parse_size
from twinbed.report.advice.analysis import advise
from twinbed.report.advice.page import page
from twinbed.report.advice.result import Advice, Rule, Topic
from twinbed.report.advice.rows import document
from twinbed.report.advice.study import Settings
from twinbed.report.advice.text import WIDTH, markdown, text
from twinbed.results.extract import extract

BY_PAYLOAD: Mapping[str, list[Level]] = {"payload": [*PAYLOADS]}


def boundary(testbed: str, levels: Mapping[str, Level]) -> float:
    """virtio is as the physical testbed from 64 KiB on and at two thirds below, e1000 here and there."""
    small = parse_size(levels["payload"]) < 65536
    of_e1000 = {"500B": 1.0, "4KiB": 0.5, "64KiB": 1.0, "1MiB": 1.0}
    return {"physical": 1.0, "virtio": 0.66 if small else 1.0, "e1000": of_e1000[str(levels["payload"])]}[testbed]


def of(advice: Advice, testbed: str, topic: Topic = Topic.STANDS_IN) -> list[Rule]:
    return [rule for rule in advice.rules if rule.testbed == testbed and rule.topic is topic]


def test_a_boundary_at_a_payload_is_said_as_one() -> None:
    [rule] = of(advise([study(boundary, 10, 1, factors=BY_PAYLOAD)], Settings()), "virtio")
    assert rule.sentence.startswith(
        "virtio gives rate within 10 % of physical from payload 64KiB on (to 1MiB, the largest measured); below that 0.6"
    )
    assert rule.within is not None and rule.beyond is not None and (rule.within.cells, rule.beyond.cells) == (2, 2)
    assert rule.beyond.low is not None and rule.beyond.high is not None and rule.beyond.low < 0.66 < rule.beyond.high
    assert rule.runs == (10, 10) and rule.p_value is not None and rule.p_value <= 0.025
    assert rule.command == "twinbed compare results --metric rate"


def test_cells_that_contradict_each_other_make_no_range() -> None:
    """Equivalent at 500 B, different at 4 KiB, equivalent from 64 KiB on: what is said is of single payloads."""
    [rule] = of(advise([study(boundary, 10, 1, factors=BY_PAYLOAD)], Settings()), "e1000")
    assert rule.sentence.startswith("e1000 gives rate within 10 % of physical at payload 500B, 64KiB and 1MiB; 0.")
    assert rule.sentence.endswith(" of it at payload 4KiB.")
    assert "64KiB on" not in rule.sentence


def test_a_boundary_above_which_it_differs_is_said_the_other_way_round() -> None:
    def truth(testbed: str, levels: Mapping[str, Level]) -> float:
        return 3.0 if testbed == "virtio" and levels["payload"] == "1MiB" else 1.0

    [rule] = of(advise([study(truth, 10, 2, factors=BY_PAYLOAD)], Settings()), "virtio")
    assert rule.sentence.startswith("virtio gives rate within 10 % of physical up to payload 64KiB (from 500B, ")
    assert "; above that 3.0" in rule.sentence or "; above that 2.9" in rule.sentence
    assert rule.sentence.endswith(" times it.")


def test_an_open_cell_in_a_range_breaks_it() -> None:
    """1.1 at 64 KiB is the margin itself, which no run shows to be within: 1 MiB alone is no range."""

    def truth(testbed: str, levels: Mapping[str, Level]) -> float:
        return 1.1 if testbed == "virtio" and levels["payload"] == "64KiB" else 1.0

    advice = advise([study(truth, 10, 5, factors=BY_PAYLOAD)], Settings())
    [rule] = of(advice, "virtio")
    assert "at payload 500B, 4KiB and 1MiB; inconclusive at payload 64KiB" in rule.sentence
    [one] = [each for each in advice.open if each.contrast.subject == "virtio"]
    assert one.places == ("payload 64KiB",) and not one.few


def test_nothing_is_advised_from_two_replicates_and_what_runs_would_settle_it_is_said() -> None:
    two = study(boundary, 2, 1, factors=BY_PAYLOAD, spread=0.01)
    advice = advise([two], Settings())
    assert advice.rules == () and advice.tested == 0
    assert {each.contrast.subject for each in advice.open} == {"virtio", "e1000"}
    assert all(each.few and each.replicates is not None and each.replicates >= FEW for each in advice.open)
    assert "No advice" in "\n".join(text(advice))


def test_as_many_replicates_as_were_said_settle_it() -> None:
    """From five replicates too spread to say; with the number that is named, four of five times at least."""
    factors: Mapping[str, list[Level]] = {"payload": ["500B", "1MiB"]}

    def drawn(replicates: int, seed: int) -> Advice:
        return advise([study(lambda testbed, levels: 1.0, replicates, seed, factors=factors, spread=0.06)], Settings())

    pilot = drawn(FEW, 5)
    [one] = [each for each in pilot.open if each.contrast.subject == "virtio"]
    assert of(pilot, "virtio") == [] and one.replicates is not None and FEW < one.replicates < 60
    again = [drawn(one.replicates, seed) for seed in range(5)]
    assert sum("at payload 500B and 1MiB" in rule.sentence for each in again for rule in of(each, "virtio")) >= 4


def test_what_a_setting_does_is_said_where_it_was_varied() -> None:
    """Without offload e1000 gives half, and the others the same."""

    def truth(testbed: str, levels: Mapping[str, Level]) -> float:
        return 0.5 if testbed == "e1000" and not levels["offload"] else 1.0

    factors = {"payload": ["500B", "1MiB"], "offload": [True, False]}
    advice = advise([study(truth, 8, 1, factors=factors)], Settings())
    [same] = of(advice, "physical", Topic.SETTING)
    assert same.sentence == "On physical, offload off gives rate within 10 % of offload on at payload 500B and 1MiB."
    [half] = of(advice, "e1000", Topic.SETTING)
    assert half.sentence.startswith("On e1000, offload off gives 0.") and "of offload on's rate" in half.sentence
    assert half.beyond is not None and half.beyond.low is not None and half.beyond.high is not None
    assert half.beyond.low < 0.5 < half.beyond.high and half.within is None
    # The payload is what is asked, and its effect no advice.
    assert not any("payload 1MiB gives" in rule.sentence for rule in advice.rules)
    with_offload, without = of(advice, "e1000")
    assert with_offload.sentence.startswith("With offload on, e1000 gives rate within 10 % of physical at payload 500B")
    assert without.sentence.startswith("With offload off, e1000 gives 0.")
    [alike] = of(advice, "virtio")
    assert alike.sentence.startswith("Whatever the offload, virtio gives rate within 10 % of physical")


def test_no_setting_is_judged_by_looks_or_sessions() -> None:
    factors = {"day": ["monday", "tuesday", "wednesday", "thursday", "friday"], "offload": [True, False]}
    by_days = study(lambda testbed, levels: 1.0, 2, 1, factors=factors, data={"sessions": "day"})
    advice = advise([by_days], Settings())
    assert of(advice, "physical", Topic.SETTING) == []
    assert advice.notes == ("results: no rule about offload, because it compares sessions",)
    [rule] = of(advice, "virtio")
    # Days are what counts, not their ten runs.
    assert rule.runs == (5, 5)


def test_an_emulated_cpu_is_part_of_the_sentence() -> None:
    emulated = study(boundary, 6, 1, factors=BY_PAYLOAD, cautions={"virtio": ("software_cpu", "TCG")})
    advice = advise([emulated], Settings())
    [rule] = of(advice, "virtio")
    assert rule.sentence.endswith("(on an emulated CPU: this describes the emulator).")
    assert Kind.SOFTWARE_CPU in rule.cautions
    [other] = of(advice, "e1000")
    assert Kind.SOFTWARE_CPU not in other.cautions and "emulat" not in other.sentence


def test_files_that_contradict_their_paths_are_not_advised_from() -> None:
    wrong = study(boundary, 6, 1, factors=BY_PAYLOAD, cautions={"virtio": ("misnamed", "payload")})
    assert of(advise([wrong], Settings()), "virtio") == []


def test_more_results_are_one_family() -> None:
    """What is asked of two studies costs each of them: p-values grow, and rules say which results they are of."""
    one, two = (study(boundary, 6, seed, factors=BY_PAYLOAD, name=f"results-{seed}") for seed in (1, 2))
    alone, both = advise([one], Settings()), advise([one, two], Settings())
    assert both.tested == 2 * alone.tested
    assert {rule.source for rule in both.rules} == {"results-1", "results-2"}
    [before], [after, _] = of(alone, "virtio"), of(both, "virtio")
    assert before.p_value is not None and after.p_value is not None and after.p_value > before.p_value


def written(folder: Path, truth: Mapping[str, float], of_time: float, factors: Mapping[str, list[Level]], seed: int) -> Path:
    """A study of several metrics: rates are ``truth``, and packets go with them to the power of ``of_time``."""

    def respond(testbed: str, levels: Mapping[str, Any], replicate: int) -> Mapping[str, float | None]:
        noise = 1 + 0.002 * ((replicate * 7 + seed + len(testbed)) % 5 - 2)
        requests, rate = 1000, 1000.0 * truth[testbed] * noise
        return {
            "requests": requests,
            "requests_per_second": rate,
            "packets": requests * 10 * truth[testbed] ** of_time * noise,
            "bytes": requests * 640 * truth[testbed] ** of_time * noise,
        }

    return write_study(folder, [*truth], factors, 6, respond)


def advised(*folders: Path) -> Advice:
    return advise([extract(each, registry.PLUGINS.read, registry.PLUGINS.accompanying) for each in folders], Settings())


def test_what_several_metrics_say_is_said_once_with_the_amounts_and_evidence_of_each(tmp_path: Path) -> None:
    truth = {"physical": 1.0, "container": 1.0, "virtio": 0.5}
    advice = advised(written(tmp_path / "a", truth, -1.0, {"payload": ["500B", "1MiB"]}, 1))
    same, other = [each for each in advice.statements if each.topic is Topic.STANDS_IN]
    assert same.sentence == (
        "container gives requests per second, packets per request and bytes per request within 10 % of physical at payload "
        "500B and 1MiB."
    )
    assert [rule.metric for rule in same.rules] == ["requests_per_second", "packets_per_request", "bytes_per_request"]
    # Half the rate, and twice as much of the others by request.
    assert other.sentence == (
        "virtio gives 0.50 of physical's requests per second and 2.00 times physical's packets per request and bytes per "
        "request at payload 500B and 1MiB."
    )
    lines = "\n".join(text(advice))
    assert lines.count("virtio gives") == 1
    assert "- requests per second: ratio 0.50" in lines and "- packets per request and bytes per request: ratio 2.00" in lines
    assert "--metric requests_per_second --metric packets_per_request --metric bytes_per_request" in lines
    rows = document(advice)["advice"]
    assert isinstance(rows, list) and len(rows) == len(advice.rules) > len(advice.statements)


def test_metrics_with_other_verdicts_are_said_by_themselves(tmp_path: Path) -> None:
    advice = advised(written(tmp_path / "a", {"physical": 1.0, "virtio": 0.5}, 0.0, {"payload": ["500B", "1MiB"]}, 1))
    apart = [each for each in advice.statements if each.topic is Topic.STANDS_IN]
    assert [len(each.rules) for each in apart] == [1, 2]


def test_results_that_contradict_each_other_are_named_first(tmp_path: Path) -> None:
    """One and the same pair of testbeds: equal in one, half in the other; only 500 B is in both."""
    equal = written(tmp_path / "equal", {"physical": 1.0, "virtio": 1.0}, 0.0, {"payload": ["500B", "1MiB"]}, 1)
    half = written(tmp_path / "half", {"physical": 1.0, "virtio": 0.5}, 0.0, {"payload": ["500B", "64KiB"]}, 2)
    advice = advised(equal, half)
    [found] = advice.contradictions
    assert (found.contrast.subject, found.contrast.against, found.metric) == ("virtio", "physical", "requests_per_second")
    [one], [other] = found.equivalent, found.different
    assert (one.source, other.source) == (str(equal), str(half))
    assert dict(one.comparison.cell) == dict(other.comparison.cell) == {"payload": "500B"}
    lines = "\n".join(text(advice))
    assert lines.index("contradict each other") < lines.index("Which testbed can replace which")
    assert "requests per second is equivalent in one of the results and different in another" in " ".join(lines.split())
    assert f"$ twinbed passport {equal} {half}" in lines
    for shown in ("\n".join(markdown(advice)), str(page(advice)), json.dumps(document(advice))):
        assert "contradict" in shown and str(equal) in shown and "500B" in shown


def test_other_testbeds_or_workloads_are_no_contradiction(tmp_path: Path) -> None:
    equal = written(tmp_path / "equal", {"physical": 1.0, "virtio": 1.0}, 0.0, {"payload": ["500B"]}, 1)
    large = written(tmp_path / "large", {"physical": 1.0, "virtio": 0.5}, 0.0, {"payload": ["1MiB"]}, 2)
    another = written(tmp_path / "another", {"physical": 1.0, "e1000": 0.5}, 0.0, {"payload": ["500B"]}, 3)
    assert advised(equal, large, another).contradictions == ()
    assert advised(large, large).contradictions == ()


@pytest.fixture(scope="module")
def paired(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A pair's rate holds to 4 pairs and falls to 70 % at 8; with offsets that are nothing in the mean, as exact as that."""
    of_a_pair = {1: 1000.0, 2: 1010.0, 4: 980.0, 8: 700.0}

    def knee(testbed: str, levels: Mapping[str, Any], replicate: int) -> Mapping[str, float | None]:
        rate = levels["pairs"] * (of_a_pair[levels["pairs"]] + (-10, -5, 0, 5, 10)[replicate])
        return {"requests": 100, "requests_per_second": rate, "packets": 1000, "bytes": 64000}

    return write_study(tmp_path_factory.mktemp("advice") / "knee", ("bed",), {"pairs": [*of_a_pair]}, 5, knee)


def test_how_many_fit_is_a_rule_at_a_level_of_its_own(paired: Path) -> None:
    """Alone it is one objective, tested both ways: 1 - 0.05 / 2, with five runs at each of the four numbers."""
    table = twinbed.open(paired).advise()
    [row] = table.to_pylist()
    assert row["topic"] == "fits" and row["sentence"].startswith(
        "Requests per second per pair at least 90 % of that at 1 pair:"
    )
    assert "4 pairs: more than 99.9 % sure; 8: no" in row["sentence"]
    assert (row["cells"], row["runs_least"]) == (4, 5) and row["p_corrected"] is None


def test_every_style_says_the_same(
    paired: Path, tmp_path: Path, capfdbinary: pytest.CaptureFixture[bytes], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(paired.parent)
    assert run(["advise", "knee"]) == 0
    printed = capfdbinary.readouterr().out.decode()
    assert "no machine: bed" in printed
    assert "4 pairs: more than 99.9 %" in " ".join(printed.split())
    assert max(len(line) for line in printed.splitlines() if "$ twinbed" not in line) <= WIDTH
    assert run(["advise", "knee", "--format", "json"]) == 0
    data = json.loads(capfdbinary.readouterr().out)
    assert [each["topic"] for each in data["advice"]] == ["fits"] and data["tested"] == 1
    assert run(["advise", "knee", "-o", str(tmp_path / "a.md")]) == 0
    assert "## How many fit" in (tmp_path / "a.md").read_text()
    assert run(["advise", "knee", "-o", str(tmp_path / "a.html")]) == 0
    assert data["advice"][0]["sentence"] in (tmp_path / "a.html").read_text()


def test_a_margin_that_is_none_is_refused(paired: Path, capfd: pytest.CaptureFixture[str]) -> None:
    assert run(["advise", str(paired), "--margin", "-1"]) == 2
    assert "--margin: '-1' is not a share above 0" in capfd.readouterr().err


def test_text_fits_and_names_are_escaped() -> None:
    advice = advise([study(boundary, 6, 1, factors=BY_PAYLOAD, name="results/<b>")], Settings())
    assert all(len(line) <= WIDTH for line in text(advice) if not line.lstrip().startswith("$"))
    assert "<b>" not in page(advice) and "&lt;b&gt;" in page(advice)
    assert any("from payload 64KiB on" in line for line in markdown(advice))
    for row in document(advice)["advice"]:  # type: ignore[union-attr]
        assert row["evidence"]  # type: ignore[index, call-overload]


def test_metrics_are_told_apart_by_how_often_they_are_equivalent() -> None:
    [virtio, e1000] = advise([study(boundary, 10, 1, factors=BY_PAYLOAD)], Settings()).trusted
    assert [(each.testbed, each.layer) for each in (virtio, e1000)] == [("virtio", "application"), ("e1000", "application")]
    [count] = virtio.metrics
    assert (count.equivalent, count.different, count.cells) == (2, 2, 4)


def test_no_run_is_refused() -> None:
    empty = study(boundary, 0, 1, factors=BY_PAYLOAD)
    assert isinstance(empty, InMemory)
    with pytest.raises(twinbed.TwinbedError, match="has no run"):
        advise([empty], Settings())
