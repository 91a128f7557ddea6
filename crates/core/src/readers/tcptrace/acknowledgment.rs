//! What ACKs say of the other side's data: round trips by Karn's algorithm (RFC 6298, 3), duplicates, losses.

use super::acknowledged::{Acknowledged, NEVER};
use super::direction::{Arrival, Direction};
use super::outstanding::OutstandingSegment;
use super::samples::Samples;

impl Direction {
    /// This side's ACK, and what it says of `peer`'s data.
    #[inline]
    pub(super) fn acknowledge(&mut self, peer: &mut Direction, arrival: &Arrival, window: u32) {
        if !peer.sent.has_base() {
            return;
        }
        let segment = &arrival.segment;
        let position = peer.sent.position(segment.acknowledgment);
        let mut is_new = false;
        // tcptrace finds no segment that ends where a quarter begins.
        let may_end = !peer.sent.quarters().begins(position);
        // When a number below the segment was sent last, among those acknowledged now and before in its quarter.
        let mut sent_ns = NEVER;
        while let Some(taken) = peer.outstanding.take_below(position) {
            let quarter = peer.sent.quarters().of(taken.start);
            let acknowledged = &mut peer.acknowledged;
            if quarter != acknowledged.quarter {
                acknowledged.quarter = quarter;
                acknowledged.sent_ns = NEVER;
            }
            let below_ns = sent_ns.max(acknowledged.sent_ns);
            acknowledged.sent_ns = acknowledged.sent_ns.max(taken.sent_ns);
            acknowledged.end = if acknowledged.has_end { acknowledged.end.max(taken.end()) } else { taken.end() };
            acknowledged.has_end = true;
            if taken.end() == position && may_end {
                is_new = true;
                peer.sample(&taken, below_ns, arrival.time_ns);
            } else {
                peer.acknowledged.cumulative += 1;
            }
            sent_ns = sent_ns.max(taken.sent_ns);
        }
        let is_duplicate = !is_new
            && segment.payload_bytes == 0
            && segment.acknowledgment == self.compared_acknowledgment
            && window == self.compared_window
            && peer.had_in_flight
            && may_end
            && peer.ends_at(position);
        if peer.syns == 1 && segment.acknowledgment == peer.syn_number.wrapping_add(1) {
            // tcptrace takes the sample made last for the handshake's, until the SYN is sent again.
            peer.acknowledged.handshake_ns = peer.acknowledged.last_ns;
        }
        if is_duplicate {
            peer.acknowledged.duplicates += 1;
            self.duplicates_in_a_row += 1;
            if self.duplicates_in_a_row == 3 {
                peer.rare().triple_dupacks += 1;
            }
        } else {
            self.duplicates_in_a_row = 0;
        }
    }

    /// Acknowledged numbers end at a position: neighbouring segments that are acknowledged are one.
    #[inline]
    fn ends_at(&self, position: i64) -> bool {
        let Acknowledged { has_end, end, .. } = self.acknowledged;
        has_end && (end == position || position < end && self.ends_below(position))
    }

    #[cold]
    fn ends_below(&self, position: i64) -> bool {
        let is_acknowledged = |at| self.sent.contains(at) && self.outstanding.find(at).is_none();
        is_acknowledged(position - 1) && !is_acknowledged(position)
    }

    /// An ACK of exactly this segment of this side.
    #[inline]
    fn sample(&mut self, segment: &OutstandingSegment, below_sent_ns: i64, time_ns: i64) {
        if below_sent_ns > segment.sent_ns {
            // Something before it was sent again after it, and held up its ACK.
            self.acknowledged.last_ns = -1;
            self.rare().post_loss_acks += 1;
            return;
        }
        let round_trip_ns = time_ns.saturating_sub(segment.sent_ns).max(0);
        if segment.retransmissions > 0 {
            self.acknowledged.last_ns = -1;
            let rare = self.rare();
            rare.ambiguous_acks += 1;
            rare.last_round_trips.add(round_trip_ns);
            return;
        }
        let acknowledged = &mut self.acknowledged;
        acknowledged.round_trips.add(round_trip_ns);
        acknowledged.last_ns = round_trip_ns;
        if segment.length > acknowledged.full_size {
            acknowledged.full_size = segment.length;
            acknowledged.full_round_trips = Samples::default();
        }
        if segment.length == acknowledged.full_size {
            acknowledged.full_round_trips.add(round_trip_ns);
        }
    }
}
