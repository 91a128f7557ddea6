//! The retransmission timeout of a connection, estimated from the round trips that the capture shows.
//!
//! RFC 6298 with Linux's constants (net/ipv4/tcp_input.c, `tcp_rtt_estimator`): SRTT + max(200 ms, 4 RTTVAR), 1 s before
//! the first sample and as long as a SYN is unanswered, at most 120 s. One segment of a direction is timed at once; none is
//! that was sent again, nor one sent before all of what was sent again is acknowledged (Karn's algorithm).
//!
//! A capture sees each direction's round trip from itself to the receiver and back. The sender's own is the sum of both.

/// Before the first sample (RFC 6298, 2.1).
pub const INITIAL_NS: i64 = 1_000_000_000;
/// The least that Linux adds to SRTT (`TCP_RTO_MIN`).
pub const LEAST_NS: i64 = 200_000_000;
/// Linux's `TCP_RTO_MAX`.
pub const MOST_NS: i64 = 120_000_000_000;

/// One direction's round trips, from the capture to the receiver and back.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct RoundTrips {
    /// Smoothed, and its variation; `None` before the first sample.
    smoothed: Option<(i64, i64)>,
    /// Position after the timed segment, and when it was sent.
    timed: Option<(i64, i64)>,
    /// Where what was sent again ends.
    repeated_until: i64,
}

impl RoundTrips {
    /// New data ends at `end`; all before `acknowledged` has arrived.
    #[inline]
    pub fn sent(&mut self, time_ns: i64, end: i64, acknowledged: i64) {
        if self.timed.is_none() && acknowledged >= self.repeated_until {
            self.timed = Some((end, time_ns));
        }
    }

    /// Something was sent again; the highest position sent is `end`.
    pub fn repeated(&mut self, end: i64) {
        self.timed = None;
        self.repeated_until = end;
    }

    /// A round trip counts for `most_ns` at most: one stall must not hide the next.
    #[inline]
    pub fn acknowledged(&mut self, time_ns: i64, position: i64, most_ns: i64) {
        let Some((_, sent_ns)) = self.timed.filter(|(end, _)| position >= *end) else { return };
        self.timed = None;
        let sample = time_ns.saturating_sub(sent_ns).clamp(0, most_ns);
        self.smoothed = Some(match self.smoothed {
            None => (sample, sample / 2),
            Some((smoothed, variation)) => {
                (smoothed + (sample - smoothed) / 8, variation + ((smoothed - sample).abs() - variation) / 4)
            }
        });
    }
}

/// Of a connection, by the round trips of both directions.
pub(super) fn timeout_ns(sides: [&RoundTrips; 2], is_opening: bool) -> i64 {
    let known = sides.iter().filter_map(|side| side.smoothed);
    let sum = known.reduce(|(one, its), (other, others)| (one + other, its + others));
    let Some((smoothed, variation)) = sum else { return INITIAL_NS };
    let timeout = smoothed + LEAST_NS.max(4 * variation);
    timeout.max(if is_opening { INITIAL_NS } else { 0 }).min(MOST_NS)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// By hand from RFC 6298, 2.2 and 2.3: samples of 100 and 180 ms give SRTT 100, 110 and RTTVAR 50, 57.5 ms.
    #[test]
    fn the_formulas_of_the_rfc() {
        let (mut own, other) = (RoundTrips::default(), RoundTrips::default());
        assert_eq!(timeout_ns([&own, &other], false), INITIAL_NS);
        own.sent(0, 10, 0);
        own.sent(1, 20, 0);
        own.acknowledged(50_000_000, 9, INITIAL_NS);
        own.acknowledged(100_000_000, 15, INITIAL_NS);
        assert_eq!(timeout_ns([&own, &other], false), 300_000_000);
        own.sent(0, 30, 20);
        own.acknowledged(180_000_000, 30, INITIAL_NS);
        assert_eq!(timeout_ns([&other, &own], false), 110_000_000 + 4 * 57_500_000);
        assert_eq!(timeout_ns([&own, &own], false), 2 * (110_000_000 + 4 * 57_500_000));
        assert_eq!(timeout_ns([&own, &other], true), INITIAL_NS);
    }

    #[test]
    fn what_was_sent_again_is_not_timed() {
        let mut own = RoundTrips::default();
        own.sent(0, 10, 0);
        own.repeated(20);
        own.sent(5, 30, 0);
        own.acknowledged(10, 30, INITIAL_NS);
        assert!(own.smoothed.is_none());
        own.sent(20, 40, 30);
        own.acknowledged(30, 40, INITIAL_NS);
        assert_eq!(own.smoothed, Some((10, 5)));
        // Longer than what counts (18: 10 + 8 / 8, 5 + (8 - 5) / 4), and back in time (11 - 11 / 8, 5 + (11 - 5) / 4).
        own.sent(40, 50, 40);
        own.acknowledged(4000, 50, 18);
        assert_eq!(own.smoothed, Some((11, 5)));
        own.sent(40, 60, 50);
        own.acknowledged(39, 60, INITIAL_NS);
        assert_eq!(own.smoothed, Some((10, 6)));
    }
}
