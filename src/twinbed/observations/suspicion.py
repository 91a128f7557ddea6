"""How likely a difference between two testbeds explains a difference between their results.

Ranks are of kinds of facts: from those known to change results by factors (an emulated CPU, the NIC's model, its offloads: the
ICNC paper's Tables I to V) down to mere names.  They order what to look at; they prove nothing.
"""

from __future__ import annotations

import re
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Suspicion:
    rank: int
    """0 is the most suspicious."""
    kind: str
    why: str
    circumstance: bool
    """True if it belongs to how a measurement was made rather than to the testbed: between testbeds measured apart it is then
    no part of the question."""


def _kind(rank: int, kind: str, why: str, pattern: str, *, circumstance: bool = False) -> tuple[re.Pattern[str], Suspicion]:
    return re.compile(pattern, re.IGNORECASE), Suspicion(rank, kind, why, circumstance)


_KINDS = (
    _kind(
        12,
        "name",
        "it is only a name, without effect",
        r"\b(mac|serial|uuid|digest|boot_id|started|made by|command line|address|hostname|wake-ups?)\b| seconds$"
        r"|^image: digest$",
    ),
    _kind(
        0,
        "measurement",
        "the workload itself was not the same",
        r"^workload\.|^background\.|\b(duration|duration_s|streams|parallel|protocol|payload|requests|concurrency|threads"
        r"|reverse|mss|omit|target rate|max_requests)\b",
        circumstance=True,
    ),
    _kind(
        1,
        "virtualisation",
        "emulated, paravirtual and real hardware differ by factors",
        r"\b(accelerator|kvm|virtual|hypervisor|cpu model|driver of the testbed)\b|^testbed\.kind$",
    ),
    _kind(
        2,
        "link",
        "settings of the path of packets",
        r"\b(rate|burst|shaper|delay|jitter|loss|queue|qdisc|speed|duplex|trunk|vlan|uplink)\b",
    ),
    _kind(2, "link", "the largest packet", r"\bmtu\b", circumstance=True),
    _kind(3, "NIC", "the driver decides how packets reach the kernel", r"\bnic\b(?!.*(bus|firmware))|^testbed\.nic"),
    _kind(
        4, "offloads", "they decide who cuts, joins and checks segments", r"\boffload\b|\b(sg|tso|gso|gro|checksum\w*|csum)\b"
    ),
    _kind(5, "switch", "it joins the links", r"\b(switch|bridge|datapath|vhost|queues|mergeable)\b"),
    _kind(6, "kernel", "its network stack changes between versions", r"\bkernel\b|\bsystem\b", circumstance=True),
    _kind(
        7,
        "TCP",
        "it decides how senders react and how much is in flight",
        r"\b(congestion(_control| control)?|[rw]mem|autocorking|tcp_\w+|net\.\S+|sysctl|receive_buffer|send_buffer|buffer)\b",
        circumstance=True,
    ),
    _kind(
        8,
        "programs",
        "other versions may behave differently",
        r"\b(version|nginx|iperf\d?|ab|wrk|irtt|openssl|tcpdump|stress-ng|apache2-utils|ethtool|tools|sshd|libc6)\b",
        circumstance=True,
    ),
    _kind(8, "QEMU", "device models change between versions", r"\bqemu\b"),
    _kind(
        9,
        "CPU and memory",
        "the speed of hosts",
        r"\b(cpus?|vcpus|cpuset|idle|memory( bytes)?|governor|smt|numa|clock source|cpus by core|machine|product|vendor)\b",
    ),
    _kind(10, "firmware", "a rare cause, but it has happened", r"\b(firmware|bus|bios)\b"),
)
_OTHER = Suspicion(11, "other", "", False)


def suspicion(place: str, name: str) -> Suspicion:
    """Return how suspicious a fact or a setting (``topology.link.rate``) of a place (``client``, ``image``) is.

    Packages of an image are programs.

    >>> suspicion("client", "NIC driver").kind
    'NIC'
    """
    for pattern, kind in _KINDS:
        if pattern.search(name):
            return kind
    if place == "image":
        return Suspicion(11, "package", "the image's", True)
    return _OTHER
