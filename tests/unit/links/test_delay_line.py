"""The plan of a delay line, and what is made of its program's words."""

from __future__ import annotations

import json
from types import SimpleNamespace
from typing import Any

import pytest

from twinbed.hosts.error import HostError
from twinbed.links import delay_line, shaping
from twinbed.links.delay_line import DelayLine
from twinbed.links.layout import layout
from twinbed.model.topology import Link, Topology


def test_every_device_has_a_name_that_the_kernel_takes() -> None:
    nics = layout(Topology(pairs=80, bystanders=80)).nics
    ports = [nic.port for host in nics.values() for nic in host]
    names = [name for port in ports for name in (port, delay_line.near(port), delay_line.far(port))]
    assert len(set(names)) == len(names) and max(map(len, names)) <= 15


def test_the_rate_is_left_to_the_port() -> None:
    link = Link(rate=10**7, delay=0.1, loss=0.1, emulator="delay-line")
    plan = shaping.plan("p.client", delay_line.shaped(link))
    assert "htb rate 10000000bit" in plan and "netem" not in plan
    assert f"pfifo limit {link.queue_packets}" in plan, "what waits there is what netem's queue would hold"
    assert shaping.plan("p.client", delay_line.shaped(Link(delay=0.1))) == ""


def line(said: list[dict[str, Any]], code: int = 0) -> DelayLine:
    text = "{}\n" + json.dumps(said) + "\n"
    machine = SimpleNamespace(name="machine", artifacts="/a", read=lambda path: text.encode())
    running = SimpleNamespace(
        signal=lambda number: None, wait=lambda limit_s: SimpleNamespace(code=code), stderr=b"oh", ended=True
    )
    return DelayLine(machine, Link(delay=0.1), ["p.client"], running)  # type: ignore[arg-type]


def ended(port: str, missed: int, p99_ns: int | None) -> dict[str, Any]:
    late = {"median_ns": 2000, "p99_ns": p99_ns, "most_ns": 90_000}
    return {"from": "f", "to": port, "sent": 5 if p99_ns else 0, "missed": missed, "late": late}


def test_the_latest_of_all_ports_is_told() -> None:
    (caution,) = line([ended("p.a", 0, 4000), ended("p.b", 0, 50_000), ended("p.c", 0, None)]).end()
    assert caution.detail == "half of the frames late by up to 2 µs, 99 % by up to 50 µs, the last by 90 µs"


def test_frames_that_nobody_asked_to_lose_fail_the_run() -> None:
    with pytest.raises(HostError, match=r"lost frames \(7,000 to p\.b\).*leave a CPU"):
        line([ended("p.a", 0, 4000), ended("p.b", 7000, 4000)]).end()


def test_a_line_that_fails_says_why() -> None:
    with pytest.raises(HostError, match="machine: the delay line failed: oh"):
        line([], code=1).end()
    assert line([]).trouble() == "machine: the delay line ended: oh"


def test_words_that_are_no_such_thing_fail_the_run() -> None:
    with pytest.raises(HostError, match="machine: "):
        line([{"to": "p.a"}]).end()
