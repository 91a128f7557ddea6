"""Ladders as SVG, in the terminal and as Mermaid: each packet once, with its time."""

from __future__ import annotations

import re
from itertools import pairwise
from xml.etree import ElementTree

import pytest
from tests.unit.analyses.anatomy.made_requests import long, request, twelve

from twinbed.analyses.anatomy.draw import strip
from twinbed.analyses.anatomy.ladder import axis, rungs
from twinbed.analyses.anatomy.ladder_svg import TOP, WIDTH, Drawn, svg
from twinbed.analyses.anatomy.ladder_text import diagram, ladder_lines
from twinbed.analyses.anatomy.ladders import Ladder
from twinbed.analyses.anatomy.result import Requests, StepTimes
from twinbed.analyses.anatomy.sampled import Request
from twinbed.analyses.anatomy.steps import STEPS, Seen
from twinbed.render.colours import light
from twinbed.show.figure import PAGE

SVG = "{http://www.w3.org/2000/svg}"
TITLES = {step.name: step.title for seen in Seen for step in STEPS[seen]}


def drawn(made: Request, text: str = "a ladder") -> ElementTree.Element:
    found = rungs(made)
    links = {step: f"to-{step}" for step in made.durations_ns}
    return ElementTree.fromstring(svg(Drawn(made, found, axis([(made, found)]), TITLES, links), text))


def large(wire: int = 1) -> Request:
    packets, stations = long(880, wire=wire)
    return request(packets, stations_us=stations)


def of_class(root: ElementTree.Element, name: str) -> list[ElementTree.Element]:
    return [each for each in root.iter(f"{SVG}g") if each.get("class") == name]


@pytest.mark.parametrize("seen", Seen)
def test_each_packet_is_in_the_picture_once_at_its_time(seen: Seen) -> None:
    made = request(seen=seen)
    root = drawn(made, 'a < b & "c"')
    assert root.get("aria-label") == 'a < b & "c"'
    found = of_class(root, "packet")
    assert [int(each.get("data-sent-ns", "")) for each in found] == [packet.sent_ns for packet in made.packets]
    arrived = [packet.arrived_ns for packet in made.packets]
    assert [each.get("data-arrived-ns") for each in found] == ["" if ns is None else str(ns) for ns in arrived]
    shared = axis([(made, rungs(made))])
    for each, packet in zip(found, made.packets, strict=True):
        line = each.find(f"{SVG}line")
        assert line is not None
        assert float(line.get("y1", "")) == pytest.approx(TOP + shared.y(packet.sent_ns), abs=0.051)
        assert float(line.get("x1", "")) < float(line.get("x2", "")) if packet.from_client else True


def test_of_900_packets_each_is_in_the_picture_once() -> None:
    made = large()
    root = drawn(made)
    bands = of_class(root, "packets")
    folded = sum(int(each.get("data-packets", "")) for each in bands)
    assert folded > 800
    assert folded + len(of_class(root, "packet")) == len(made.packets) == 977
    marks = sum(path.get("d", "").count("M") for each in bands for path in each.iter(f"{SVG}path"))
    assert marks == folded
    said = " ".join(text.text or "" for text in root.iter(f"{SVG}text"))
    assert re.search(r"← 87\d packets, 1\.2\d+ MB", said) and re.search(r"→ 8\d ACKs", said)


def test_a_packet_that_stands_for_several_is_thicker_and_says_how_many() -> None:
    packets = twelve()
    packets[7] = {**packets[7], "payload_bytes": 14480, "wire_packets": 10}
    root = drawn(request(packets))
    widths = {}
    for each in of_class(root, "packet"):
        line, text = each.find(f"{SVG}line"), each.find(f"{SVG}text")
        assert line is not None and text is not None
        widths[text.text] = float(line.get("stroke-width", ""))
    assert widths["14,480 B (10 packets)"] > 2 * widths["248 B"]
    wire = " ".join(text.text or "" for text in drawn(large(wire=4)).iter(f"{SVG}text"))
    assert re.search(r"3,5\d\d on the wire", wire)


def test_each_step_is_a_band_that_leads_to_its_details() -> None:
    root = drawn(request())
    links = {each.get("href"): each for each in root.iter(f"{SVG}a")}
    assert set(links) == {f"#to-{step.name}" for step in STEPS[Seen.BOTH]}
    bands = of_class(root, "step")
    assert [each.get("data-steps") for each in bands] == [step.name for step in STEPS[Seen.BOTH]]
    assert bands[5].get("aria-label") == "server: request in, first byte out: 59.0 µs"


def test_a_lost_packet_ends_on_its_way() -> None:
    root = drawn(request(lost=[4]))
    (lost,) = (each for each in of_class(root, "packet") if each.get("data-arrived-ns") == "")
    text = lost.find(f"{SVG}text")
    assert text is not None and text.text == "ACK, lost"
    assert "lost" in (lost.get("aria-label") or "")


def test_labels_stay_within_the_picture_and_apart() -> None:
    for made in (request(), large(), large(45)):
        ys = []
        for each in of_class(drawn(made), "packet"):
            text = each.find(f"{SVG}text")
            assert text is not None
            assert 0 < float(text.get("x", "")) < WIDTH
            ys.append(float(text.get("y", "")))
        assert all(after - before >= 9.9 for before, after in pairwise(ys))


def test_a_file_has_its_own_colours() -> None:
    made = request()
    found = rungs(made)
    text = svg(Drawn(made, found, axis([(made, found)]), TITLES, {}), "text", light())
    assert "var(" not in text
    ElementTree.fromstring(text)


def ladder(made: Request) -> Ladder:
    return Ladder({"payload": "500B"}, "real", made, 64, 2, "run")


def test_in_the_terminal_each_packet_is_a_line_with_its_time() -> None:
    title, heads, *lines = ladder_lines(ladder(request()), TITLES)
    assert title == "payload 500B, real: 170 µs, 12 packets; the medoid of 64 requests of 2 runs."
    assert "client's link" in heads and "server's link" in heads
    packets = [line for line in lines if not line.startswith(" " * 9)]
    assert [line.split("|")[0].strip() for line in packets][:4] == ["0", "10.0 µs", "20.0 µs", "40.0 µs"]
    assert len(packets) == 12
    assert re.search(r"\|-- 84 B, 1\.00 µs -+>\|", packets[3]) and re.search(r"\|<-+ SYN-ACK, 1\.00 µs --\|", packets[1])
    assert {step.title for step in STEPS[Seen.BOTH] if any(f"{step.title}: " in line for line in lines)} == {
        step.title for step in STEPS[Seen.BOTH]
    }
    assert len({line.index("|") for line in packets}) == 1 and len({line.index("|", 15) for line in packets}) == 1


def test_in_the_terminal_runs_are_folded() -> None:
    lines = list(ladder_lines(ladder(large()), TITLES))
    assert len(lines) < 40
    assert any(re.search(r": +← 87\d packets, 1\.2\d+ MB +:", line) for line in lines)
    alone = list(ladder_lines(ladder(request(seen=Seen.CLIENT)), TITLES))
    assert "server's link" not in alone[1]


def test_mermaid_has_each_packet_and_step_and_no_sign_that_ends_a_statement() -> None:
    text = diagram([ladder(request()), Ladder({"a;b": "#1"}, "virtual", large(), 1, 1, "run")], TITLES)
    first, *lines = text.splitlines()
    assert first == "sequenceDiagram"
    messages = [line for line in lines if "->>" in line]
    assert messages[0].strip() == "CL->>SL: SYN, 0 + 1.00 µs" and messages[1].strip() == "SL->>CL: SYN-ACK, 10.0 µs + 1.00 µs"
    assert len(messages) == 12 + sum(not rung.is_band for rung in rungs(large()))
    shape = (
        r"    (participant \w+ as [^;#]+|(CL|SL)(->>|-->>|-x)(CL|SL): [^;#]+|Note (over|left of|right of) \w+(,\w+)?: [^;]+)"
    )
    assert all(re.fullmatch(shape, line.replace("#59;", "").replace("#35;", "")) for line in lines)
    assert "a#59;b #35;1, virtual" in text


def strip_of(*requests: Requests) -> ElementTree.Element:
    figure = strip(requests, "server", "text")
    assert figure is not None and figure.drawing is not None
    return ElementTree.fromstring(figure.drawing(PAGE))


def test_a_strip_has_each_run_at_its_mean_and_the_box_at_the_quartiles() -> None:
    quantiles = {0.05: 1e-3, 0.25: 2e-3, 0.5: 3e-3, 0.75: 4e-3, 0.9: 6e-3, 0.99: 8e-3}
    times = StepTimes("server", 3.5e-3, (3e-3, 4e-3), quantiles)
    one = Requests({}, "real", 2, 10, (times,), ())
    root = strip_of(one)
    dots = [float(each.get("cx", "")) for each in root.iter(f"{SVG}circle")]
    (box,) = root.iter(f"{SVG}rect")
    per_ms = dots[1] - dots[0]
    zero = dots[0] - 3 * per_ms
    assert float(box.get("x", "")) == pytest.approx(zero + 2 * per_ms, abs=0.2)
    assert float(box.get("width", "")) == pytest.approx(2 * per_ms, abs=0.2)
    (row,) = (each for each in root.iter(f"{SVG}g"))
    said = row.get("data-said") or ""
    assert said.startswith("real: P5 1.00 ms, P25 2.00 ms") and "mean of 2 runs 3.50 ms" in said
    fast = Requests({}, "fast", 2, 10, (StepTimes("server", 1e-6, (1e-6, 1e-6), dict.fromkeys(quantiles, 1e-6)),), ())
    ticks = [each.text for each in strip_of(one, fast).iter(f"{SVG}text")]
    assert {"10 µs", "100 µs", "1 ms"} <= set(ticks), "far apart, the axis is logarithmic"
    nothing = Requests({}, "real", 2, 10, (StepTimes("syn", 0.0, (0.0, 0.0), dict.fromkeys(quantiles, 0.0)),), ())
    assert not strip([nothing], "syn", "text") and not strip([one], "finish", "text")
