//! What a flow's numbers show: lost, duplicated and reordered datagrams, and the runs that were lost together.
//!
//! Gaps are remembered, not the numbers that came. At more than [`MAX_GAPS`] gaps the oldest is closed, and its numbers
//! count as lost for good. Sources: RFC 3550 A.3 (expected less received), RFC 4737 (reordering, its extent).

use std::collections::VecDeque;

/// Open gaps that are remembered (24 bytes each).
pub const MAX_GAPS: usize = 4096;

/// Numbers from `start` to `end` (exclusive) that have not come.
#[derive(Debug, Clone, Copy)]
struct Gap {
    start: i64,
    end: i64,
    /// Which arrival (of distinct numbers) was the first above it.
    opened_by: u64,
}

/// In datagrams.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct SequenceCounts {
    pub first: i64,
    pub lowest: i64,
    pub highest: i64,
    /// From the lowest number (1, where the flow's beginning is in the capture) to the highest.
    pub expected: u64,
    /// Numbers that came, each once.
    pub distinct: u64,
    /// Numbers among those expected that never came.
    pub lost: u64,
    /// RFC 3550 A.3: expected less received; duplicates count as received, so it may be negative.
    pub lost_rfc3550: i64,
    /// Numbers that came again.
    pub duplicates: u64,
    /// RFC 4737: first copies whose number is below the highest that came before.
    pub reordered: u64,
    /// RFC 4737, 4.2.1: the most arrivals by which one came too late.
    pub reordering_extent_max: Option<u64>,
    /// Runs of lost numbers, and the longest of them.
    pub loss_bursts: u64,
    pub loss_burst_max: u64,
    /// Lost as iperf3 counts: a jump adds what it leaves out, any number not above the highest takes one away.
    pub iperf3_lost: u64,
    /// Numbers not above the highest: duplicates too.
    pub iperf3_out_of_order: u64,
    /// Numbers below all remembered gaps: whether they are duplicates or reordered is not known.
    pub beyond_memory: u64,
}

#[derive(Debug, Clone)]
pub(super) struct Sequence {
    counts: SequenceCounts,
    gaps: VecDeque<Gap>,
    /// Below it nothing is remembered.
    horizon: Option<i64>,
}

impl Sequence {
    /// `from` is the number that the flow is known to begin with.
    pub fn new(first: i64, from: Option<i64>) -> Self {
        let lowest = from.unwrap_or(first).min(first);
        let missed = first.abs_diff(lowest);
        let mut gaps = VecDeque::new();
        if lowest < first {
            gaps.push_back(Gap { start: lowest, end: first, opened_by: 0 });
        }
        let counts =
            SequenceCounts { first, lowest, highest: first, distinct: 1, iperf3_lost: missed, ..Default::default() };
        Sequence { counts, gaps, horizon: None }
    }

    pub fn highest(&self) -> i64 {
        self.counts.highest
    }

    /// Another number came.
    pub fn add(&mut self, number: i64) {
        let counts = &mut self.counts;
        if number > counts.highest {
            let start = counts.highest.saturating_add(1);
            if start < number {
                counts.iperf3_lost = counts.iperf3_lost.saturating_add(number.abs_diff(start));
                self.gaps.push_back(Gap { start, end: number, opened_by: counts.distinct });
            }
            counts.highest = number;
            counts.distinct += 1;
            if self.gaps.len() > MAX_GAPS {
                self.forget();
            }
            return;
        }
        counts.iperf3_out_of_order += 1;
        counts.iperf3_lost = counts.iperf3_lost.saturating_sub(1);
        if number < counts.lowest {
            if self.horizon.is_some() {
                counts.beyond_memory += 1;
                return;
            }
            let start = number.saturating_add(1);
            if start < counts.lowest {
                self.gaps.push_front(Gap { start, end: counts.lowest, opened_by: 0 });
            }
            counts.lowest = number;
            self.reordered(0);
            if self.gaps.len() > MAX_GAPS {
                self.forget();
            }
        } else if self.horizon.is_some_and(|horizon| number < horizon) {
            counts.beyond_memory += 1;
        } else {
            self.late(number);
        }
    }

    fn late(&mut self, number: i64) {
        let at = self.gaps.partition_point(|gap| gap.end <= number);
        let Some(gap) = self.gaps.get_mut(at).filter(|gap| gap.start <= number) else {
            self.counts.duplicates += 1;
            return;
        };
        let opened_by = gap.opened_by;
        let after = number.saturating_add(1);
        match (gap.start == number, gap.end == after) {
            (true, true) => {
                self.gaps.remove(at);
            }
            (true, false) => gap.start = after,
            (false, true) => gap.end = number,
            (false, false) => {
                let rest = Gap { start: after, ..*gap };
                gap.end = number;
                self.gaps.insert(at + 1, rest);
                if self.gaps.len() > MAX_GAPS {
                    self.forget();
                }
            }
        }
        self.reordered(opened_by);
    }

    fn reordered(&mut self, opened_by: u64) {
        let extent = self.counts.distinct.saturating_sub(opened_by);
        self.counts.distinct += 1;
        self.counts.reordered += 1;
        self.counts.reordering_extent_max = self.counts.reordering_extent_max.max(Some(extent));
    }

    fn forget(&mut self) {
        if let Some(gap) = self.gaps.pop_front() {
            self.horizon = Some(gap.end);
            self.counts.close(&gap);
        }
    }

    /// The counts if nothing more comes.
    pub fn finish(&self) -> SequenceCounts {
        let mut counts = self.counts;
        self.gaps.iter().for_each(|gap| counts.close(gap));
        counts.expected = counts.highest.abs_diff(counts.lowest).saturating_add(1);
        let received = counts.distinct.saturating_add(counts.duplicates).saturating_add(counts.beyond_memory);
        let lost = i128::from(counts.expected) - i128::from(received);
        counts.lost_rfc3550 = i64::try_from(lost).unwrap_or(i64::MAX);
        counts
    }
}

impl SequenceCounts {
    fn close(&mut self, gap: &Gap) {
        let length = gap.end.abs_diff(gap.start);
        self.lost = self.lost.saturating_add(length);
        self.loss_bursts += 1;
        self.loss_burst_max = self.loss_burst_max.max(length);
    }

    /// Lost of those expected.
    pub fn loss(&self) -> f64 {
        self.lost as f64 / self.expected as f64
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn counts(from: Option<i64>, numbers: &[i64]) -> SequenceCounts {
        let mut sequence = Sequence::new(numbers[0], from);
        numbers[1..].iter().for_each(|number| sequence.add(*number));
        sequence.finish()
    }

    #[test]
    fn losses_are_bursts_of_numbers() {
        let counted = counts(Some(1), &[1, 2, 5, 6, 7, 11]);
        assert_eq!((counted.expected, counted.lost, counted.loss_bursts, counted.loss_burst_max), (11, 5, 2, 3));
        assert_eq!((counted.lost_rfc3550, counted.iperf3_lost, counted.reordered), (5, 5, 0));
    }

    #[test]
    fn a_beginning_that_is_known_counts() {
        assert_eq!(counts(Some(1), &[4, 5]).lost, 3);
        assert_eq!(counts(None, &[4, 5]).lost, 0);
        assert_eq!(counts(None, &[4, 5, 2]).lost, 1);
    }

    /// RFC 4737's extent: 3 is late behind 4, 5 and 6, which came before it.
    #[test]
    fn reordering_has_an_extent() {
        let counted = counts(Some(1), &[1, 2, 4, 5, 6, 3, 7]);
        assert_eq!((counted.reordered, counted.reordering_extent_max, counted.lost), (1, Some(3), 0));
        assert_eq!((counted.iperf3_out_of_order, counted.iperf3_lost), (1, 0));
    }

    /// iperf3 takes each for a late datagram and forgives a loss: 3 was lost, but it says 0.
    #[test]
    fn duplicates_are_no_arrivals() {
        let counted = counts(Some(1), &[1, 2, 2, 4, 4, 5]);
        assert_eq!((counted.duplicates, counted.lost, counted.reordered), (2, 1, 0));
        assert_eq!((counted.iperf3_out_of_order, counted.iperf3_lost, counted.lost_rfc3550), (2, 0, -1));
    }

    #[test]
    fn what_is_remembered_is_bounded() {
        let mut sequence = Sequence::new(0, None);
        (1..=3 * MAX_GAPS as i64).for_each(|at| sequence.add(at * 2));
        assert_eq!(sequence.gaps.len(), MAX_GAPS);
        sequence.add(1);
        sequence.add(2 * 3 * MAX_GAPS as i64 - 1);
        let counts = sequence.finish();
        assert_eq!((counts.beyond_memory, counts.reordered, counts.lost), (1, 1, 3 * MAX_GAPS as u64 - 1));
    }

    #[test]
    fn extremes_do_not_overflow() {
        let counted = counts(None, &[i64::MIN, i64::MAX, 0, i64::MIN, i64::MAX]);
        assert_eq!((counted.duplicates, counted.reordered), (2, 1));
        counts(Some(1), &[i64::MAX, i64::MIN, 0]);
    }

    proptest::proptest! {
        /// Against RFC 4737's and RFC 3550's definitions read literally over the whole list.
        #[test]
        fn agrees_with_the_definitions(numbers in proptest::collection::vec(0i64..60, 1..80)) {
            let counted = counts(None, &numbers);
            let mut seen: Vec<i64> = Vec::new();
            let (mut reordered, mut extent) = (0, None);
            for number in &numbers {
                if seen.contains(number) {
                    continue;
                }
                if let Some(earliest) = seen.iter().position(|before| before > number) {
                    reordered += 1;
                    extent = extent.max(Some((seen.len() - earliest) as u64));
                }
                seen.push(*number);
            }
            let (low, high) = (numbers.iter().min().expect("one"), numbers.iter().max().expect("one"));
            let missing: Vec<i64> = (*low..=*high).filter(|number| !seen.contains(number)).collect();
            let bursts = missing.iter().filter(|number| !missing.contains(&(**number - 1))).count() as u64;
            proptest::prop_assert_eq!((counted.reordered, counted.reordering_extent_max), (reordered, extent));
            proptest::prop_assert_eq!((counted.lost, counted.loss_bursts), (missing.len() as u64, bursts));
            proptest::prop_assert_eq!(counted.duplicates, (numbers.len() - seen.len()) as u64);
            proptest::prop_assert_eq!(counted.lost_rfc3550, (high - low + 1) - numbers.len() as i64);
        }
    }
}
