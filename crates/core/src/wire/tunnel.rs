//! Packets inside packets: IP in IP (RFC 2003, RFC 4213), GRE (RFC 2784, RFC 2890), also as carrier of Ethernet, and
//! VXLAN (RFC 7348) on its assigned port and on the one that Linux used before.

use super::bytes::u16_at;
use super::ip::dissect_ip;
use super::link::dissect_link;
use super::packet::{Dissected, Packet, Transport};
use crate::capture::LinkType;

const IP_IN_IP: u8 = 4;
const IPV6_IN_IP: u8 = 41;
const GRE: u8 = 47;
const VXLAN_PORTS: [u16; 2] = [4789, 8472];
const UDP_HEADER_BYTES: usize = 8;
const VXLAN_HEADER_BYTES: usize = 8;
/// Tunnels that lie deeper than this are not entered.
const MAX_DEPTH: usize = 8;

/// The innermost IP packet of `outer`, which is in `data`; `outer` itself where nothing in it can be read.
pub(super) fn innermost(data: &[u8], outer: Packet) -> Packet {
    let mut packet = outer;
    for _ in 0..MAX_DEPTH {
        let Some(inner) = step(data, &packet) else { break };
        packet = inner;
    }
    packet
}

fn step(data: &[u8], packet: &Packet) -> Option<Packet> {
    if packet.fragment_id.is_some() {
        // Its length is not the inner packet's.
        return None;
    }
    let start = packet.transport_offset as usize;
    let payload = data.get(start..start + packet.transport_captured as usize)?;
    let header_bytes = data_header_bytes(packet, payload)?;
    let inner = payload.get(header_bytes..)?;
    // What the outer headers leave for it.
    let available_bytes = packet.transport_bytes.checked_sub(header_bytes as u32)?;
    let dissected = match carried(packet, payload)? {
        Carried::Ip => dissect_ip(inner, available_bytes),
        Carried::Ethernet => dissect_link(LinkType::ETHERNET, inner, available_bytes),
    };
    match dissected {
        Dissected::Ip(mut inner) => {
            inner.transport_offset = (start + payload.len()) as u32 - inner.transport_offset;
            Some(inner)
        }
        _ => None,
    }
}

enum Carried {
    Ip,
    Ethernet,
}

fn carried(packet: &Packet, payload: &[u8]) -> Option<Carried> {
    const TRANSPARENT_ETHERNET: u16 = 0x6558;
    match packet.protocol {
        IP_IN_IP | IPV6_IN_IP => Some(Carried::Ip),
        GRE => match u16_at(payload, 2) {
            0x0800 | 0x86dd => Some(Carried::Ip),
            TRANSPARENT_ETHERNET => Some(Carried::Ethernet),
            _ => None,
        },
        _ => Some(Carried::Ethernet),
    }
}

/// Bytes from the start of the outer payload to the carried packet; `None` where none is carried.
fn data_header_bytes(packet: &Packet, payload: &[u8]) -> Option<usize> {
    match packet.protocol {
        IP_IN_IP | IPV6_IN_IP => Some(0),
        GRE => gre_header_bytes(payload),
        _ => {
            let Transport::Udp(datagram) = &packet.transport else { return None };
            let flags = *payload.get(UDP_HEADER_BYTES)?;
            let is_vxlan = VXLAN_PORTS.contains(&datagram.destination_port) && flags & 0x08 != 0;
            is_vxlan.then_some(UDP_HEADER_BYTES + VXLAN_HEADER_BYTES)
        }
    }
}

fn gre_header_bytes(payload: &[u8]) -> Option<usize> {
    const CHECKSUM: u16 = 0x8000;
    const ROUTING: u16 = 0x4000;
    const KEY: u16 = 0x2000;
    const SEQUENCE: u16 = 0x1000;
    const VERSION: u16 = 0x0007;
    if payload.len() < 4 {
        return None;
    }
    let flags = u16_at(payload, 0);
    if flags & (VERSION | ROUTING) != 0 {
        return None;
    }
    let optional = [CHECKSUM, KEY, SEQUENCE].iter().filter(|&&flag| flags & flag != 0).count();
    Some(4 + 4 * optional)
}
