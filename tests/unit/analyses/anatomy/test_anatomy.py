"""The analysis ``anatomy``: a planted difference is found where it was planted, and its parts add up."""

from __future__ import annotations

import json
import re
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from benchmarks.simulated.little import InMemory, record
from click.testing import CliRunner

from twinbed.analyses.anatomy.method import analysis as anatomy
from twinbed.analyses.anatomy.result import BETWEEN, TOTAL, Anatomy
from twinbed.analyses.anatomy.steps import STEPS, Seen
from twinbed.analyses.anatomy.words import section, sentences
from twinbed.cli.inputs import ResultsFolders
from twinbed.cli.lazy import of_analysis
from twinbed.contracts.analysis import Judged
from twinbed.model.caution import Caution, Kind
from twinbed.model.error import TwinbedError
from twinbed.model.result import Pairing, Verdict
from twinbed.model.tables import Outline, StudyDocument
from twinbed.render.pages import page
from twinbed.render.sections import parts

GOLDEN = Path(__file__).parents[3] / "golden"
NAMES = [step.name for step in STEPS[Seen.BOTH]]
MEANS_US = dict(zip(NAMES, [10, 20, 10, 50, 10, 200, 10, 100, 30], strict=True))
REQUESTS, RUNS = 200, 6


def rows(run: str, means_us: dict[str, float], noise: np.random.Generator) -> list[dict[str, Any]]:
    """Requests one after the other, each with the steps given, 5 % apart from run to run and 20 % from request to request."""
    state = {name: mean * noise.lognormal(0, 0.05) for name, mean in means_us.items()}
    found, now = [], 0
    for sequence in range(REQUESTS):
        at = [now]
        for name in NAMES:
            at.append(at[-1] + max(1, round(1000 * state[name] * noise.lognormal(0, 0.2))))
        ours = {"syn_ns": at[0], "syn_ack_ns": at[3], "request_ns": at[4], "request_end_ns": at[4], "response_ns": at[7]}
        ours |= {"response_end_ns": at[8], "client_fin_ns": at[9]}
        theirs = {"syn_ns": at[1], "syn_ack_ns": at[2], "request_ns": at[5], "request_end_ns": at[5], "response_ns": at[6]}
        theirs |= {"response_end_ns": at[7], "client_fin_ns": at[9] + 1}
        names = {
            "client_address": "a",
            "client_port": 1,
            "server_address": "b",
            "server_port": 80,
            "request_sequence": sequence,
        }
        common = {
            "run": run,
            **names,
            "complete": True,
            "pattern": "S s A P p+" if sequence % 4 else "S s A P p",
            "silence_ns": 1000,
            "silence_ended_by": "p",
            "next_ns": None,
        }
        common["server_fin_ns"] = common["reset_ns"] = None
        found += [{**common, "link": "client", **ours}, {**common, "link": "server", **theirs}]
        now = at[-1] + round(1000 * means_us.get(BETWEEN, 40.0))
    return found


def study(testbeds: dict[str, dict[str, float]], *, runs: int = RUNS, seed: int = 1, links: tuple[str, ...] = ()) -> InMemory:
    noise = np.random.default_rng(seed)
    records, found = [], list[dict[str, Any]]()
    for replicate in range(runs):
        for testbed, means in testbeds.items():
            one = record(testbed, replicate, len(records), {"testbed": testbed, "payload": "500B"})
            records.append(one)
            found += rows(one.id, means, noise)
    table = pa.Table.from_pylist([each for each in found if not links or each["link"] in links])
    for name in ("next_ns", "server_fin_ns", "reset_ns"):
        table = table.set_column(table.schema.get_field_index(name), name, pa.nulls(table.num_rows, pa.int64()))
    outline = Outline("s", tuple(testbeds), next(iter(testbeds)), data=StudyDocument(comparison=Pairing.INDEPENDENT))
    return InMemory({"steps": table}, outline, records)


def verdicts(result: Anatomy) -> dict[str, Verdict | None]:
    return {each.step: each.verdict for each in result.differences}


def test_a_planted_delay_is_found_in_its_step_and_the_parts_add_up() -> None:
    result = anatomy.run(study({"real": MEANS_US, "virtual": {**MEANS_US, "server": 400.0, BETWEEN: 90.0}}))
    assert result.seen is Seen.BOTH
    found = verdicts(result)
    assert {step for step, verdict in found.items() if verdict is Verdict.DIFFERENT} == {"server", TOTAL, BETWEEN}
    by_step = {each.step: each for each in result.differences}
    assert by_step["server"].seconds == pytest.approx(200e-6, rel=0.15)
    interval = by_step["server"].interval
    assert interval is not None and interval.low < 200e-6 < interval.high
    assert by_step[BETWEEN].seconds == pytest.approx(50e-6, rel=0.05)
    parts = sum(by_step[name].seconds for name in NAMES)
    assert parts == pytest.approx(by_step[TOTAL].seconds, abs=1e-12)
    for each in result.requests:
        total = each.of(TOTAL)
        assert total is not None
        assert sum(times.mean for times in each.times if times.step in NAMES) == pytest.approx(total.mean, abs=1e-12)
    (said,) = sentences(result)
    assert re.match(r"payload 500B: a request takes \d+ ± \d+ µs longer on virtual than on real; ", said)
    assert "more in “server: request in, first byte out”; clients pause" in said


def test_of_two_alike_no_step_is_different_and_the_sentence_says_so() -> None:
    wrong = 0
    for seed in range(20):
        result = anatomy.run(study({"real": MEANS_US, "twin": MEANS_US}, seed=seed))
        wrong += any(each.verdict is Verdict.DIFFERENT for each in result.differences)
    assert wrong <= 2, "at 95 %, one in twenty studies may name one"
    (said,) = sentences(result)
    assert "cannot tell whether a request takes longer" in said


def test_the_finest_view_is_that_of_all_runs() -> None:
    whole = study({"real": MEANS_US, "virtual": MEANS_US})
    assert anatomy.run(whole).seen is Seen.BOTH
    assert anatomy.run(study({"real": MEANS_US}, links=("client",))).seen is Seen.CLIENT
    at_hosts = [replace(whole.records[0], cautions=(Caution(Kind.CAPTURED_AT_HOSTS, "client"),)), *whole.records[1:]]
    apart = anatomy.run(replace(whole, records=at_hosts))
    assert apart.seen is Seen.APART
    parts = {each.step: each.seconds for each in apart.differences}
    assert sum(parts[step.name] for step in STEPS[Seen.APART]) == pytest.approx(parts[TOTAL], abs=1e-12)


def test_patterns_have_their_shares() -> None:
    (real, _) = anatomy.run(study({"real": MEANS_US, "virtual": MEANS_US})).requests
    assert {each.packets: each.share for each in real.patterns} == pytest.approx({"S s A P p+": 0.75, "S s A P p": 0.25})
    assert real.requests == REQUESTS * RUNS


def test_one_run_has_no_interval_and_no_verdict() -> None:
    result = anatomy.run(study({"real": MEANS_US, "virtual": MEANS_US}, runs=1))
    assert {(each.interval, each.verdict) for each in result.differences} == {(None, None)}
    assert page(section(result), result, "results")


def test_without_steps_it_says_what_captures_them() -> None:
    empty = InMemory({"steps": pa.table({})}, Outline("s", ("real",), "real"), [])
    with pytest.raises(TwinbedError, match="no steps of requests") as raised:
        anatomy.run(empty)
    assert raised.value.advice is not None and "packets" in raised.value.advice
    assert anatomy.sections(empty) == ()


def test_emulated_cpus_are_cautioned_with_what_they_touch() -> None:
    whole = study({"real": MEANS_US, "virtual": MEANS_US})
    emulated = [replace(each, cautions=(Caution(Kind.SOFTWARE_CPU, "nothing"),)) for each in whole.records]
    cautions = anatomy.run(replace(whole, records=emulated)).cautions
    assert [(each.kind, each.subject) for each in cautions] == [(Kind.SOFTWARE_CPU, "real"), (Kind.SOFTWARE_CPU, "virtual")]
    assert "every step of a client or server" in cautions[0].detail


def test_the_page_and_the_section_hold_every_step() -> None:
    result = anatomy.run(study({"real": MEANS_US, "virtual": {**MEANS_US, "server": 400.0}}), Judged(margin=0.2))
    html = str(page(section(result), result, "results"))
    assert all(step.title in html for step in STEPS[Seen.BOTH])
    assert "waterfall" not in html or "<svg" in html
    said, part = parts(section(result))
    assert said.table is None and "longer on virtual than on real" in said.sentence
    assert part.table is not None and len(part.table.rows) == len(NAMES) + 2
    assert {row["step"] for row in anatomy.tables(result)["steps"]} == {*NAMES, TOTAL, BETWEEN}


def run(*arguments: str) -> tuple[int, str]:
    result = CliRunner().invoke(of_analysis("anatomy").command(), arguments, obj=ResultsFolders(), standalone_mode=False)
    if result.exception is not None:
        raise result.exception
    return result.return_value, result.output


def test_captures_need_no_results() -> None:
    capture = GOLDEN / "packetisation" / "close.pcap"
    code, text = run(str(capture), "--format", "json")
    assert code == 0
    steps = {row["step"]: row for row in json.loads(text)["steps"]}
    assert steps["total"]["requests"] == 20
    parts = sum(row["mean_s"] for step, row in steps.items() if step != "total")
    assert parts == pytest.approx(steps["total"]["mean_s"], abs=1e-12)
    _, text = run(str(capture), str(capture), "--one-clock")
    assert "first byte on its way" in text and "S s A P a p" in text
    assert "% of requests are S s A P a p" in text
    with pytest.raises(TwinbedError, match="no HTTP request"):
        run(str(GOLDEN / "pairs" / "relay-udp" / "a.pcap"))


def test_a_request_of_captures_is_shown_packet_by_packet(tmp_path: Path) -> None:
    capture = str(GOLDEN / "packetisation" / "close.pcap")
    _, text = run(capture)
    (title,) = re.findall(r"^close.pcap: .*", text, re.M)[1:]
    assert "the medoid of 20 requests" in title
    lines = text[text.index(title) :].splitlines()
    count = sum(re.match(r" *(0|[\d.]+ .?s)  \|", line) is not None for line in lines)
    assert f" {count} packets;" in title
    code, drawn = run(capture, capture, "--one-clock", "--format", "mermaid")
    assert code == 0 and drawn.startswith("sequenceDiagram\n") and "->>SL: SYN" in drawn
    run(capture, "-o", str(tmp_path / "request.mmd"))
    assert (tmp_path / "request.mmd").read_text().startswith("sequenceDiagram\n")
