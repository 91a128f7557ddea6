"""The loss ledger, on counters that are planted: what each place dropped is known, and so is what they leave unexplained."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from twinbed.readers.counters import losses
from twinbed.readers.counters.losses import Ledger
from twinbed.readers.counters.place import Place


def place(name: str, kernel: bool = False, **sources: dict[str, float]) -> Place:
    """``sources`` by short names; the tables are not looked at."""
    names = {"snmp": "/proc/net/snmp", "dev": "/proc/net/dev", "tc": "tc -s qdisc", "nic": "ethtool -S eth0"}
    counted: dict[str, Any] = {names[short]: keys for short, keys in sources.items()}
    if kernel:
        counted["/proc/net/softnet_stat"] = {"softnet:cpu0.dropped": 3.0}

    class Played(Place):
        @property
        def sources(self) -> frozenset[str]:
            return frozenset(counted)

    return Played(name, None, None, Path(), counted, {}, None, {})  # type: ignore[arg-type]


def snmp(**counts: float) -> dict[str, float]:
    names = ("Udp.OutDatagrams", "Udp.SndbufErrors", "Udp.InDatagrams", "Udp.InErrors", "Udp.NoPorts", "Udp.RcvbufErrors")
    names += ("Udp.InCsumErrors", "Ip.FragOKs", "Ip.FragCreates", "Ip.ReasmReqds", "Ip.ReasmOKs", "Ip.InDelivers")
    found = dict.fromkeys((*names, "Tcp.InSegs", "Icmp.InMsgs"), 0.0)
    return {f"snmp:{name}": counts.get(name.replace(".", "_"), value) for name, value in found.items()}


def dev(device: str, tx_dropped: float = 0.0, rx_dropped: float = 0.0) -> dict[str, float]:
    return {
        f"net/dev:{device}.{what}": n for what, n in (("tx_dropped", tx_dropped), ("rx_dropped", rx_dropped), ("rx_fifo", 0.0))
    }


def ledger(client: Place, server: Place, machine: Place) -> Ledger:
    found = list(losses.ledgers([client, machine, server], {"client": machine, "server": machine}))
    assert [each.direction for each in found] == ["client_to_server"], "nothing went the other way"
    return found[0]


def test_every_stage_has_its_own_counter() -> None:
    """1000 sent and 10 refused at once; the rest is lost 20, 30, 40, 50, 60, 70 on the way."""
    client = place("client", snmp=snmp(Udp_OutDatagrams=1000, Udp_SndbufErrors=10), dev=dev("eth0", tx_dropped=50))
    # Of the 50 that the veth dropped, 30 were refused by the backlog of the other end; so for the server: 90 and 60.
    machine = place(
        "machine",
        dev={**dev("p.client", rx_dropped=30), **dev("p.server", tx_dropped=90)},
        tc={"tc:p.server.root.dropped": 40.0, "tc:p.server.2.dropped": 40.0, "tc:p.client.root.dropped": 7.0},
    )
    server = place(
        "server",
        snmp=snmp(Udp_InDatagrams=700, Udp_InErrors=70, Udp_RcvbufErrors=70, Udp_NoPorts=5, Ip_InDelivers=800, Tcp_InSegs=20),
        dev=dev("eth0", rx_dropped=60),
    )
    found = ledger(client, server, machine)
    assert (found.sent, found.received, found.lost) == (1010, 700, 310)
    assert found.stages == {
        "sender socket": 10,
        "sender link": 20,
        "switch backlog": 30,
        "shaper": 40,
        "receiver link": 30,
        "backlog": 60,
        "NIC ring": 0,
        "reassembly": 0,
        "socket buffer": 70,
        "unread": 5,
        "refused": 5,
    }
    assert found.unexplained == 310 - (10 + 20 + 30 + 40 + 30 + 60 + 70 + 5 + 5)


def test_fragments_are_counted_one_by_one() -> None:
    """100 datagrams of 6 fragments; 12 fragments are dropped, of 5 datagrams, whose other 18 arrive for nothing."""
    client = place("client", snmp=snmp(Udp_OutDatagrams=100, Ip_FragOKs=100, Ip_FragCreates=600), dev=dev("eth0"))
    machine = place("machine", dev={**dev("p.client"), **dev("p.server")}, tc={"tc:p.server.root.dropped": 12.0})
    server = place(
        "server",
        snmp=snmp(Udp_InDatagrams=95, Ip_InDelivers=95, Ip_ReasmReqds=588, Ip_ReasmOKs=95),
        dev=dev("eth0"),
    )
    found = ledger(client, server, machine)
    assert (found.sent, found.lost) == (600, 30)
    assert (found.stages["shaper"], found.stages["reassembly"]) == (12, 18)
    assert found.unexplained == 0


@pytest.mark.parametrize(("read", "dropped", "share"), [(100, 0, 0.0), (100, 5, None), (103, 0, None), (90, 15, 0.5)])
def test_of_nothing_lost_no_share_is_unexplained(read: int, dropped: int, share: float | None) -> None:
    """Of 100 sent: counters that tell of drops which the program did not miss, and a program that read some twice."""
    client = place("client", snmp=snmp(Udp_OutDatagrams=100), dev=dev("eth0"))
    machine = place("machine", dev={**dev("p.client"), **dev("p.server")}, tc={"tc:p.server.root.dropped": float(dropped)})
    server = place("server", snmp=snmp(Udp_InDatagrams=read, Ip_InDelivers=read), dev=dev("eth0"))
    shares = {value.metric: value.value for value in losses.values([ledger(client, server, machine)])}
    assert shares == {"lost_packets": 100 - read, "unexplained_loss": share}


def test_a_guests_tap_and_its_own_backlog() -> None:
    client = place("client", snmp=snmp(Udp_OutDatagrams=100), dev=dev("eth0"))
    machine = place("machine", dev={**dev("p.client"), **dev("p.server", tx_dropped=8)}, tc={"tc:p.server.root.dropped": 0.0})
    server = place(
        "server",
        True,
        snmp=snmp(Udp_InDatagrams=80, Ip_InDelivers=80),
        dev=dev("eth0"),
        nic={"ethtool-S:eth0.rx_missed_errors": 9.0},
    )
    found = ledger(client, server, machine)
    assert (found.stages["receiver link"], found.stages["backlog"], found.stages["NIC ring"]) == (8, 3, 9)
    assert found.unexplained == 0


def test_a_counter_that_is_not_there_is_null_and_what_it_would_say_unexplained() -> None:
    client = place("client", snmp=snmp(Udp_OutDatagrams=100), dev=dev("eth0"))
    machine = place("machine", dev={**dev("p.client"), **dev("p.server")})
    found = ledger(client, place("server", snmp=snmp(Udp_InDatagrams=90, Ip_InDelivers=90), dev=dev("eth0")), machine)
    assert found.stages["shaper"] is None
    assert found.unexplained == 10
    shares = {value.metric: value.value for value in losses.values([found])}
    assert shares == {"lost_packets": 10, "unexplained_loss": pytest.approx(1.0)}
    rows = losses.table([found]).to_pylist()
    assert [row["packets"] for row in rows if row["stage"] in ("sent", "shaper", "received", "unexplained")] == [
        100,
        None,
        90,
        10,
    ]


def test_what_a_shared_uplink_drops_is_shared_out() -> None:
    """Of 100 each, two pairs lose 25 and 50, of which the socket of the first drops 5; the uplink's counters tell of 70."""
    devices = [dev(f"p.{end}{pair}") for end in ("client", "server") for pair in (1, 2)]
    machine = place(
        "machine",
        dev={key: n for each in (*devices, dev("uplink0", tx_dropped=10)) for key, n in each.items()},
        tc={"tc:uplink0.root.dropped": 60.0, "tc:uplink1.root.dropped": 1.0},
    )
    ends = []
    for pair, read, full in ((1, 75, 5), (2, 50, 0)):
        ends.append(place(f"client{pair}", snmp=snmp(Udp_OutDatagrams=100), dev=dev("eth0")))
        counted = snmp(Udp_InDatagrams=read, Udp_InErrors=full, Udp_RcvbufErrors=full, Ip_InDelivers=read + full)
        ends.append(place(f"server{pair}", snmp=counted, dev=dev("eth0")))
    one, two = losses.ledgers([*ends, machine], {each.name: machine for each in ends})
    assert list(one.stages)[2:5] == ["switch backlog", "uplink", "shaper"]
    assert (one.stages["uplink"], two.stages["uplink"]) == (20, 50)
    assert (one.unexplained, two.unexplained) == (0, 0)


def test_of_what_an_uplink_drops_that_bystanders_share_pairs_have_no_more_than_they_lost() -> None:
    """Of 100 sent 30 are lost, 10 of them at the receiver's shaper; the uplink dropped 500 of everybody's."""
    client = place("client", snmp=snmp(Udp_OutDatagrams=100), dev=dev("eth0"))
    server = place("server", snmp=snmp(Udp_InDatagrams=70, Ip_InDelivers=70), dev=dev("eth0"))
    devices = (*(dev(f"p.{host}") for host in ("client", "server", "otherclient1", "otherserver1")), dev("uplink0"))
    machine = place(
        "machine",
        dev={key: n for each in devices for key, n in each.items()},
        tc={"tc:uplink0.root.dropped": 500.0, "tc:p.server.root.dropped": 10.0},
    )
    found = ledger(client, server, machine)
    assert (found.stages["uplink"], found.stages["shaper"], found.unexplained) == (20, 10, 0)


def test_nothing_sent_makes_no_ledger() -> None:
    quiet = [place(name, snmp=snmp(), dev=dev("eth0")) for name in ("client", "server")]
    machine = place("machine", dev=dev("p.server"))
    assert list(losses.ledgers([*quiet, machine], {"client": machine, "server": machine})) == []
