//! Waits that Nagle's algorithm explains (RFC 896; RFC 9293, 3.7.4; Minshall's variant in Linux, `tcp_nagle_check`): payload that
//! left as soon as an acknowledgment came, where that acknowledgment ended the only segment in flight that was not full.
//!
//! A capture does not say when a program wrote. So a wait is counted only where
//!
//! - a segment smaller than the maximum was sent while no other such was unacknowledged, as the algorithm demands,
//! - the peer acknowledged it without payload of its own, so that what followed is no answer to a message, and
//! - the next payload followed that acknowledgment within a [`PROMPT`]th of the time that the acknowledgment took: a
//!   program that writes when it likes does so by chance once in [`PROMPT`] times at most.
//!
//! Its length is the time that the acknowledgment took: the most that a write can have waited.

/// How many times as long as the sender's reaction the acknowledgment must have taken.
const PROMPT: i64 = 10;

/// Waits of one direction.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct NagleWaits {
    pub count: u64,
    pub ns: u64,
}

#[derive(Debug, Default)]
pub(super) struct Waits {
    done: NagleWaits,
    /// Where the last segment that was not full ends, and whether it has been acknowledged.
    small_end: Option<i64>,
    /// When the only such in flight was sent, and acknowledged.
    sent_ns: Option<i64>,
    acknowledged_ns: Option<i64>,
}

impl Waits {
    /// New payload up to `end`; `is_full`: it fills a packet, or several.
    #[inline]
    pub fn sent(&mut self, time_ns: Option<i64>, end: i64, is_full: bool) {
        if let (Some(sent), Some(acknowledged), Some(time)) = (self.sent_ns, self.acknowledged_ns, time_ns) {
            let wait = acknowledged.saturating_sub(sent);
            let reaction = time.saturating_sub(acknowledged).max(0);
            if wait > 0 && reaction.saturating_mul(PROMPT) <= wait {
                self.done.count += 1;
                self.done.ns = self.done.ns.saturating_add(wait as u64);
            }
        }
        if self.acknowledged_ns.is_some() {
            (self.sent_ns, self.acknowledged_ns) = (None, None);
        }
        if !is_full {
            self.sent_ns = if self.small_end.is_none() { time_ns } else { None };
            self.small_end = Some(end);
        }
    }

    /// The peer acknowledged all before `position`, with payload of its own or without.
    #[inline]
    pub fn acknowledged(&mut self, time_ns: Option<i64>, position: i64, has_payload: bool) {
        if has_payload {
            (self.sent_ns, self.acknowledged_ns) = (None, None);
        }
        if self.small_end.is_some_and(|end| position >= end) {
            self.small_end = None;
            if self.sent_ns.is_some() {
                self.acknowledged_ns = time_ns;
            }
        }
    }

    pub fn finish(&self) -> NagleWaits {
        self.done
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MS: i64 = 1_000_000;

    fn waits(steps: impl FnOnce(&mut Waits)) -> (u64, u64) {
        let mut waits = Waits::default();
        steps(&mut waits);
        let done = waits.finish();
        (done.count, done.ns)
    }

    #[test]
    fn what_leaves_at_the_acknowledgment_has_waited_for_it() {
        let held = waits(|w| {
            w.sent(Some(0), 200, false);
            w.acknowledged(Some(40 * MS), 200, false);
            w.sent(Some(41 * MS), 2200, false);
            w.acknowledged(Some(81 * MS), 2200, false);
            w.sent(Some(85 * MS), 2400, false);
        });
        assert_eq!(held, (2, 80 * MS as u64), "4 ms are a tenth of 40 ms");
    }

    #[test]
    fn a_program_that_writes_when_it_likes_does_not_wait() {
        let free = waits(|w| {
            w.sent(Some(0), 200, false);
            w.acknowledged(Some(40 * MS), 200, false);
            w.sent(Some(50 * MS), 400, false);
        });
        assert_eq!(free, (0, 0));
    }

    #[test]
    fn an_answer_is_no_acknowledgment_alone() {
        let asked = waits(|w| {
            w.sent(Some(0), 200, false);
            w.acknowledged(Some(40 * MS), 200, true);
            w.sent(Some(40 * MS), 400, false);
            // Acknowledged first, then answered.
            w.acknowledged(Some(80 * MS), 400, false);
            w.acknowledged(Some(80 * MS), 400, true);
            w.sent(Some(80 * MS), 600, false);
        });
        assert_eq!(asked, (0, 0));
    }

    #[test]
    fn several_small_ones_in_flight_are_none_of_its() {
        let many = waits(|w| {
            w.sent(Some(0), 200, false);
            w.sent(Some(4 * MS), 400, false);
            w.acknowledged(Some(40 * MS), 200, false);
            w.acknowledged(Some(40 * MS), 400, false);
            w.sent(Some(40 * MS), 600, false);
        });
        assert_eq!(many, (0, 0));
        let full = waits(|w| {
            w.sent(Some(0), 1448, true);
            w.acknowledged(Some(40 * MS), 1448, false);
            w.sent(Some(40 * MS), 2896, true);
        });
        assert_eq!(full, (0, 0), "full ones wait for the congestion window");
    }

    #[test]
    fn a_full_one_may_leave_beside_a_small_one() {
        let beside = waits(|w| {
            w.sent(Some(0), 200, false);
            w.sent(Some(10 * MS), 1648, true);
            w.acknowledged(Some(40 * MS), 1648, false);
            w.sent(Some(40 * MS), 1700, false);
        });
        assert_eq!(beside, (1, 40 * MS as u64));
    }

    #[test]
    fn without_times_there_are_none() {
        let untimed = waits(|w| {
            w.sent(None, 200, false);
            w.acknowledged(None, 200, false);
            w.sent(None, 400, false);
        });
        assert_eq!(untimed, (0, 0));
    }
}
