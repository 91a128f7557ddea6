//! Reorder density and reorder buffer-occupancy density (RFC 5236), by the order at the sender's point.
//!
//! The displacement of a packet is its receive index less its number: above 0 it is late, below 0 early. Receive indices are
//! given in the order of arrival and skip the numbers of lost packets. The occupancy is how many packets a receiver that hands
//! on in order holds after an arrival. Both are evaluated by the RFC's algorithms: a packet that is displaced by more than
//! [`THRESHOLD`] is lost, and so is one for which more than that many would have to be held.
//!
//! Numbers are the sender's: packets that its capture has in another order than their IPv4 identifications, as captures on
//! several CPUs do, are put right before they count.
//!
//! Memory: a count while all arrives in order without a gap, else 2 KB.

use std::collections::VecDeque;

use super::packet::Matched;

/// The RFC's displacement threshold, and its threshold of the buffer occupancy.
pub const THRESHOLD: usize = 32;

/// How many packets were displaced by how much, and how many arrivals left how many held.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Densities {
    displacements: Vec<u64>,
    occupancies: Vec<u64>,
}

impl Default for Densities {
    fn default() -> Self {
        Self::within(THRESHOLD)
    }
}

impl Densities {
    fn within(threshold: usize) -> Self {
        Densities { displacements: vec![0; 2 * threshold + 1], occupancies: vec![0; threshold + 1] }
    }

    fn threshold(&self) -> usize {
        self.occupancies.len().saturating_sub(1)
    }

    /// (displacement, packets), of those that occur, the earliest first.
    pub fn displacements(&self) -> impl Iterator<Item = (i64, u64)> + '_ {
        let least = -(self.threshold() as i64);
        (least..).zip(self.displacements.iter().copied()).filter(|(_, packets)| *packets > 0)
    }

    /// (packets held, arrivals), of those that occur.
    pub fn occupancies(&self) -> impl Iterator<Item = (i64, u64)> + '_ {
        (0..).zip(self.occupancies.iter().copied()).filter(|(_, packets)| *packets > 0)
    }

    pub(super) fn add(&mut self, other: &Densities) {
        let sum = |own: &mut [u64], other: &[u64]| own.iter_mut().zip(other).for_each(|(own, other)| *own += other);
        sum(&mut self.displacements, &other.displacements);
        sum(&mut self.occupancies, &other.occupancies);
    }

    fn displaced(&mut self, by: i64, packets: u64) -> bool {
        let place = by.saturating_add(self.threshold() as i64);
        let count = usize::try_from(place).ok().and_then(|place| self.displacements.get_mut(place));
        count.map(|count| *count += packets).is_some()
    }

    fn held(&mut self, held: usize, packets: u64) {
        if let Some(count) = self.occupancies.get_mut(held) {
            *count += packets;
        }
    }
}

/// The arrivals of one direction, while they come.
#[derive(Debug, Clone, Default)]
pub(super) struct Arrivals {
    /// So many came in order from the first on, none lost, before the evaluation began.
    in_order: u64,
    /// Where the last of them was at the receiver's point.
    down: u64,
    evaluation: Option<Box<Evaluation>>,
}

impl Arrivals {
    /// `packet`'s orders count from 1.
    pub fn arrived(&mut self, packet: Matched) {
        if self.evaluation.is_none() && packet.up == self.in_order + 1 && packet.down >= self.down {
            (self.in_order, self.down) = (packet.up, packet.down);
            return;
        }
        let in_order = self.in_order;
        let begin = || {
            // Those that the receiver's capture begins too late for are not lost.
            let next = (in_order > 0).then_some((in_order + 1, in_order + 1));
            Box::new(Evaluation { next, ..Evaluation::within(THRESHOLD) })
        };
        self.evaluation.get_or_insert_with(begin).arrived(packet);
    }

    pub fn densities(&self) -> Densities {
        let mut densities = self.evaluation.as_ref().map_or_else(Densities::default, |each| each.clone().finish());
        densities.displaced(0, self.in_order);
        densities.held(0, self.in_order);
        densities
    }
}

#[derive(Debug, Clone)]
struct Evaluation {
    /// The latest arrivals, whose order at the sender's point may still be put right.
    settling: VecDeque<Matched>,
    threshold: usize,
    /// The receive index, and the number that is expected next; none before the first arrival has settled.
    next: Option<(u64, u64)>,
    window: VecDeque<u64>,
    /// Early arrivals whose receive index has not come yet.
    early: Vec<u64>,
    held: Vec<u64>,
    densities: Densities,
}

impl Evaluation {
    fn within(threshold: usize) -> Self {
        let densities = Densities::within(threshold);
        let (window, early, held) = Default::default();
        Evaluation { settling: VecDeque::new(), threshold, next: None, window, early, held, densities }
    }

    fn arrived(&mut self, packet: Matched) {
        let before = self.settling.iter().rposition(|other| other.down <= packet.down);
        let mut at = before.map_or(0, |at| at + 1);
        self.settling.insert(at, packet);
        // What its sender numbered later is later, whatever the capture says.
        while at > 0 {
            let (before, own) = (self.settling[at - 1], self.settling[at]);
            if before.up < own.up || !own.was_sent_after(&before) {
                break;
            }
            (self.settling[at - 1].up, self.settling[at].up) = (own.up, before.up);
            at -= 1;
        }
        if self.settling.len() > self.threshold + 1 {
            self.settle();
        }
    }

    fn settle(&mut self) {
        let least = self.settling.iter().map(|packet| packet.up).min();
        let Some(packet) = self.settling.pop_front() else { return };
        let least = least.unwrap_or(packet.up);
        self.next.get_or_insert((least, least));
        self.window_takes(packet.up);
        self.buffer_takes(packet.up);
    }

    fn window_takes(&mut self, number: u64) {
        let Some((index, _)) = self.next else { return };
        if number < index || self.window.contains(&number) || self.early.contains(&number) {
            return;
        }
        self.window.push_back(number);
        if self.window.len() > self.threshold {
            self.evaluate();
        }
    }

    /// Counts the packet that arrived first of those in the window.
    fn evaluate(&mut self) {
        let Some((index, expected)) = self.next else { return };
        // The numbers between were lost.
        let ahead = self.window.iter().chain(&self.early).copied().filter(|number| *number >= index).min();
        let (Some(number), Some(index)) = (self.window.pop_front(), ahead) else { return };
        let displacement = i64::try_from(index).unwrap_or(i64::MAX) - i64::try_from(number).unwrap_or(i64::MAX);
        self.next = Some((index, expected));
        if self.densities.displaced(displacement, 1) {
            if let Some(at) = self.early.iter().position(|early| *early == index) {
                self.early.swap_remove(at);
            }
            if displacement < 0 {
                self.early.push(number);
            }
            self.next = Some((index + 1, expected));
        }
    }

    fn buffer_takes(&mut self, number: u64) {
        let Some((index, mut expected)) = self.next else { return };
        if number < expected || self.held.contains(&number) {
            return;
        }
        let is_full = self.held.len() >= self.threshold;
        self.held.push(number);
        if is_full {
            // What was expected is given up.
            expected = self.held.iter().copied().min().unwrap_or(number);
        }
        while let Some(at) = self.held.iter().position(|held| *held == expected) {
            self.held.swap_remove(at);
            expected += 1;
        }
        self.densities.held(self.held.len(), 1);
        self.next = Some((index, expected));
    }

    fn finish(mut self) -> Densities {
        while !self.settling.is_empty() {
            self.settle();
        }
        while !self.window.is_empty() {
            self.evaluate();
        }
        self.densities
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use proptest::prelude::*;

    use super::*;

    fn evaluated(numbers: &[u64], threshold: usize) -> Densities {
        let mut evaluation = Evaluation::within(threshold);
        (0..).zip(numbers).for_each(|(down, &up)| evaluation.arrived(Matched { up, down, number: None }));
        evaluation.finish()
    }

    type Histogram = Vec<(i64, u64)>;

    fn counts(densities: &Densities) -> (Histogram, Histogram) {
        (densities.displacements().collect(), densities.occupancies().collect())
    }

    /// The RFC's examples: reordering alone, a lost packet, a duplicate; each also follows from its definitions by hand.
    #[test]
    fn the_rfcs_examples() {
        let reordered = evaluated(&[1, 4, 2, 5, 3, 6, 7, 8], 4);
        let displacements = vec![(-2, 1), (-1, 1), (0, 4), (1, 1), (2, 1)];
        assert_eq!(counts(&reordered), (displacements, vec![(0, 5), (1, 2), (2, 1)]));
        let lost = evaluated(&[1, 2, 4, 5, 6, 7], 3);
        assert_eq!(counts(&lost), (vec![(0, 6)], vec![(0, 3), (1, 1), (2, 1), (3, 1)]));
        let duplicated = evaluated(&[1, 3, 2, 3, 4, 5], 2);
        assert_eq!(counts(&duplicated), (vec![(-1, 1), (0, 3), (1, 1)], vec![(0, 4), (1, 1)]));
    }

    #[test]
    fn what_comes_later_than_the_threshold_is_lost() {
        let late = |by: u64| {
            let numbers: Vec<u64> = (2..=by + 1).chain([1]).chain(by + 2..20).collect();
            evaluated(&[&[0], numbers.as_slice()].concat(), 3)
        };
        assert_eq!(counts(&late(3)).0, vec![(-1, 3), (0, 16), (3, 1)]);
        assert_eq!(counts(&late(4)).0, vec![(0, 19)], "the late one is not counted");
        assert_eq!(counts(&late(4)).1, vec![(0, 16), (1, 1), (2, 1), (3, 1)]);
    }

    /// The `k`th arrival has the `k`th lowest number that arrives as its receive index.
    fn displacements(numbers: &[u64]) -> Vec<i64> {
        let indices: BTreeSet<u64> = numbers.iter().copied().collect();
        let mut seen = BTreeSet::new();
        let arrived = numbers.iter().filter(|number| seen.insert(**number));
        indices.iter().zip(arrived).map(|(index, number)| *index as i64 - *number as i64).collect()
    }

    /// What is held after each arrival: all that came, but for the run of numbers from the first that were handed on.
    fn occupancies(numbers: &[u64], threshold: usize) -> Vec<i64> {
        let (mut came, mut gone) = (BTreeSet::new(), numbers.iter().copied().min().unwrap_or(0));
        let mut found = Vec::new();
        for &number in numbers {
            if number < gone || !came.insert(number) {
                continue;
            }
            let held = |gone: u64| came.range(gone..).copied().collect::<Vec<u64>>();
            if !came.contains(&gone) && held(gone).len() > threshold {
                gone = held(gone)[0];
            }
            while came.contains(&gone) {
                gone += 1;
            }
            found.push(held(gone).len() as i64);
        }
        found
    }

    fn histogram(values: Vec<i64>) -> Histogram {
        let kinds: BTreeSet<i64> = values.iter().copied().collect();
        kinds.into_iter().map(|kind| (kind, values.iter().filter(|value| **value == kind).count() as u64)).collect()
    }

    proptest! {
        /// Whatever is late, lost or doubled: as the definitions say, also where the evaluation begins only at the first gap.
        #[test]
        fn any_order_is_as_the_definitions_have_it(
            late_by in prop::collection::vec(0usize..9, 150), quiet in 0usize..80,
            lost in prop::collection::btree_set(0usize..150, 0..12), doubled in prop::collection::btree_set(0usize..150, 0..12),
        ) {
            let mut order: Vec<usize> = (0..150).collect();
            order.sort_by_key(|at| if *at < quiet { *at } else { at + late_by[*at] });
            let mut numbers: Vec<u64> = order.iter().filter(|at| !lost.contains(at)).map(|at| *at as u64 + 1).collect();
            let mut arrivals = Arrivals::default();
            (1..).zip(&numbers).for_each(|(down, &up)| arrivals.arrived(Matched { up, down, number: None }));
            let expected = histogram(displacements(&numbers));
            prop_assume!(expected.iter().all(|(by, _)| by.unsigned_abs() as usize <= THRESHOLD));
            prop_assert_eq!(counts(&arrivals.densities()).0, expected.clone());
            for at in &doubled {
                let copy = numbers[*at % numbers.len()];
                numbers.insert((*at + 3).min(numbers.len()), copy);
            }
            prop_assert_eq!(counts(&evaluated(&numbers, THRESHOLD)).0, histogram(displacements(&numbers)));
            prop_assert_eq!(counts(&evaluated(&numbers, THRESHOLD)).1, histogram(occupancies(&numbers, THRESHOLD)));
        }

        /// Any capture order of packets that arrive as they were sent: nothing is displaced.
        #[test]
        fn what_the_capture_put_out_of_order_is_not_displaced(late_by in prop::collection::vec(0usize..6, 100)) {
            let mut captured: Vec<usize> = (0..100).collect();
            captured.sort_by_key(|at| at + late_by[*at]);
            let mut arrivals = Arrivals::default();
            for (down, sent) in (1u64..).zip(0..100usize) {
                let up = captured.iter().position(|at| *at == sent).unwrap_or(0) as u64 + 1;
                arrivals.arrived(Matched { up, down, number: Some(sent as u16 + 1) });
            }
            prop_assert_eq!(counts(&arrivals.densities()), (vec![(0, 100)], vec![(0, 100)]));
        }
    }
}
