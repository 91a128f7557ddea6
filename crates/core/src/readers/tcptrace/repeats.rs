//! Packets that do not begin where the last one ended: sent again, out of order, or both.

use super::direction::Direction;
use super::outstanding::OutstandingSegment;
use super::sent::{each_quarter, Part};

/// What a packet that begins below the highest number is.
pub(super) struct Found {
    pub is_new: bool,
    pub is_out_of_order: bool,
}

impl Direction {
    /// A packet that begins below the highest number: sent again, or out of order, or both.
    #[cold]
    pub(super) fn repeated(&mut self, start: i64, end: i64, time_ns: i64) -> Found {
        let mut whole = Found { is_new: true, is_out_of_order: false };
        let quarters = self.sent.quarters();
        each_quarter(&quarters, start, end, |start, length| {
            let part = self.repeated_within(quarters.of(start), start, start + i64::from(length), time_ns);
            whole.is_new &= part.is_new;
            whole.is_out_of_order |= part.is_out_of_order;
        });
        if !whole.is_new {
            self.rare().rexmt_packets += 1;
        }
        if whole.is_out_of_order {
            self.rare().out_of_order += 1;
        }
        whole
    }

    /// What of such a packet lies in one quarter of the sequence space.
    fn repeated_within(&mut self, quarter: u8, start: i64, end: i64, time_ns: i64) -> Found {
        let (is_followed, is_next_sent) = (self.sent.is_followed(end), self.sent.contains(end));
        let (mut new, mut repeated) = (0, 0);
        let (outstanding, acknowledged) = (&mut self.outstanding, &mut self.acknowledged);
        let (mut resent_after, mut max_times) = (None, 0);
        // After new numbers, it ends where nothing was, or inside a segment that was there before.
        let mut ends_within = false;
        self.sent.add(start, end, |part| match part {
            Part::New { start, end: part_end } => {
                new += part_end - start;
                ends_within = part_end == end;
                let length = (part_end - start) as u32;
                outstanding.insert(OutstandingSegment { start, length, retransmissions: 0, sent_ns: time_ns });
            }
            Part::Repeated { start: part_start, end: part_end } => {
                // Only the first segment that it repeats is sent again at this time.
                let is_first = repeated == 0;
                repeated += part_end - part_start;
                if is_first {
                    match outstanding.at(part_start) {
                        Some(segment) => {
                            resent_after = Some(time_ns.saturating_sub(segment.sent_ns));
                            segment.sent_ns = time_ns;
                            max_times = segment.retransmissions + 1;
                        }
                        None => acknowledged.sent_again(quarter, time_ns),
                    }
                }
                outstanding.each_within(part_start, part_end, |segment| {
                    segment.retransmissions = segment.retransmissions.saturating_add(1);
                });
                ends_within = part_end == end
                    && part_start > start
                    && match outstanding.at(end - 1) {
                        Some(last) => last.start == part_start && end < last.end(),
                        None => is_next_sent && end < acknowledged.end,
                    };
            }
        });
        self.new_numbers += new as u64;
        if repeated > 0 {
            let rare = self.rare();
            rare.rexmt_bytes += repeated as u64;
            rare.max_retransmissions = rare.max_retransmissions.max(max_times);
            if let Some(after_ns) = resent_after {
                rare.retransmission_times.add(after_ns.max(0));
            }
        }
        Found { is_new: repeated == 0, is_out_of_order: new > 0 && ends_within && is_followed }
    }
}
