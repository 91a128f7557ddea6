//! How connections' payload was cut into packets, and how these followed each other: frames in, a row for each direction
//! of each connection that carried payload.
//!
//! | file | what |
//! |---|---|
//! | `wire_packets` | super-packets of segmentation and receive offload, as the packets on the wire that they stand for |
//! | `sizes` | the distribution of payload sizes |
//! | `bursts` | packet trains and the gaps between them |
//! | `in_flight` | bytes sent and not yet acknowledged |
//! | `arrivals` | retransmission, and reordering with its extent |
//! | `nagle` | waits that Nagle's algorithm explains |
//! | `side`, here | one direction; one connection |
//!
//! One pass. Memory: 32,768 connections (see `flow::tracking`) of 1 KiB each, and the rows. At worst a connection takes 20 KiB:
//! with as many sizes and holes as are kept, in both directions.
//! UDP has sizes, bursts and gaps; later fragments of datagrams are counted in the summary only.

mod arrivals;
mod bursts;
mod in_flight;
mod nagle;
mod side;
mod sizes;

use std::net::IpAddr;

pub use arrivals::Disorder;
pub use bursts::{Bursts, DEFAULT_GAP_NS};
pub use in_flight::InFlight;
pub use nagle::NagleWaits;
pub use side::{Direction, PacketCounts};
pub use sizes::SizeCount;

use super::Reader;
use crate::capture::{self, Counts, Ended, Frame, Origin};
use crate::flow::tracking::{Followed, Tracking};
use crate::flow::{widen, Protocol, WirePackets};
use crate::wire::tcp::{Segment, ACK, SYN};
use crate::wire::udp::Datagram;
use crate::wire::{self, Dissected, Packet, Transport};
use side::{Captured, Side};

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Options {
    /// IP packets longer than this stand for several on the wire.
    pub mtu: u32,
    /// Look into tunnels (docs/captures.md): the innermost packet counts.
    pub tunnels: bool,
    /// A longer gap between data packets ends a burst.
    pub burst_gap_ns: i64,
}

impl Default for Options {
    fn default() -> Self {
        Options { mtu: 1500, tunnels: false, burst_gap_ns: DEFAULT_GAP_NS }
    }
}

/// A connection that carried payload.
#[derive(Debug, Clone, PartialEq)]
pub struct Connection {
    pub protocol: Protocol,
    pub originator_address: IpAddr,
    pub originator_port: u16,
    pub responder_address: IpAddr,
    pub responder_port: u16,
    /// Number in the capture, from 1, of its first packet.
    pub first_packet: u64,
    pub start_ns: Option<i64>,
    pub end_ns: Option<i64>,
    /// From the SYN to the ACK that ends the handshake; `None` where a SYN was repeated or one of the three is missing.
    pub handshake_ns: Option<i64>,
    pub originator: Direction,
    pub responder: Direction,
}

/// Packets of one payload size (or a range of them) in one direction of a connection.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Size {
    /// [`Connection::first_packet`] of its connection.
    pub first_packet: u64,
    pub from_originator: bool,
    pub count: SizeCount,
}

#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Summary {
    pub packets: u64,
    /// TCP and UDP packets of connections without payload, which have no row.
    pub connections_without_payload: u64,
    pub packets_without_payload_connection: u64,
    /// Connections finished before their end was seen, to bound memory.
    pub connections_finished_early: u64,
    /// As the capture file says; `None` where it does not.
    pub dropped_packets: Option<u64>,
    /// Packets and records that are in no row, by reason.
    pub skipped: Counts,
}

#[derive(Debug, Clone, Default, PartialEq)]
pub struct Packetisation {
    /// In the order of their first packets.
    pub connections: Vec<Connection>,
    /// By connection, originator before responder, then size.
    pub sizes: Vec<Size>,
    pub summary: Summary,
}

/// A connection while packets come; sides are indexed by whether they are the key's low end.
#[derive(Debug, Default)]
struct Live {
    start_ns: Option<i64>,
    end_ns: Option<i64>,
    handshake: Handshake,
    sides: [Side; 2],
}

/// The round trip of the three-way handshake.
#[derive(Debug, Default, Clone, Copy)]
enum Handshake {
    #[default]
    NotSeen,
    Syn {
        from_low: bool,
        time_ns: i64,
        answered: bool,
    },
    Done {
        round_trip_ns: i64,
    },
    Repeated,
}

impl Handshake {
    #[inline]
    fn segment(&mut self, segment: &Segment, sender_is_low: bool, time_ns: Option<i64>) {
        let Some(time) = time_ns else { return };
        let (syn, ack) = (segment.has(SYN), segment.has(ACK));
        *self = match *self {
            Handshake::NotSeen if syn && !ack => {
                Handshake::Syn { from_low: sender_is_low, time_ns: time, answered: false }
            }
            Handshake::Syn { from_low, .. } if syn && from_low == sender_is_low => Handshake::Repeated,
            Handshake::Syn { answered: true, .. } if syn => Handshake::Repeated,
            Handshake::Syn { from_low, time_ns, .. } if syn && ack => {
                Handshake::Syn { from_low, time_ns, answered: true }
            }
            Handshake::Syn { from_low, time_ns, answered: true } if ack && from_low == sender_is_low => {
                Handshake::Done { round_trip_ns: time.saturating_sub(time_ns).max(0) }
            }
            other => other,
        };
    }

    #[inline]
    fn round_trip_ns(&self) -> Option<i64> {
        match *self {
            Handshake::Done { round_trip_ns } => Some(round_trip_ns),
            _ => None,
        }
    }
}

impl Live {
    #[inline]
    fn at(&mut self, time_ns: Option<i64>) {
        widen(&mut self.start_ns, &mut self.end_ns, time_ns);
    }
}

/// Takes frames one by one.
pub struct Analyzer {
    options: Options,
    connections: Tracking<Live>,
    done: Packetisation,
}

impl Analyzer {
    pub fn new(options: Options) -> Self {
        Analyzer { options, connections: Tracking::default(), done: Packetisation::default() }
    }

    #[inline]
    pub fn frame(&mut self, frame: &Frame) {
        self.done.summary.packets += 1;
        let dissected = wire::dissect_within(frame, self.options.tunnels);
        let reason = match &dissected {
            Dissected::Ip(packet) => match &packet.transport {
                Transport::Tcp(segment) => return self.segment(frame, packet, segment),
                Transport::Udp(datagram) => return self.datagram(frame, packet, datagram),
                Transport::Other => "not_tcp_or_udp",
                Transport::Fragment => "ip_fragment_without_transport_header",
                Transport::Unusable { reason } => reason,
            },
            Dissected::NonIp { kind } => kind,
            Dissected::Unusable { reason } => reason,
        };
        *self.done.summary.skipped.entry(reason).or_default() += 1;
    }

    #[inline]
    fn segment(&mut self, frame: &Frame, packet: &Packet, segment: &Segment) {
        let done = &mut self.done;
        let (followed, sender_is_low) =
            self.connections.segment(done.summary.packets, packet, segment, |followed| done.take(followed));
        let wire = followed.wire_packets(packet, segment, sender_is_low, self.options.mtu);
        let is_full = followed.is_full(packet, segment, sender_is_low, self.options.mtu);
        let live = &mut followed.state;
        live.at(frame.time_ns);
        live.handshake.segment(segment, sender_is_low, frame.time_ns);
        let captured = Captured {
            time_ns: frame.time_ns,
            ip_bytes: packet.ip_bytes,
            ip_id: packet.ip_id,
            payload_bytes: segment.payload_bytes,
            wire,
            is_full,
            burst_gap_ns: self.options.burst_gap_ns,
        };
        let [high, low] = &mut live.sides;
        let (own, peer) = if sender_is_low { (low, high) } else { (high, low) };
        if segment.has(ACK) {
            peer.acknowledged(frame.time_ns, segment.acknowledgment, segment.payload_bytes > 0);
        }
        own.segment(segment, &captured, live.handshake.round_trip_ns());
    }

    #[inline]
    fn datagram(&mut self, frame: &Frame, packet: &Packet, datagram: &Datagram) {
        let done = &mut self.done;
        let (followed, sender_is_low) =
            self.connections
                .datagram(done.summary.packets, frame.time_ns, packet, datagram, |followed| done.take(followed));
        followed.state.at(frame.time_ns);
        followed.state.sides[usize::from(sender_is_low)].packet(&Captured {
            time_ns: frame.time_ns,
            ip_bytes: packet.ip_bytes,
            ip_id: packet.ip_id,
            payload_bytes: datagram.payload_bytes,
            wire: WirePackets::of_datagram(datagram.payload_bytes, packet.ip_bytes, self.options.mtu),
            is_full: false,
            burst_gap_ns: self.options.burst_gap_ns,
        });
    }

    /// Closes the books; `origin` is what the file said besides its packets.
    pub fn finish(self, origin: Origin) -> Packetisation {
        let mut done = self.done;
        done.summary.connections_finished_early = self.connections.finished_early;
        self.connections.finish(|followed| done.take(followed));
        done.connections.sort_unstable_by_key(|row| row.first_packet);
        // A connection's sizes are in order and together: a stable sort keeps them so.
        done.sizes.sort_by_key(|row| row.first_packet);
        done.summary.dropped_packets = origin.dropped_packets;
        capture::add(&mut done.summary.skipped, origin.skipped);
        done
    }
}

impl Packetisation {
    fn take(&mut self, followed: &mut Followed<Live>) {
        let live = &mut followed.state;
        let [high_side, low_side] = &mut live.sides;
        if !high_side.has_payload() && !low_side.has_payload() {
            self.summary.connections_without_payload += 1;
            self.summary.packets_without_payload_connection += high_side.packets() + low_side.packets();
            return;
        }
        let (low, high) = followed.key.ends();
        let (originator, responder, own, peer) = if followed.originator_is_low {
            (low, high, low_side, high_side)
        } else {
            (high, low, high_side, low_side)
        };
        let first_packet = followed.first_packet;
        let mut side = |side: &mut Side, from_originator| {
            side.finish(|count| self.sizes.push(Size { first_packet, from_originator, count }))
        };
        let (own, peer) = (side(own, true), side(peer, false));
        self.connections.push(Connection {
            protocol: followed.protocol,
            originator_address: originator.0,
            originator_port: originator.1,
            responder_address: responder.0,
            responder_port: responder.1,
            first_packet,
            start_ns: live.start_ns,
            end_ns: live.end_ns,
            handshake_ns: live.handshake.round_trip_ns(),
            originator: own,
            responder: peer,
        });
    }
}

impl Reader for Analyzer {
    type Tables = Packetisation;

    #[inline]
    fn frame(&mut self, frame: &Frame) {
        Analyzer::frame(self, frame);
    }

    fn finish(self, ended: Ended) -> Packetisation {
        Analyzer::finish(self, ended.origin)
    }
}
