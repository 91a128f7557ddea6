//! What ACKs have shown of a side's data so far.

use super::samples::Samples;

/// What was made of a side's data by the other side's ACKs.
#[derive(Debug, Clone)]
pub(super) struct Acknowledged {
    pub round_trips: Samples,
    /// Round trips of the longest segments.
    pub full_round_trips: Samples,
    pub(super) full_size: u32,
    /// Round trips of the handshake and of the last sample; below 0 where there is none.
    pub handshake_ns: i64,
    pub(super) last_ns: i64,
    /// Segments acknowledged by an ACK beyond their end, or inside them.
    pub cumulative: u32,
    pub duplicates: u32,
    /// The highest end of an acknowledged segment.
    pub end: i64,
    pub(super) has_end: bool,
    /// When an acknowledged number was sent last, in which quarter of the sequence space.
    pub(super) sent_ns: i64,
    pub(super) quarter: u8,
}

/// No time: before all.
pub(super) const NEVER: i64 = i64::MIN;

impl Acknowledged {
    pub const NONE: Acknowledged = Acknowledged {
        round_trips: Samples::NONE,
        full_round_trips: Samples::NONE,
        full_size: 0,
        handshake_ns: -1,
        last_ns: -1,
        cumulative: 0,
        duplicates: 0,
        end: 0,
        has_end: false,
        sent_ns: NEVER,
        quarter: 0,
    };

    /// Numbers acknowledged already were sent again.
    pub fn sent_again(&mut self, quarter: u8, time_ns: i64) {
        if quarter == self.quarter {
            self.sent_ns = self.sent_ns.max(time_ns);
        }
    }
}
