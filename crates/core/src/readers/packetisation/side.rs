//! What one side of a connection sent, packet by packet.

use super::arrivals::{Arrival, Arrivals, Disorder};
use super::bursts::{Bursts, Trains};
use super::in_flight::{Flight, InFlight};
use super::nagle::{NagleWaits, Waits};
use super::sizes::{SizeCount, Sizes};
use crate::flow::WirePackets;
use crate::wire::tcp::{Segment, ACK, FIN, RST, SYN};

/// Packets of one direction.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct PacketCounts {
    pub packets: u64,
    /// IP header and all that follows.
    pub bytes: u64,
    pub payload_bytes: u64,
    /// Packets with payload, as captured.
    pub data_segments: u64,
    /// Packets that stand for more than one on the wire.
    pub super_packets: u64,
    /// Packets on the wire that all packets, and that the data segments stand for.
    pub wire_packets: u64,
    pub wire_data_packets: u64,
    /// ACK without payload, SYN, FIN or RST.
    pub pure_acks: u64,
}

/// One direction's packetisation. What is TCP's alone is at its default for UDP.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct Direction {
    pub counts: PacketCounts,
    pub bursts: Bursts,
    pub in_flight: InFlight,
    pub disorder: Disorder,
    pub nagle_waits: NagleWaits,
}

impl Direction {
    /// Retransmitted packets on the wire, of the data packets on the wire.
    pub fn retransmission_rate(&self) -> Option<f64> {
        let sent_again = self.disorder.retransmitted_packets + self.disorder.recovered_packets;
        ratio(sent_again, self.counts.wire_data_packets)
    }

    /// Retransmitted bytes, of the payload bytes.
    pub fn retransmission_byte_rate(&self) -> Option<f64> {
        let sent_again = self.disorder.retransmitted_bytes + self.disorder.recovered_bytes;
        ratio(sent_again, self.counts.payload_bytes)
    }

    /// Pure acknowledgments that the `peer` sent for each data packet on the wire.
    pub fn acks_per_data_packet(&self, peer: &Direction) -> Option<f64> {
        ratio(peer.counts.pure_acks, self.counts.wire_data_packets)
    }
}

fn ratio(part: u64, whole: u64) -> Option<f64> {
    (whole > 0).then(|| part as f64 / whole as f64)
}

/// A captured packet, as far as both transports have it.
#[derive(Debug, Clone, Copy)]
pub(super) struct Captured {
    pub time_ns: Option<i64>,
    pub ip_bytes: u32,
    pub ip_id: Option<u16>,
    pub payload_bytes: u32,
    pub wire: WirePackets,
    /// Whether its payload is as much as the connection lets a packet have, or more.
    pub is_full: bool,
    pub burst_gap_ns: i64,
}

#[derive(Debug, Default)]
pub(super) struct Side {
    counts: PacketCounts,
    sizes: Sizes,
    trains: Trains,
    flight: Flight,
    arrivals: Arrivals,
    waits: Waits,
}

impl Side {
    pub fn has_payload(&self) -> bool {
        self.counts.data_segments > 0
    }

    pub fn packets(&self) -> u64 {
        self.counts.packets
    }

    /// Counts a packet of either transport.
    #[inline]
    pub fn packet(&mut self, captured: &Captured) {
        let counts = &mut self.counts;
        let wire = &captured.wire;
        counts.packets += 1;
        counts.bytes += u64::from(captured.ip_bytes);
        counts.wire_packets += wire.count;
        if captured.payload_bytes == 0 {
            return;
        }
        counts.data_segments += 1;
        counts.payload_bytes += u64::from(captured.payload_bytes);
        counts.wire_data_packets += wire.count;
        if wire.count == 1 {
            self.sizes.add(captured.payload_bytes, 1, 1);
        } else {
            counts.super_packets += 1;
            self.sizes.add(captured.payload_bytes, 1, 0);
            self.sizes.add(wire.last_bytes, 0, 1);
            self.sizes.add(wire.piece_bytes, 0, wire.count - 1);
        }
        self.trains.add(captured.time_ns, wire.count, captured.payload_bytes, captured.burst_gap_ns);
    }

    /// As [`Side::packet`], with what TCP's header says. A keep-alive probe (up to one byte, just below the next number, all
    /// acknowledged) carries no data.
    #[inline]
    pub fn segment(&mut self, segment: &Segment, captured: &Captured, round_trip_ns: Option<i64>) {
        let syn = segment.has(SYN);
        let start = self.arrivals.position(segment.sequence.wrapping_add(u32::from(syn)));
        let payload_bytes = captured.payload_bytes;
        let end = self.arrivals.end();
        if payload_bytes == 1 && start == end - 1 && !syn && self.flight.is_acknowledged(end) {
            self.packet(&Captured { payload_bytes: 0, ..*captured });
            return;
        }
        self.packet(captured);
        if payload_bytes == 0 {
            let is_pure = segment.has(ACK) && segment.flags & (SYN | FIN | RST) == 0;
            self.counts.pure_acks += u64::from(is_pure);
            return;
        }
        self.arrivals.add(&Arrival {
            start,
            end: start + i64::from(payload_bytes),
            wire_packets: captured.wire.count,
            piece_bytes: captured.wire.piece_bytes,
            time_ns: captured.time_ns,
            ip_id: captured.ip_id,
            round_trip_ns,
        });
        self.flight.sent(captured.time_ns, self.arrivals.end());
        if self.arrivals.end() > end {
            self.waits.sent(captured.time_ns, self.arrivals.end(), captured.is_full);
        }
    }

    /// The peer sent an acknowledgment.
    #[inline]
    pub fn acknowledged(&mut self, time_ns: Option<i64>, acknowledgment: u32, has_payload: bool) {
        if !self.arrivals.is_empty() {
            let position = self.arrivals.position(acknowledgment);
            self.flight.acknowledged(time_ns, position, self.arrivals.end());
            self.waits.acknowledged(time_ns, position, has_payload);
        }
    }

    /// The row; `size` gets the sizes of its payloads.
    pub fn finish(&mut self, size: impl FnMut(SizeCount)) -> Direction {
        self.sizes.finish(size);
        Direction {
            bursts: self.trains.finish(),
            in_flight: self.flight.finish(),
            disorder: self.arrivals.finish(),
            nagle_waits: self.waits.finish(),
            counts: self.counts,
        }
    }
}
