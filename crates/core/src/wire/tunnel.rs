//! Packets inside packets: IP in IP (RFC 2003, RFC 4213), MPLS in IP (RFC 4023), GRE, and what is carried in UDP on its
//! assigned ports.

use super::layer::Layer;
use super::link::dissect_layers;
use super::packet::{Dissected, Packet, Transport};
use super::{geneve, gre, gtp, teredo, vxlan};

const IP_IN_IP: u8 = 4;
const IPV6_IN_IP: u8 = 41;
const MPLS_IN_IP: u8 = 137;
const GRE: u8 = 47;
const UDP_HEADER_BYTES: usize = 8;
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
    let (_, (layer, header_bytes)) = carried(packet, payload)?;
    let inner = payload.get(header_bytes..)?;
    // What the outer headers leave for it.
    let available_bytes = packet.transport_bytes.checked_sub(header_bytes as u32)?;
    match dissect_layers(layer, inner, available_bytes) {
        Dissected::Ip(mut inner) => {
            inner.transport_offset = (start + payload.len()) as u32 - inner.transport_offset;
            Some(inner)
        }
        _ => None,
    }
}

/// Names the tunnel whose packet `packet` is, as a count of packets that were not entered; `None` where it is of no tunnel, or
/// nothing in it can be read. A first fragment is of one, although it is never entered.
pub(super) fn not_entered(data: &[u8], packet: &Packet) -> Option<&'static str> {
    let start = packet.transport_offset as usize;
    let payload = data.get(start..start + packet.transport_captured as usize)?;
    let (kind, _) = carried(packet, payload).filter(|_| packet.transport != Transport::Fragment)?;
    (packet.fragment_id.is_some() || step(data, packet).is_some()).then_some(kind)
}

/// The kind of tunnel, what `payload` carries, the outer IP header's transport first, and how many bytes before it are headers.
fn carried(packet: &Packet, payload: &[u8]) -> Option<(&'static str, (Layer, usize))> {
    match packet.protocol {
        IP_IN_IP | IPV6_IN_IP => Some(("ip_in_ip_tunnel_not_entered", (Layer::Ip, 0))),
        MPLS_IN_IP => Some(("mpls_in_ip_tunnel_not_entered", (Layer::Mpls, 0))),
        GRE => Some(("gre_tunnel_not_entered", gre::carried(payload)?)),
        _ => {
            let Transport::Udp(datagram) = &packet.transport else { return None };
            let data = payload.get(UDP_HEADER_BYTES..)?;
            let (kind, carried) = match (datagram.source_port, datagram.destination_port) {
                (_, port) if vxlan::PORTS.contains(&port) => ("vxlan_tunnel_not_entered", vxlan::carried(data)),
                (_, geneve::PORT) => ("geneve_tunnel_not_entered", geneve::carried(data)),
                (_, gtp::PORT) => ("gtp_tunnel_not_entered", gtp::carried(data)),
                (teredo::PORT, _) | (_, teredo::PORT) => ("teredo_tunnel_not_entered", teredo::carried(data)),
                _ => return None,
            };
            let (layer, header_bytes) = carried?;
            Some((kind, (layer, UDP_HEADER_BYTES + header_bytes)))
        }
    }
}
