//! Who is the originator where the first packet captured does not say it, and what ICMP has for ports.

use crate::wire::checksum::ICMP;
use crate::wire::tcp::{Segment, ACK, SYN};
use crate::wire::Addresses;

/// Zeek's `likely_server_ports` with its base scripts loaded (`base/init-bare.zeek` in its script reference), ascending.
const TCP_SERVERS: [u16; 41] = [
    21, 22, 25, 53, 79, 80, 81, 88, 135, 139, 143, 389, 443, 445, 502, 563, 585, 587, 614, 631, 636, 989, 990, 992,
    993, 995, 1080, 1883, 2811, 3128, 3268, 3389, 5222, 5223, 5269, 5432, 6379, 8000, 8080, 8888, 20000,
];
const IRC: std::ops::RangeInclusive<u16> = 6666..=6669;
const UDP_SERVERS: [u16; 22] = [
    53, 67, 88, 123, 137, 161, 162, 389, 443, 514, 1812, 2123, 2152, 3389, 3544, 4789, 5060, 5072, 5353, 5355, 6081,
    20000,
];

fn is_tcp_server(port: u16) -> bool {
    TCP_SERVERS.binary_search(&port).is_ok() || IRC.contains(&port)
}

fn is_udp_server(port: u16) -> bool {
    UDP_SERVERS.binary_search(&port).is_ok()
}

/// Whether a connection's first segment comes from its responder. Of two ports of servers the lower one is the
/// responder's; a SYN+ACK between such may be a scan, and says nothing.
pub fn segment_is_from_responder(segment: &Segment) -> bool {
    let (source, destination) = (segment.source_port, segment.destination_port);
    let is_syn = segment.has(SYN);
    if is_syn && !segment.has(ACK) || !is_tcp_server(source) {
        return false;
    }
    !is_tcp_server(destination) || !is_syn && source < destination
}

/// Whether a connection's first datagram comes from its responder.
pub fn datagram_is_from_responder(source_port: u16, destination_port: u16) -> bool {
    is_udp_server(source_port) && !is_udp_server(destination_port)
}

/// Whether the destination is all hosts or a group of them, of which none begins a connection.
pub fn is_to_many(addresses: &Addresses) -> bool {
    match *addresses {
        Addresses::V4 { destination, .. } => destination == u32::MAX || destination >> 28 == 0xe,
        Addresses::V6 { destination, .. } => destination >> 120 == 0xff,
    }
}

/// What an ICMP message has for source and destination port: its type, and the type that answers it or that it
/// answers; or its code, where there is none. Those without go one way only.
pub fn icmp_ports(protocol: u8, kind: u8, code: u8) -> (u16, u16, bool) {
    let counterpart = if protocol == ICMP { counterpart(kind) } else { counterpart_v6(kind) };
    match counterpart {
        Some(other) => (u16::from(kind), u16::from(other), false),
        None => (u16::from(kind), u16::from(code), true),
    }
}

/// RFC 792, RFC 950 (masks), RFC 1256 (routers).
fn counterpart(kind: u8) -> Option<u8> {
    Some(match kind {
        8 => 0,
        0 => 8,
        9 => 10,
        10 => 9,
        13 => 14,
        14 => 13,
        15 => 16,
        16 => 15,
        17 => 18,
        18 => 17,
        _ => return None,
    })
}

/// RFC 4443 (echo), RFC 2710 (listeners), RFC 4861 (routers, neighbours), RFC 4620 (names), RFC 6275 (home agents).
fn counterpart_v6(kind: u8) -> Option<u8> {
    Some(match kind {
        128 => 129,
        129 => 128,
        130 => 131,
        131 => 130,
        133 => 134,
        134 => 133,
        135 => 136,
        136 => 135,
        139 => 140,
        140 => 139,
        144 => 145,
        145 => 144,
        _ => return None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lists_ascend() {
        assert!(TCP_SERVERS.is_sorted() && UDP_SERVERS.is_sorted());
    }
}
