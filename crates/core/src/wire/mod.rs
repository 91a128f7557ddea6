//! One frame's headers, outermost first, as far as they were captured.
//!
//! Lengths are the headers' own, so a snap length changes no count. Where a header gives none (0 with
//! segmentation offload or BIG TCP) the frame's original length does.
//!
//! Own code rather than etherparse: its slices want whole headers, while a snap length may cut TCP's options
//! with ports and numbers intact. `tests/differential.rs` holds the two equal on whole packets.

pub mod checksum;
pub mod ethernet;
pub mod ipv4;
pub mod ipv6;
pub mod loopback;
pub mod ppp;
pub mod tcp;
pub mod tunnel;
pub mod udp;
mod usual;

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use crate::capture::{Frame, LinkType};

/// What a frame is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Dissected {
    Ip(Packet),
    /// Not IP (ARP, LLDP, ...).
    NonIp,
    /// IP that cannot be counted, with the reason; version and protocol number where they were read.
    Unusable {
        reason: &'static str,
    },
}

/// An IP packet.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Packet {
    pub addresses: Addresses,
    /// The transport's number, after IPv6 extension headers.
    pub protocol: u8,
    /// IP header and all that follows it.
    pub ip_bytes: u32,
    pub transport: Transport,
    /// Transport header and what follows it, by the IP headers' lengths.
    pub transport_bytes: u32,
    /// The captured part of the transport header and what follows it: where in the frame's data, and how much.
    pub transport_offset: u32,
    pub transport_captured: u32,
    /// IPv4's identification.
    pub ip_id: Option<u16>,
    /// The identification that joins fragments, if this is one.
    pub fragment_id: Option<u32>,
    /// The frame's original length is shorter than the IP header claims.
    pub longer_than_frame: bool,
}

impl Packet {
    /// The captured part of the transport header and what follows it; `data` is the frame's.
    #[inline]
    pub fn transport_data<'a>(&self, data: &'a [u8]) -> &'a [u8] {
        &data[self.transport_offset as usize..][..self.transport_captured as usize]
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Addresses {
    V4 { source: u32, destination: u32 },
    V6 { source: u128, destination: u128 },
}

impl Addresses {
    /// Source and destination as numbers of the version's own width.
    #[inline]
    pub fn numbers(&self) -> (u128, u128) {
        match *self {
            Addresses::V4 { source, destination } => (u128::from(source), u128::from(destination)),
            Addresses::V6 { source, destination } => (source, destination),
        }
    }

    pub fn is_v6(&self) -> bool {
        matches!(self, Addresses::V6 { .. })
    }
}

/// The address that [`Addresses::numbers`] gave as a number.
pub fn address(number: u128, is_v6: bool) -> IpAddr {
    if is_v6 {
        IpAddr::V6(Ipv6Addr::from(number))
    } else {
        IpAddr::V4(Ipv4Addr::from(number as u32))
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Transport {
    Tcp(tcp::Segment),
    Udp(udp::Datagram),
    /// Another protocol.
    Other,
    /// Not the first fragment: the transport header is in another packet.
    Fragment,
    /// TCP or UDP that cannot be counted, with the reason.
    Unusable {
        reason: &'static str,
    },
}

/// What an IP header leads to.
pub(crate) struct Inner<'a> {
    pub protocol: u8,
    pub addresses: Addresses,
    pub ip_bytes: u32,
    pub is_later_fragment: bool,
    pub ip_id: Option<u16>,
    pub fragment_id: Option<u32>,
    /// Bytes after the IP headers, by the headers' own lengths.
    pub payload_bytes: u32,
    /// The captured part of them, and where in the IP packet's captured data it begins.
    pub payload: &'a [u8],
    pub payload_offset: usize,
}

/// Reads a frame's headers, up to the outermost IP packet's transport.
#[inline]
pub fn dissect(frame: &Frame) -> Dissected {
    if frame.link == LinkType::ETHERNET {
        if let Some(packet) = usual::read(frame.data, frame.original_bytes) {
            return Dissected::Ip(packet);
        }
    }
    dissect_layers(frame)
}

/// As [`dissect`], layer by layer.
fn dissect_layers(frame: &Frame) -> Dissected {
    let mut dissected = dissect_link(frame.link, frame.data, frame.original_bytes);
    if let Dissected::Ip(packet) = &mut dissected {
        // The layers hand on what is left of the data, so what is left tells where it began.
        packet.transport_offset = frame.data.len() as u32 - packet.transport_offset;
    }
    dissected
}

/// [`dissect`], or [`dissect_inner`] where tunnels are to be looked into.
#[inline]
pub fn dissect_within(frame: &Frame, tunnels: bool) -> Dissected {
    if tunnels {
        dissect_inner(frame)
    } else {
        dissect(frame)
    }
}

/// As [`dissect`], and into tunnels: the innermost IP packet that could be read counts.
pub fn dissect_inner(frame: &Frame) -> Dissected {
    match dissect(frame) {
        Dissected::Ip(outer) => Dissected::Ip(innermost(frame.data, outer)),
        other => other,
    }
}

/// The innermost IP packet of `outer` that could be read, `outer` itself if it carries none; `data` is the frame's.
pub fn innermost(data: &[u8], outer: Packet) -> Packet {
    tunnel::innermost(data, outer)
}

#[inline]
pub(crate) fn dissect_link(link: LinkType, data: &[u8], original_bytes: u32) -> Dissected {
    match link {
        LinkType::ETHERNET => ethernet::dissect(data, original_bytes),
        LinkType::LINUX_SLL => ethernet::dissect_cooked(data, original_bytes),
        LinkType::LINUX_SLL2 => ethernet::dissect_cooked_v2(data, original_bytes),
        LinkType::NULL | LinkType::LOOP => loopback::dissect(data, original_bytes),
        LinkType::PPP | LinkType::PPP_HDLC => ppp::dissect(data, original_bytes),
        LinkType::PPP_DIRECTED => ppp::dissect_directed(data, original_bytes),
        LinkType::RAW | LinkType::RAW_BSD | LinkType::RAW_OPENBSD | LinkType::IPV4 | LinkType::IPV6 => {
            dissect_ip(data, original_bytes)
        }
        _ => Dissected::Unusable { reason: "link_type_not_read" },
    }
}

/// Reads an IP packet of either version; `available_bytes` is what the frame originally had for it.
/// The packet's `transport_offset` is counted back from the end of `data` until [`dissect`] turns it round.
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
            tcp::PROTOCOL => tcp::read(inner.payload, inner.payload_bytes),
            udp::PROTOCOL => udp::read(inner.payload, inner.payload_bytes),
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

#[inline(always)]
pub(crate) fn u16_at(bytes: &[u8], at: usize) -> u16 {
    u16::from_be_bytes([bytes[at], bytes[at + 1]])
}

#[inline(always)]
pub(crate) fn u32_at(bytes: &[u8], at: usize) -> u32 {
    u32::from_be_bytes([bytes[at], bytes[at + 1], bytes[at + 2], bytes[at + 3]])
}
