"""tshark as a second reader of made captures: its times of answers, and what it holds to be sent again."""

from __future__ import annotations

import subprocess
from collections import defaultdict
from pathlib import Path

import pytest

from planted import CLIENT, SERVER, plant
from twinbed import _core

SEED = 3
FIELDS = ("frame.time_epoch", "tcp.stream", "tcp.srcport", "tcp.dstport", "http.request", "http.response.code", "http.time")


def packets(capture: Path, *fields: str, chosen: str) -> list[dict[str, str]]:
    """As the whole capture has them: segments that come out of order are put together too."""
    options = [argument for field in fields for argument in ("-e", field)]
    command = ["tshark", "-n", "-r", str(capture), "-Y", chosen, "-o", "tcp.reassemble_out_of_order:TRUE", "-T", "fields"]
    done = subprocess.run([*command, "-E", "occurrence=f", *options], check=True, capture_output=True, text=True)
    return [dict(zip(fields, line.split("\t"), strict=True)) for line in done.stdout.splitlines()]


def seconds(text: str) -> int:
    whole, fraction = text.split(".")
    return int(whole) * 10**9 + int(fraction.ljust(9, "0"))


def test_answers_and_repeats_are_those_that_tshark_has(tmp_path: Path) -> None:
    made = plant(SEED)
    files = {link: tmp_path / f"{link}.pcap" for link in (CLIENT, SERVER)}
    for link, file in files.items():
        file.write_bytes(made.pcap(link))
    rows = _core.capture_tables(files[CLIENT], ["steps"])[0]["steps"].to_pylist()
    answers = defaultdict(list)
    for row in packets(files[CLIENT], *FIELDS, chosen="http.response"):
        if int(row["http.response.code"]) >= 200:
            answers[int(row["tcp.dstport"])].append(row)
    assert sum(map(len, answers.values())) == len(rows) == len(made.requests)
    compared = 0
    for port, read in answers.items():
        own = [row for row in rows if row["client_port"] == port]
        for row, answer in zip(own, read, strict=True):
            assert row["response_end_ns"] == seconds(answer["frame.time_epoch"])
            asked_again_ns = row["next_ns"]
            if answer["http.time"]:
                # tshark gives the answer to the latest request, where answers come in the order of requests (RFC 9112, 9.3.2).
                is_before_piped = asked_again_ns is not None and asked_again_ns < row["response_end_ns"]
                took_ns = row["response_end_ns"] - (asked_again_ns if is_before_piped else row["request_end_ns"])
                assert took_ns * 1e-9 == pytest.approx(float(answer["http.time"]), abs=1e-9)
                compared += 1
    assert compared == sum(not each.is_piped for each in made.requests)
    for link, file in files.items():
        tables, _ = _core.capture_tables(file, ["steps"])
        own_ns = {
            each["time_ns"] for each in tables["step_packets"].to_pylist() if each["kind"] in "XYZxyz" and each["from"] == link
        }
        port = "tcp.dstport==80" if link == CLIENT else "tcp.srcport==80"
        again = packets(file, "frame.time_epoch", chosen=f"tcp.analysis.retransmission && {port}")
        kept = {each["time_ns"] for each in tables["step_packets"].to_pylist()}
        assert own_ns == {ns for ns in (seconds(each["frame.time_epoch"]) for each in again) if ns in kept}
