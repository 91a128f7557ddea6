"""Shapers: plans as exact tc text, and what tc of iproute2 6.1.0 printed for them in a network namespace."""

from __future__ import annotations

import json
import subprocess

import pytest

from twinbed.links import shaping
from twinbed.model.topology import Link

NONE = b'[{"kind":"noqueue","handle":"0:","root":true,"refcnt":2,"options":{}}]'
HTB = (
    b'[{"kind":"htb","handle":"1:","root":true,"refcnt":3,"options":{"r2q":10,"default":"0x1","direct_packets_stat":0,'
    b'"direct_qlen":1000}}]'
)


def tbf(rate_bytes: int, burst: int) -> bytes:
    return b'[{"kind":"tbf","handle":"1:","root":true,"refcnt":3,"options":{"rate":%d,"burst":%d,"lat":50000}}]' % (
        rate_bytes,
        burst,
    )


def htb(rate: str, burst: str, ceil: str = "", cburst: str = "") -> str:
    return f"class htb 1:1 root prio 0 rate {rate} ceil {ceil or rate} burst {burst} cburst {cburst or burst} \n"


def disagreeing(link: Link, qdiscs: bytes, classes: str = "") -> set[str]:
    return {item.setting for item in shaping.applied("v0", link, qdiscs, classes) if not item.agrees}


def test_plans() -> None:
    assert shaping.plan("p.client", Link()) == ""
    assert shaping.plan("p.client", Link(rate="1gbit")) == (
        "qdisc add dev p.client root handle 1: htb default 1\n"
        "class add dev p.client parent 1: classid 1:1 htb rate 1000000000bit ceil 1000000000bit"
        " burst 125000b cburst 125000b quantum 60000\n"
    )
    assert shaping.plan("p.client", Link(rate="100mbit", shaper="tbf")) == (
        "qdisc add dev p.client root handle 1: tbf rate 100000000bit burst 66560b latency 50ms\n"
    )
    assert "burst 200kb" not in shaping.plan("x", Link(rate="1gbit", burst="200kB"))
    assert " burst 200000b cburst 200000b " in shaping.plan("x", Link(rate="1gbit", burst="200kB"))


PRINTED_HTB = [
    (1_000_000_000, 125_000, "1Gbit", "125000b"),
    (10_000_000_000, 125_000, "10Gbit", "123750b"),
    (10_000_000_000, 1_250_000, "10Gbit", "1250000b"),
    (100_000_000, 66_560, "100Mbit", "66537b"),
    (1_234_567_890, 154_320, "1234Mbit", "154012b"),
    (1_000_567_000, 125_070, "1Gbit", "124820b"),
    (999_999_999, 124_999, "999999Kbit", "124749b"),
    (999_500_000, 125_000, "999500Kbit", "122Kb"),
    (10_000_000, 20_485, "10Mbit", "20Kb"),
    (1_000_000, 1_048_900, "1Mbit", "1Mb"),
    (1_000_001, 66_560, "1Mbit", "65Kb"),
    (123_456_789, 66_560, "123456Kbit", "66543b"),
    (100_000_000_000, 12_500_000, "100Gbit", "12500000b"),
    (100, 66_560, "96bit", "1826b"),
]
"""Asked for (bit/s, bytes), and what tc then printed of rate and burst."""


@pytest.mark.parametrize(("rate", "burst", "printed_rate", "printed_burst"), PRINTED_HTB[:-1])
def test_htb_as_tc_printed_it_agrees(rate: int, burst: int, printed_rate: str, printed_burst: str) -> None:
    assert disagreeing(Link(rate=rate, burst=burst), HTB, htb(printed_rate, printed_burst)) == set()


def test_htb_whose_burst_overflowed_is_found_out() -> None:
    """A study cannot ask for it."""
    rate, burst, printed_rate, printed_burst = PRINTED_HTB[-1]
    link = Link(rate=10**9).model_copy(update={"rate": rate, "burst": burst})
    assert disagreeing(link, HTB, htb(printed_rate, printed_burst)) == {"burst", "cburst"}


PRINTED_TBF = [
    (1_000_000_000, 125_000, 125_000_000, 125_000),
    (10_000_000_000, 125_000, 1_250_000_000, 123_750),
    (10_000_000_000, 1_250_000, 1_250_000_000, 1_248_750),
    (100_000_000, 66_560, 12_500_000, 66_550),
    (123_000_000, 200_000, 15_375_000, 199_998),
    (1_234_567_891, 154_320, 154_320_986, 154_166),
    (100_000_000_000, 12_500_000, 12_500_000_000, 12_487_500),
    (10_000_000, 20_485, 1_250_000, 20_483),
]


@pytest.mark.parametrize(("rate", "burst", "printed_rate", "printed_burst"), PRINTED_TBF)
def test_tbf_as_tc_printed_it_agrees(rate: int, burst: int, printed_rate: int, printed_burst: int) -> None:
    assert disagreeing(Link(rate=rate, burst=burst, shaper="tbf"), tbf(printed_rate, printed_burst)) == set()


@pytest.mark.parametrize(
    ("classes", "wrong"),
    [
        (htb("1Gbit", "125000b"), set()),
        (htb("1001Mbit", "125000b"), {"rate", "ceil"}),
        (htb("999999Kbit", "125000b"), {"rate", "ceil"}),
        (htb("999500Kbit", "125000b"), {"rate", "ceil"}),
        (htb("1Gbit", "125000b", ceil="2Gbit"), {"ceil"}),
        (htb("100Mbit", "125000b"), {"rate", "ceil"}),
        # Two microseconds at 1 Gbit/s are 250 bytes.
        (htb("1Gbit", "124750b"), set()),
        (htb("1Gbit", "124700b"), {"burst", "cburst"}),
        (htb("1Gbit", "125300b"), {"burst", "cburst"}),
        (htb("1Gbit", "125000b", cburst="1600b"), {"cburst"}),
        (htb("1Gbit", "0b"), {"burst", "cburst"}),
        ("", {"rate", "ceil", "burst", "cburst"}),
    ],
)
def test_a_wrong_htb_disagrees(classes: str, wrong: set[str]) -> None:
    assert disagreeing(Link(rate="1gbit"), HTB, classes) == wrong


@pytest.mark.parametrize(
    ("qdiscs", "wrong"),
    [
        (tbf(125_000_001, 125_000), {"rate"}),
        (tbf(124_999_999, 125_000), {"rate"}),
        (tbf(125_000_000, 124_800), {"burst"}),
        (tbf(125_000_000, 125_200), {"burst"}),
        (HTB, {"shaper", "rate", "burst"}),
        (NONE, {"shaper", "rate", "burst"}),
        (b"[]", {"shaper", "rate", "burst"}),
        (b"", {"shaper", "rate", "burst"}),
    ],
)
def test_a_wrong_tbf_disagrees(qdiscs: bytes, wrong: set[str]) -> None:
    assert disagreeing(Link(rate="1gbit", shaper="tbf"), qdiscs) == wrong


def test_a_link_that_is_not_shaped_tells_what_is_there() -> None:
    assert [(item.asked, item.found) for item in shaping.applied("v0", Link(), NONE, "")] == [(None, "noqueue")]


@pytest.mark.parametrize("said", [b"Cannot find device", b"5", b"[1]", b"\xff"])
def test_anything_else_is_an_error_that_keeps_the_text(said: bytes) -> None:
    with pytest.raises(ValueError, match="`tc -j qdisc show dev v0` did not print qdiscs") as error:
        shaping.applied("v0", Link(rate="1gbit"), said, "")
    assert repr(said) in str(error.value)


@pytest.mark.parametrize(("rate", "burst"), [("1Gbps", "125000b"), ("1Gbit", "1.95312e+06Kb")])
def test_a_number_that_is_none_is_an_error(rate: str, burst: str) -> None:
    with pytest.raises(ValueError, match=r"tc did not print a (rate|size): "):
        shaping.applied("v0", Link(rate="1gbit"), HTB, htb(rate, burst))


RATES = ["1mbit", "9999999bit", "100mbit", "1gbit", "1500mbit", "2499999999bit", "10gbit", "40gbit", "100gbit"]


def test_tc_of_this_machine_agrees_with_every_plan() -> None:
    """One namespace, a device for every link; default bursts and a large one."""
    links = [
        Link(rate=rate, shaper=shaper, burst=burst) for rate in RATES for shaper in ("htb", "tbf") for burst in (None, "3MB")
    ]
    devices = [f"v{number}" for number in range(len(links))]
    made = "".join(f"link add {name} type bridge\n" for name in devices)
    shaped = "".join(shaping.plan(name, link) for name, link in zip(devices, links, strict=True))
    questions = [question for name in devices for question in shaping.questions(name)]
    ask = "; echo =; ".join(" ".join(question) for question in questions)
    script = f"ip -batch - <<A || exit 1\n{made}A\ntc -batch - <<B || exit 1\n{shaped}B\n{ask}"
    done = subprocess.run(["unshare", "-n", "sh", "-c", script], capture_output=True, check=False)
    assert done.returncode == 0, done.stderr
    answers = done.stdout.split(b"=\n")
    for number, (name, link) in enumerate(zip(devices, links, strict=True)):
        qdiscs, classes = answers[2 * number], answers[2 * number + 1].decode()
        assert json.loads(qdiscs)
        applied = shaping.applied(name, link, qdiscs, classes)
        assert [item for item in applied if not item.agrees] == []
        assert all(item.tolerance < 0.001 for item in applied if item.setting in ("rate", "ceil"))
