"""The instrument ``events``: its plan, and what it makes of a file with round numbers, by docs/probe/EVENTS.md."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from pydantic import ValidationError

from twinbed.contracts.command import Ready
from twinbed.contracts.extracted import Extracted
from twinbed.contracts.place import MACHINE, Target
from twinbed.instruments.events import EventsParams, events
from twinbed.metrics.events import METRICS
from twinbed.model.caution import Kind

MACHINE_FILE = """twinbed-events 1
kernel 6.1.0
share 0.2
start_ns 1000000000
end_ns 11000000000
softirqs 6000
windows 10
counted net net_dev_queue 2000000000 1200
counted net net_dev_xmit 2000000000 1200
counted net netif_rx 2000000000 1200
refused net netif_receive_skb this kernel has no tracepoint netif_receive_skb
counted net napi_poll 2000000000 1200
counted net kfree_skb 2000000000 1200
hits kfree_skb 7 NOWHERE
hits net_dev_queue 100 eth0
hits net_dev_queue 300 eth0
hits net_dev_queue 20 p.client 1
hits net_dev_xmit 60 p.client 1
counted kvm vmexit 2500000000 1500
lasted vmexit 40 40 80000 1000 5000
counted kvm mmio 2500000000 1500
lasted mmio 10 5 10000 1500 3000
counted kvm ioport 2500000000 1500
lasted ioport 3 0 0 0 0
lost 0
missed 0
end
""".replace("NOWHERE", "")
"""A fifth of the softirqs is in windows, so there are five times the hits seen; of KVM it is ten seconds over 2.5."""


@pytest.fixture
def extracted(tmp_path: Path) -> Extracted:
    return extract(tmp_path, MACHINE_FILE)


def extract(folder: Path, text: str) -> Extracted:
    (folder / MACHINE).mkdir()
    (folder / MACHINE / "kernel.events").write_text(text)
    return events.extract(EventsParams(), folder)


def test_it_is_planned_once_for_each_kernel() -> None:
    argv = ("twinbed-probe", "events", "--out", "{artifacts}/kernel.events", "--share", "0.1")
    (of_machine,) = events.plan(EventsParams(), Target(MACHINE, {"p.client": "client"}))
    (of_guest,) = events.plan(EventsParams(), Target("client", {"eth0": "client"}, own_kernel=True))
    assert (of_machine.argv, of_guest.argv) == (argv, argv)
    assert of_machine.ready == Ready(says=b"ready")
    assert events.plan(EventsParams(), Target("client", {"eth0": "client"})) == ()
    assert events.plan(EventsParams(share=1), Target(MACHINE, {}))[0].argv[-1] == "1"


@pytest.mark.parametrize("share", [0, -1, 1.1])
def test_a_share_that_is_none_is_an_error(share: float) -> None:
    with pytest.raises(ValidationError):
        EventsParams(share=share)


def test_values_are_what_was_seen_of_the_whole_time(extracted: Extracted) -> None:
    values = {value.metric: value.value for value in extracted.values}
    assert values == {
        "net_dev_queue_events": 5 * 420,
        "net_dev_xmit_events": 5 * 60,
        "netif_rx_events": 0,
        "netif_receive_skb_events": None,  # refused: not known, and not none
        "napi_poll_events": 0,
        "kfree_skb_events": 5 * 7,
        "kvm_exit_events": 4 * 40,
        "kvm_exit_seconds": pytest.approx(4 * 80e-6),
        "kvm_mmio_events": 4 * 10,
        "kvm_mmio_seconds": pytest.approx(4 * 10 * 2e-6),  # ten at a mean of the five that were timed
        "kvm_port_events": 4 * 3,
        "kvm_port_seconds": None,  # they happened, and none was timed
    }
    assert set(values) == {metric.name for metric in METRICS}
    assert {value.host for value in extracted.values} == {MACHINE}


def test_the_table_has_a_row_a_device_and_what_is_not_known_is_null(extracted: Extracted) -> None:
    rows = {(row["event"], row["device"]): row for row in extracted.tables["events"].to_pylist()}
    assert list(rows) == [
        ("net_dev_queue", "eth0"),
        ("net_dev_queue", "p.client 1"),
        ("net_dev_xmit", "p.client 1"),
        ("netif_receive_skb", None),
        ("kfree_skb", None),
        ("vmexit", None),
        ("mmio", None),
        ("ioport", None),
    ]
    assert (rows["net_dev_queue", "eth0"]["hits"], rows["net_dev_queue", "eth0"]["count"]) == (400, 2000)
    assert rows["netif_receive_skb", None]["hits"] is None and rows["netif_receive_skb", None]["count"] is None
    exits = rows["vmexit", None]
    assert [exits[name] for name in ("least_s", "mean_s", "most_s")] == pytest.approx([1e-6, 2e-6, 5e-6])
    assert [rows["ioport", None][name] for name in ("hits", "seconds", "least_s", "mean_s")] == [3, None, None, None]


def test_a_run_too_short_for_a_window_has_no_values(tmp_path: Path) -> None:
    text = re.sub(r"(counted \S+ \S+) \d+ \d+", r"\1 0 0", MACHINE_FILE)
    assert {value.value for value in extract(tmp_path, text).values} == {None}


@pytest.mark.parametrize("softirqs", [0, 999])
def test_where_few_softirqs_received_packets_hits_are_of_the_time(tmp_path: Path, softirqs: int) -> None:
    """Ten seconds over two, as packets of taps make no softirqs."""
    text = MACHINE_FILE.replace(" 2000000000 1200", f" 2000000000 {softirqs}")
    values = {value.metric: value.value for value in extract(tmp_path, text).values}
    assert values["net_dev_xmit_events"] == 5 * 60


def test_with_all_of_the_time_counts_are_what_was_seen(tmp_path: Path) -> None:
    values = {value.metric: value.value for value in extract(tmp_path, MACHINE_FILE.replace("share 0.2", "share 1")).values}
    assert (values["net_dev_queue_events"], values["kvm_exit_events"]) == (420, 40)


def test_where_kvm_is_not_there_its_values_are_missing(tmp_path: Path) -> None:
    lines = [line for line in MACHINE_FILE.splitlines(keepends=True) if not line.startswith(("counted kvm", "lasted"))]
    lines[-3:-3] = [f"refused kvm {kind} cannot attach: No such file\n" for kind in ("vmexit", "mmio", "ioport")]
    values = {value.metric: value.value for value in extract(tmp_path, "".join(lines)).values}
    of_kvm = [value for name, value in values.items() if name.startswith("kvm")]
    assert of_kvm == [None] * 6 and values["net_dev_xmit_events"] == 300


def test_what_was_lost_is_a_caution(tmp_path: Path) -> None:
    found = extract(tmp_path, MACHINE_FILE.replace("lost 0", "lost 12").replace("missed 0", "missed 3"))
    assert [(caution.kind, caution.subject) for caution in found.cautions] == [(Kind.EVENTS_LOST, MACHINE)] * 2


@pytest.mark.parametrize("cut", ["end\n", "twinbed-events 1\n"])
def test_what_is_cut_off_is_an_error(tmp_path: Path, cut: str) -> None:
    with pytest.raises(ValueError, match="not whole"):
        extract(tmp_path, MACHINE_FILE.replace(cut, ""))


def test_without_a_file_it_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError):
        events.extract(EventsParams(), tmp_path)
