//! What one side of a connection sent.

use super::ranges::Ranges;
use crate::packetisation::{SegmentLimits, WirePackets};
use crate::wire::tcp::{Segment, ACK, FIN, RST, SYN};

/// Counts of one direction. For UDP only packets, the three byte counts, super and wire packets are meant.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Counts {
    pub packets: u64,
    /// IP header and all that follows.
    pub bytes: u64,
    /// Frames' original lengths.
    pub frame_bytes: u64,
    pub payload_bytes: u64,
    /// Payload bytes by sequence number, each counted once (tcptrace: unique bytes sent).
    pub unique_payload_bytes: u64,
    /// Segments with at least one repeated sequence number, SYNs and FINs too (tcptrace: rexmt data pkts).
    pub retransmitted_segments: u64,
    /// Repeated payload bytes. tcptrace's rexmt data bytes has `retransmitted_syn_fin` added.
    pub retransmitted_bytes: u64,
    /// Repeated SYNs and FINs.
    pub retransmitted_syn_fin: u64,
    /// Segments with a new sequence number below the highest seen (tcptrace: outoforder pkts).
    pub out_of_order_segments: u64,
    /// ACK without payload, SYN, FIN or RST (tcptrace: pure acks sent).
    pub pure_acks: u64,
    pub data_segments: u64,
    /// The longest payload of a segment as captured, so above the MSS where segments were captured merged.
    pub max_segment_bytes: u32,
    pub syn_segments: u64,
    pub fin_segments: u64,
    pub rst_segments: u64,
    /// Payload of 0 or 1 byte just below the next number, all acknowledged: asks for an ACK, carries nothing.
    pub keep_alive_segments: u64,
    /// One byte sent against a closed window.
    pub zero_window_probes: u64,
    /// Packets whose IP length is above the MTU.
    pub super_packets: u64,
    /// Packets on the wire that the packets stand for.
    pub wire_packets: u64,
}

/// A direction's counts, and what is remembered to tell new data from old.
#[derive(Debug, Clone, Default)]
pub(super) struct Direction {
    pub counts: Counts,
    /// Sequence number of the last SYN.
    pub syn_sequence: Option<u32>,
    /// From a SYN's options.
    pub max_segment_option: Option<u16>,
    pub acknowledged: Option<u32>,
    /// Window of the last ACK or SYN, unscaled: only 0 matters.
    pub window: Option<u16>,
    /// Number that position 0 stands for: the first one seen.
    base: Option<u32>,
    seen: Ranges,
    /// Position of a byte sent against a closed window, not counted as data until it is acknowledged.
    probe: Option<i64>,
}

impl Direction {
    /// The position of a sequence number, by way of the highest seen.
    #[inline]
    fn position(&mut self, sequence: u32) -> i64 {
        let base = *self.base.get_or_insert(sequence);
        let end = self.seen.end();
        let ahead = sequence.wrapping_sub(base.wrapping_add(end as u32)) as i32;
        end + i64::from(ahead)
    }

    /// The lowest number seen is the one after `syn`.
    pub fn follows(&self, syn: u32) -> bool {
        self.base.is_some_and(|base| base == syn.wrapping_add(1))
    }

    pub fn has_data(&self) -> bool {
        self.counts.data_segments > 0
    }

    /// Counts a segment that this side sent; `peer` is the other side as it was before.
    #[inline]
    pub fn segment(&mut self, segment: &Segment, peer: &Direction) {
        let payload_bytes = segment.payload_bytes;
        let (syn, fin, rst) = (segment.has(SYN), segment.has(FIN), segment.has(RST));
        let counts = &mut self.counts;
        counts.payload_bytes += u64::from(payload_bytes);
        counts.syn_segments += u64::from(syn);
        counts.fin_segments += u64::from(fin);
        counts.rst_segments += u64::from(rst);
        if payload_bytes > 0 {
            counts.data_segments += 1;
            counts.max_segment_bytes = counts.max_segment_bytes.max(payload_bytes);
        } else if segment.has(ACK) && !syn && !fin && !rst {
            counts.pure_acks += 1;
        }
        if syn {
            self.syn_sequence = Some(segment.sequence);
            self.max_segment_option = segment.max_segment_bytes.or(self.max_segment_option);
        }
        let start = self.position(segment.sequence);
        let numbers = i64::from(payload_bytes) + i64::from(syn) + i64::from(fin);
        let is_probe_like = payload_bytes <= 1 && !syn && !fin && !rst;
        if is_probe_like && self.is_keep_alive(start, peer) {
            self.counts.keep_alive_segments += 1;
        } else if is_probe_like && payload_bytes == 1 && self.is_window_probe(segment, start, peer) {
            self.counts.zero_window_probes += 1;
            self.probe = Some(start);
        } else if numbers > 0 {
            self.numbers(start, start + numbers, payload_bytes, syn, fin);
        }
        if segment.has(ACK) {
            self.acknowledged = Some(segment.acknowledgment);
        }
        // A RST's window says nothing about room.
        if (segment.has(ACK) || syn) && !rst {
            self.window = Some(segment.window);
        }
    }

    #[inline]
    fn numbers(&mut self, start: i64, end: i64, payload_bytes: u32, syn: bool, fin: bool) {
        let repeated_syn = syn && self.seen.contains(start);
        let repeated_fin = fin && self.seen.contains(end - 1);
        let added = self.seen.add(start, end);
        let control = u64::from(repeated_syn) + u64::from(repeated_fin);
        let repeated_payload = added.repeated - control;
        let counts = &mut self.counts;
        counts.retransmitted_segments += u64::from(added.repeated > 0);
        counts.retransmitted_bytes += repeated_payload;
        counts.retransmitted_syn_fin += control;
        counts.out_of_order_segments += u64::from(added.fills_gap);
        counts.unique_payload_bytes += u64::from(payload_bytes) - repeated_payload;
    }

    /// As Wireshark's rule (0 or 1 byte, one below the next number), and nothing is left unacknowledged, so that
    /// a one-byte segment sent again is not taken for one.
    #[inline]
    fn is_keep_alive(&self, start: i64, peer: &Direction) -> bool {
        let next = self.seen.end();
        next > 0 && start == next - 1 && self.is_acknowledged(next, peer)
    }

    fn is_acknowledged(&self, next: i64, peer: &Direction) -> bool {
        match (self.base, peer.acknowledged) {
            (Some(base), Some(acknowledged)) => base.wrapping_add(next as u32) == acknowledged,
            _ => false,
        }
    }

    /// The peer's window is closed and it has acknowledged all before this byte.
    fn is_window_probe(&self, segment: &Segment, start: i64, peer: &Direction) -> bool {
        peer.window == Some(0) && peer.acknowledged == Some(segment.sequence) && start >= self.seen.end()
    }

    /// The peer acknowledges up to `acknowledgment`: a probe's byte below it was taken after all.
    #[inline]
    pub fn acknowledged_by_peer(&mut self, acknowledgment: u32) {
        if let (Some(probe), Some(base)) = (self.probe, self.base) {
            let ahead = acknowledgment.wrapping_sub(base.wrapping_add(probe as u32)) as i32;
            if ahead > 0 {
                self.probe = None;
                if !self.seen.contains(probe) {
                    self.seen.add(probe, probe + 1);
                    self.counts.unique_payload_bytes += 1;
                }
            }
        }
    }

    /// Packets on the wire that a packet of this side stands for.
    #[inline]
    pub fn tcp_wire_packets(&self, segment: &Segment, ip_bytes: u32, mtu: u32, peer: &Direction) -> u64 {
        let limits = SegmentLimits {
            mtu,
            receiver: peer.max_segment_option,
            smaller: [self.max_segment_option, peer.max_segment_option].into_iter().flatten().min(),
        };
        WirePackets::of_segment(segment.payload_bytes, u32::from(segment.header_bytes), ip_bytes, &limits).count
    }
}
