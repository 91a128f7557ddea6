//! What is read of a frame: its IP packet, the packet's addresses, and what it carries.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use super::{tcp, udp};

/// What a frame is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Dissected {
    Ip(Packet),
    /// Not IP, or in an encapsulation that is not read, by kind (arp, lldp, wlan_encrypted, ...).
    NonIp {
        kind: &'static str,
    },
    /// An IP packet that cannot be counted, with the reason.
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
