//! An IP packet of either version, with its transport's header.

use super::packet::{Dissected, Packet, Transport};
use super::{ipv4, ipv6, tcp, udp};

/// Reads an IP packet of either version; `available_bytes` is what the frame originally had for it.
/// The packet's `transport_offset` is counted back from the end of `data` until `dissect` turns it round.
#[inline]
pub(crate) fn dissect_ip(data: &[u8], available_bytes: u32) -> Dissected {
    let inner = match data.first().map(|first| first >> 4) {
        Some(4) => ipv4::read(data, available_bytes),
        Some(6) => ipv6::read(data, available_bytes),
        Some(_) => Err("ip_version_not_4_or_6"),
        None => Err("ip_header_cut_off"),
    };
    let inner = match inner {
        Ok(inner) => inner,
        Err(reason) => return Dissected::Unusable { reason },
    };
    let transport = if inner.is_later_fragment {
        Transport::Fragment
    } else {
        match inner.protocol {
            tcp::PROTOCOL => match tcp::read(inner.payload, inner.payload_bytes) {
                Ok(segment) => Transport::Tcp(segment),
                Err(reason) => Transport::Unusable { reason },
            },
            udp::PROTOCOL => match udp::read(inner.payload, inner.payload_bytes) {
                Ok(datagram) => Transport::Udp(datagram),
                Err(reason) => Transport::Unusable { reason },
            },
            _ => Transport::Other,
        }
    };
    Dissected::Ip(Packet {
        addresses: inner.addresses,
        protocol: inner.protocol,
        ip_bytes: inner.ip_bytes,
        transport,
        transport_bytes: inner.payload_bytes,
        transport_offset: (data.len() - inner.payload_offset) as u32,
        transport_captured: inner.payload.len() as u32,
        ip_id: inner.ip_id,
        fragment_id: inner.fragment_id,
        longer_than_frame: inner.ip_bytes > available_bytes,
    })
}
