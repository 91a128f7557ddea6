"""Writes captures of one conversation in many encapsulations with scapy, and what tshark reads in each.

    python3 make.py      # needs scapy 2.8 and tshark 4.0

Of each frame: number of the file's frames, innermost source and destination, TCP's ports, sequence number and payload bytes.
"""

import struct
import subprocess
from pathlib import Path

from scapy.all import (
    ARP,
    GRE,
    IP,
    LLC,
    PPP,
    SNAP,
    STP,
    TCP,
    UDP,
    VXLAN,
    Dot1AD,
    Dot1AH,
    Dot1Q,
    Dot3,
    Dot11,
    Dot11Beacon,
    Dot11QoS,
    Ether,
    IPv6,
    PPPoE,
    RadioTap,
    Raw,
    wrpcap,
)
from scapy.contrib.erspan import ERSPAN_II, ERSPAN_III
from scapy.contrib.geneve import GENEVE, GeneveOptions
from scapy.contrib.gtp import GTP_U_Header, GTPPDUSessionContainer
from scapy.contrib.lldp import LLDPDUChassisID, LLDPDUEndOfLLDPDU, LLDPDUPortID, LLDPDUTimeToLive
from scapy.contrib.mpls import MPLS, EoMCW

C, S = "02:00:00:00:00:01", "02:00:00:00:00:02"
OUTER = IP(src="192.0.2.1", dst="192.0.2.2", ttl=64)
ETHERNET, TOKEN_RING, FDDI, PPP_ETHERNET, RFC1483, CISCO_HDLC, WLAN, RADIOTAP = 1, 6, 10, 51, 100, 104, 105, 127


def inner(version=4):
    """A SYN, its answer, and 100 bytes."""

    def ip(client):
        if version == 4:
            return IP(src="10.1.0.1", dst="10.1.0.2") if client else IP(src="10.1.0.2", dst="10.1.0.1")
        return IPv6(src="2001:db8::1", dst="2001:db8::2") if client else IPv6(src="2001:db8::2", dst="2001:db8::1")

    return [
        ip(True) / TCP(sport=40000, dport=80, flags="S", seq=1000, options=[("MSS", 1460)]),
        ip(False) / TCP(sport=80, dport=40000, flags="SA", seq=5000, ack=1001, options=[("MSS", 1460)]),
        ip(True) / TCP(sport=40000, dport=80, flags="PA", seq=1001, ack=5001) / Raw(b"x" * 100),
    ]


def raw(head, rest):
    return Raw(bytes(head) + bytes(rest))


def snap(packet):
    return LLC(dsap=0xAA, ssap=0xAA, ctrl=3) / SNAP(OUI=0, code=0x0800) / packet


def frame(packet):
    return Ether(src=C, dst=S) / packet


def with_type(ether_type, head, rest):
    return raw(bytes.fromhex("020000000002020000000001") + struct.pack("!H", ether_type) + head, rest)


def wlan(packet, **fields):
    return Dot11(type=2, subtype=fields.pop("subtype", 0), addr1=S, addr2=C, addr3=S, addr4=C, **fields) / packet


def in_udp(port, *layers, source=49152):
    packet = frame(OUTER / UDP(sport=source, dport=port, chksum=0))
    for layer in layers:
        packet = packet / layer
    return packet


def padded(packet):
    """Radiotap's flag that the 802.11 header (26 bytes) is filled up to 28."""
    head = bytes(Dot11(type=2, subtype=8, FCfield=1, addr1=S, addr2=C, addr3=S) / Dot11QoS())
    radiotap = struct.pack("<BBHIQB", 0, 0, 17, 0b11, 1234, 0x20)
    return raw(radiotap + head + b"\0\0", snap(packet))


ROUTE = bytes.fromhex("0610001100220000")[:6]
EXTENDED = GTP_U_Header(teid=42, gtp_type=255, E=1, next_ex=0x85)


def mirrored(protocol, header, packet):
    return frame(OUTER / GRE(proto=protocol, seqnum_present=1, sequence_number=7) / header / frame(packet))


WRITTEN = {
    "llc-snap": (ETHERNET, lambda p: Dot3(src=C, dst=S) / snap(p)),
    "vlan-llc-snap": (ETHERNET, lambda p: with_type(0x8100, struct.pack("!HH", 5, len(snap(p))), snap(p))),
    "qinq": (ETHERNET, lambda p: frame(Dot1AD(vlan=7) / Dot1Q(vlan=8) / p)),
    "mpls": (ETHERNET, lambda p: frame(MPLS(label=100, s=0, ttl=9) / MPLS(label=200, s=1, ttl=9) / p)),
    "vlan-mpls": (ETHERNET, lambda p: frame(Dot1Q(vlan=5, type=0x8847) / MPLS(label=100, s=1, ttl=9) / p)),
    "mpls-ethernet": (ETHERNET, lambda p: frame(MPLS(label=300, s=1, ttl=9) / EoMCW() / frame(p))),
    "pbb": (ETHERNET, lambda p: frame(Dot1AD(vlan=9, type=0x88E7) / Dot1AH(isid=42) / frame(p))),
    "vn-tag": (ETHERNET, lambda p: with_type(0x8926, bytes.fromhex("800100020800"), p)),
    "vn-tag-vlan": (ETHERNET, lambda p: with_type(0x8926, bytes.fromhex("80010002810000050800"), p)),
    "fabric-path": (ETHERNET, lambda p: with_type(0x8903, struct.pack("!H", 1 << 6 | 32), raw(frame(p), bytes(4)))),
    "pppoe": (ETHERNET, lambda p: frame(PPPoE(sessionid=3) / PPP(proto=0x21) / p)),
    "pppoe-link": (PPP_ETHERNET, lambda p: PPPoE(sessionid=3) / PPP(proto=0x21) / p),
    "cisco-hdlc": (CISCO_HDLC, lambda p: raw(bytes.fromhex("0f000800"), p)),
    "rfc1483": (RFC1483, snap),
    "wlan": (WLAN, lambda p: wlan(snap(p), FCfield=1)),
    "radiotap": (RADIOTAP, lambda p: RadioTap() / wlan(snap(p), FCfield=2)),
    "radiotap-qos": (RADIOTAP, lambda p: RadioTap(present="TSFT+Flags") / wlan(Dot11QoS() / snap(p), FCfield=2, subtype=8)),
    "radiotap-4-addresses": (RADIOTAP, lambda p: RadioTap() / wlan(Dot11QoS() / snap(p), FCfield=3, subtype=8)),
    "radiotap-padded": (RADIOTAP, padded),
    "fddi": (FDDI, lambda p: raw(b"\x50" + bytes.fromhex("020000000002020000000001"), snap(p))),
    "token-ring": (TOKEN_RING, lambda p: raw(b"\x10\x40" + bytes.fromhex("020000000002020000000001"), snap(p))),
    "token-ring-route": (TOKEN_RING, lambda p: raw(b"\x10\x40" + bytes.fromhex("020000000002820000000001") + ROUTE, snap(p))),
    "ipip": (ETHERNET, lambda p: frame(OUTER / p)),
    "gre-mpls": (ETHERNET, lambda p: frame(OUTER / GRE(proto=0x8847) / MPLS(label=100, s=1, ttl=9) / p)),
    "vxlan": (ETHERNET, lambda p: in_udp(4789, VXLAN(vni=42, flags="Instance"), frame(p))),
    "geneve": (ETHERNET, lambda p: in_udp(6081, GENEVE(vni=42), frame(p))),
    "geneve-options": (ETHERNET, lambda p: in_udp(6081, GENEVE(vni=42, options=[GeneveOptions(data=b"12345678")]), p)),
    "erspan-1": (ETHERNET, lambda p: frame(OUTER / GRE(proto=0x88BE) / frame(p))),
    "erspan-2": (ETHERNET, lambda p: mirrored(0x88BE, ERSPAN_II(), p)),
    "erspan-3": (ETHERNET, lambda p: mirrored(0x22EB, ERSPAN_III(o=0), p)),
    "erspan-3-platform": (ETHERNET, lambda p: mirrored(0x22EB, raw(bytes(ERSPAN_III(o=1))[:12], bytes(8)), p)),
    "gtp-u": (ETHERNET, lambda p: in_udp(2152, GTP_U_Header(teid=42, gtp_type=255), p)),
    "gtp-u-sequence": (ETHERNET, lambda p: in_udp(2152, GTP_U_Header(teid=42, gtp_type=255, S=1, seq=3), p)),
    "gtp-u-extension": (ETHERNET, lambda p: in_udp(2152, EXTENDED, GTPPDUSessionContainer(type=0, QFI=1), p)),
}
# tshark takes the last four bytes of a FabricPath frame for its check sequence, so they are there.
SIX = {
    "6in4": (ETHERNET, lambda p: frame(OUTER / p)),
    "teredo": (ETHERNET, lambda p: in_udp(3544, p)),
    "teredo-origin": (ETHERNET, lambda p: in_udp(49152, raw(bytes.fromhex("0000bfff3ffffdfe"), p), source=3544)),
    "teredo-authentication": (ETHERNET, lambda p: in_udp(3544, raw(bytes.fromhex("00010000" + "11" * 8 + "00"), p))),
}


def spanning_tree():
    return Dot3(src=C, dst="01:80:c2:00:00:00") / LLC(dsap=0x42, ssap=0x42, ctrl=3) / STP()


def lldp():
    return Ether(src=C, dst="01:80:c2:00:00:0e", type=0x88CC) / (
        LLDPDUChassisID(subtype=4, id=C) / LLDPDUPortID(subtype=7, id=b"1") / LLDPDUTimeToLive(ttl=120) / LLDPDUEndOfLLDPDU()
    )


NOT_READ = {
    "not-ip-ethernet": (
        ETHERNET,
        [frame(ARP()), lldp(), spanning_tree()],
    ),
    "not-ip-wlan": (
        RADIOTAP,
        [
            RadioTap() / Dot11(type=0, subtype=8, addr1=S, addr2=C, addr3=C) / Dot11Beacon(),
            RadioTap() / Dot11(type=1, subtype=13, addr1=S),
            RadioTap() / Dot11(type=2, subtype=4, FCfield=1, addr1=S, addr2=C, addr3=S),
            RadioTap() / Dot11(type=2, FCfield=0x41, addr1=S, addr2=C, addr3=S) / Raw(bytes(40)),
        ],
    ),
}
FIELDS = ("ip.src", "ipv6.src", "ip.dst", "ipv6.dst", "tcp.srcport", "tcp.dstport", "tcp.seq_raw", "tcp.len")
# MPLS does not say what it carries: tshark is told of the one label that is a pseudowire.
DECODE = ("-d", "mpls.label==300,pwethcw", "-o", "wlan.ignore_wep:No")


def tshark(name):
    command = ["tshark", "-r", f"{name}.pcap", *DECODE, "-T", "fields", "-E", "occurrence=l", "-e", "frame.protocols"]
    for field in FIELDS:
        command += ["-e", field]
    for field in ("wlan.fc.type", "wlan.fc.protected"):
        command += ["-e", field]
    text = subprocess.run(command, check=True, capture_output=True, text=True).stdout
    return [line.split("\t") for line in text.splitlines()]


def main():
    for name, (link, made) in WRITTEN.items():
        wrpcap(f"{name}.pcap", [made(packet) for packet in inner()], linktype=link)
    for name, (link, made) in SIX.items():
        wrpcap(f"{name}.pcap", [made(packet) for packet in inner(6)], linktype=link)
    for name, (link, frames) in NOT_READ.items():
        wrpcap(f"{name}.pcap", frames, linktype=link)
    with Path("expected.tsv").open("w") as file:
        for name in [*WRITTEN, *SIX]:
            for protocols, *cells in tshark(name):
                version = 6 if "ipv6" in protocols else 4
                source, destination = (cells[0], cells[2]) if version == 4 else (cells[1], cells[3])
                print(name, source, destination, *cells[4:8], protocols, sep="\t", file=file)
        for name in NOT_READ:
            for protocols, *cells in tshark(name):
                print(name, "", "", "", "", "", "", protocols, *cells[8:], sep="\t", file=file)


main()
