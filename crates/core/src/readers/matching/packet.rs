//! What tells one packet from another at both points: endpoints, then sequence numbers for TCP segments that take any,
//! and for all else the fields that no hop on the way rewrites. Checksums are left out (offload fills them in late), and
//! so are time to live and congestion marks.

use std::hash::{BuildHasher, Hash};

use crate::capture::Frame;
use crate::flow::Key;
use crate::wire::tcp::{self, Segment, FIN, SYN};
use crate::wire::udp;
use crate::wire::{self, Dissected, Packet, Transport};

/// Payload that is compared: what a snap length of 96 holds of UDP over IPv6 too.
const COMPARED_BYTES: usize = 24;

/// What a packet is told by.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(super) enum Identity {
    /// A TCP segment with sequence numbers: it may be split or merged between the points.
    Range(Range),
    /// Anything else, as a hash: it comes out as it went in.
    Whole(u64),
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(super) struct Range {
    pub start: u32,
    /// Payload bytes, and one each for SYN and FIN; at least 1.
    pub numbers: u32,
    /// A SYN is before the payload.
    pub has_syn: bool,
    /// The timestamp option's value (RFC 7323): the parts of a packet keep it, a later retransmission has another.
    pub stamp: Option<u32>,
    /// IPv4's identification: the first part keeps it.
    pub ip_id: Option<u16>,
}

/// A packet at one point, without its bytes.
#[derive(Debug, Clone, Copy)]
pub(super) struct Seen {
    pub time_ns: i64,
    pub key: Key,
    pub sender_is_low: bool,
    pub protocol: u8,
    pub payload_bytes: u32,
    pub is_super: bool,
    pub identity: Identity,
}

impl Seen {
    /// The reason, where a frame cannot be matched.
    pub fn of(frame: &Frame, mtu: u32, tunnels: bool) -> Result<Seen, &'static str> {
        let packet = match wire::dissect_within(frame, tunnels) {
            Dissected::Ip(packet) => packet,
            Dissected::NonIp { kind } => return Err(kind),
            Dissected::Unusable { reason } => return Err(reason),
        };
        let time_ns = frame.time_ns.ok_or("packet_without_time")?;
        let content = packet.transport_data(frame.data);
        let (ports, payload_bytes, identity) = match &packet.transport {
            Transport::Tcp(segment) => {
                let identity = segment_identity(&packet, segment, content);
                ((segment.source_port, segment.destination_port), segment.payload_bytes, identity)
            }
            Transport::Udp(datagram) => {
                let payload = content.get(udp::HEADER_BYTES as usize..).unwrap_or_default();
                let identity = whole(&packet, payload, datagram.payload_bytes);
                ((datagram.source_port, datagram.destination_port), datagram.payload_bytes, identity)
            }
            Transport::Other => ((0, 0), packet.transport_bytes, whole(&packet, content, packet.transport_bytes)),
            Transport::Fragment => return Err("ip_fragment_without_transport_header"),
            Transport::Unusable { reason } => return Err(reason),
        };
        let (key, sender_is_low) = Key::of_packet(&packet, ports.0, ports.1);
        let is_super = packet.ip_bytes > mtu;
        Ok(Seen { time_ns, key, sender_is_low, protocol: packet.protocol, payload_bytes, is_super, identity })
    }
}

fn segment_identity(packet: &Packet, segment: &Segment, content: &[u8]) -> Identity {
    let (has_syn, has_fin) = (segment.has(SYN), segment.has(FIN));
    let numbers = segment.payload_bytes.saturating_add(u32::from(has_syn)).saturating_add(u32::from(has_fin));
    let stamp = tcp::timestamp(tcp::captured_options(content, segment));
    if numbers > 0 {
        return Identity::Range(Range { start: segment.sequence, numbers, has_syn, stamp, ip_id: packet.ip_id });
    }
    let fields = (segment.sequence, segment.acknowledgment, segment.flags, segment.window, stamp, packet.ip_id);
    Identity::Whole(hash(fields))
}

fn whole(packet: &Packet, payload: &[u8], payload_bytes: u32) -> Identity {
    let compared = &payload[..payload.len().min(COMPARED_BYTES)];
    Identity::Whole(hash((packet.ip_id, packet.fragment_id, payload_bytes, compared)))
}

fn hash(value: impl Hash) -> u64 {
    foldhash::fast::FixedState::default().hash_one(value)
}

/// Most that a packet's number is above another's that was sent shortly before.
const NEAR: u16 = 256;

/// A packet's orders at both points, and the number that its sender gave it (IPv4's identification).
#[derive(Debug, Clone, Copy)]
pub(super) struct Matched {
    pub up: u64,
    pub down: u64,
    pub number: Option<u16>,
}

impl Matched {
    /// By the sender's numbers, which count up and wrap; 0 stands for none (RFC 6864, 4.1). Some senders' are random: these are
    /// rarely so near.
    pub fn was_sent_after(&self, other: &Matched) -> bool {
        match (self.number, other.number) {
            (Some(own), Some(other)) if own != 0 && other != 0 => (1..=NEAR).contains(&own.wrapping_sub(other)),
            _ => false,
        }
    }
}
