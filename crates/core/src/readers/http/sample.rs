//! Which exchanges keep their steps, and which of these their packets, so that memory is bounded.
//!
//! Of a capture with very many exchanges a sample is kept, chosen by a hash of the connection's ends and the request's first
//! sequence number ([`Steps::sampled_by`]). The other end's capture has the same sample, and which exchanges are in it depends
//! on nothing that was measured.
//!
//! [`Steps::sampled_by`]: super::steps::Steps::sampled_by

use super::exchange::Exchange;
use super::steps::Below;

/// Exchanges with steps are at least so many, if there are, and at most twice as many.
const ROWS: usize = 1 << 17;
/// The same of exchanges with every packet.
const LISTS: usize = 1 << 5;

/// Bounds the memory of steps: what is kept has a hash below a bound that falls as exchanges come.
#[derive(Debug, Clone, Copy)]
pub(super) struct Bounds {
    rows: Bound,
    lists: Bound,
    /// Lists begun since the bound last fell.
    begun: usize,
}

#[derive(Debug, Clone, Copy)]
struct Bound {
    at_most: u64,
    kept: usize,
    least: usize,
}

impl Default for Bounds {
    fn default() -> Self {
        let bound = |least| Bound { at_most: u64::MAX, kept: 0, least };
        Bounds { rows: bound(ROWS), lists: bound(LISTS), begun: 0 }
    }
}

impl Bounds {
    pub fn below(&self) -> Below {
        Below { rows: self.rows.at_most, lists: self.lists.at_most }
    }

    /// So many exchanges have begun to keep their packets: very many connections may be open at once.
    pub fn begun(&mut self, lists: usize) {
        self.begun += lists;
        if self.begun > 2 * self.lists.least {
            self.lists.at_most /= 2;
            self.begun = 0;
        }
    }

    /// Leaves packets to the exchanges of the sample alone.
    pub fn trim_lists<'a>(&mut self, rows: impl Iterator<Item = &'a mut Exchange>) {
        self.lists.kept = 0;
        for steps in rows.filter_map(|row| row.steps.as_mut()) {
            if steps.sampled_by > self.lists.at_most {
                steps.packets = None;
            }
            self.lists.kept += usize::from(steps.packets.is_some());
        }
    }

    /// Takes a row that is about to be kept; where there are too many, others lose their steps, or their packets.
    pub fn keep(&mut self, row: &mut Exchange, others: &mut [Exchange]) {
        let Some(steps) = &mut row.steps else { return };
        if steps.packets.is_some() {
            if steps.sampled_by <= self.lists.at_most {
                self.lists.kept += 1;
            } else {
                steps.packets = None;
            }
        }
        if steps.sampled_by <= self.rows.at_most {
            self.rows.kept += 1;
        } else {
            row.steps = None;
        }
        while self.lists.kept > 2 * self.lists.least {
            self.lists.at_most /= 2;
            self.trim_lists(others.iter_mut().chain([&mut *row]));
        }
        while self.rows.kept > 2 * self.rows.least {
            self.rows.at_most /= 2;
            self.rows.kept = 0;
            for row in others.iter_mut().chain([&mut *row]) {
                if row.steps.as_ref().is_some_and(|steps| steps.sampled_by > self.rows.at_most) {
                    row.steps = None;
                }
                self.rows.kept += usize::from(row.steps.is_some());
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::steps::{mix, Steps};
    use super::*;

    fn row(number: u64, has_packets: bool) -> Exchange {
        let mut steps = Steps::default();
        (steps.sampled_by, steps.packets) = (mix(number), has_packets.then(Vec::new));
        Exchange { steps: Some(Box::new(steps)), ..Exchange::default() }
    }

    /// What a capture keeps of exchanges that end in this order: (those with steps, those with packets).
    fn kept(order: impl Iterator<Item = u64>) -> (Vec<u64>, Vec<u64>) {
        let mut bounds = Bounds::default();
        (bounds.rows.least, bounds.lists.least) = (32, 4);
        let mut rows: Vec<Exchange> = Vec::new();
        for number in order {
            let mut row = row(number, mix(number) <= bounds.below().lists);
            bounds.begun(usize::from(row.steps.as_ref().is_some_and(|steps| steps.packets.is_some())));
            bounds.keep(&mut row, &mut rows);
            rows.push(row);
        }
        bounds.trim_lists(rows.iter_mut());
        let of = |is_list: bool| {
            let steps = rows.iter().filter_map(|row| row.steps.as_ref());
            let mut list: Vec<u64> =
                steps.filter(|steps| !is_list || steps.packets.is_some()).map(|steps| steps.sampled_by).collect();
            list.sort_unstable();
            list
        };
        (of(false), of(true))
    }

    #[test]
    fn both_ends_keep_the_same_sample_whatever_the_order() {
        let (rows, lists) = kept(0..1000);
        assert!((32..=64).contains(&rows.len()), "{}", rows.len());
        assert!((1..=8).contains(&lists.len()), "{}", lists.len());
        let mut hashes: Vec<u64> = (0..1000).map(mix).collect();
        hashes.sort_unstable();
        assert_eq!(rows, hashes[..rows.len()], "those with the smallest hashes");
        let (others, other_lists) = kept((0..1000).rev());
        assert_eq!(rows, others);
        assert_eq!(lists[..lists.len().min(other_lists.len())], other_lists[..lists.len().min(other_lists.len())]);
        assert_eq!(kept(0..20).0.len(), 20, "few are all kept");
    }
}
