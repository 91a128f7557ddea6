//! How delays are spread, in bounded memory: exact until there are many different ones, then in classes.
//!
//! Classes are `2^k` ns wide, with the smallest `k` that keeps their number at [`CLASSES`]. That `k` depends on the set
//! of delays alone, so their order changes nothing.

use std::collections::HashMap;

/// The most classes that are kept: some 140 KB.
pub const CLASSES: usize = 4096;

/// Delays seen so far. Only differences between them mean anything where two clocks made them.
#[derive(Debug, Clone, Default)]
pub struct Delays {
    /// Classes are `2^shift` ns wide.
    shift: u32,
    classes: HashMap<i64, u64, foldhash::fast::RandomState>,
    count: u64,
    min_ns: i64,
    max_ns: i64,
}

/// Quantiles by nearest rank (the smallest delay that at least that share of the delays do not exceed).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Spread {
    pub count: u64,
    pub min_ns: i64,
    pub p50_ns: i64,
    pub p95_ns: i64,
    pub p99_ns: i64,
    pub max_ns: i64,
    /// Quantiles are this exact; 0 where they are exact. Minimum and maximum always are.
    pub resolution_ns: i64,
}

impl Delays {
    pub fn add(&mut self, delay_ns: i64) {
        if self.count == 0 {
            (self.min_ns, self.max_ns) = (delay_ns, delay_ns);
        }
        self.count += 1;
        self.min_ns = self.min_ns.min(delay_ns);
        self.max_ns = self.max_ns.max(delay_ns);
        *self.classes.entry(delay_ns >> self.shift).or_default() += 1;
        self.widen();
    }

    fn widen(&mut self) {
        while self.classes.len() > CLASSES && self.shift < 63 {
            self.shift += 1;
            let mut wider: HashMap<i64, u64, foldhash::fast::RandomState> = HashMap::default();
            for (class, count) in self.classes.drain() {
                *wider.entry(class >> 1).or_default() += count;
            }
            self.classes = wider;
        }
    }

    pub fn count(&self) -> u64 {
        self.count
    }

    /// The least and the greatest.
    pub fn extremes(&self) -> Option<(i64, i64)> {
        (self.count > 0).then_some((self.min_ns, self.max_ns))
    }

    pub fn spread(&self) -> Option<Spread> {
        self.spread_of(false)
    }

    /// The spread of the negated delays: the same packets with the clocks the other way round.
    pub fn reversed_spread(&self) -> Option<Spread> {
        self.spread_of(true)
    }

    fn spread_of(&self, negated: bool) -> Option<Spread> {
        if self.count == 0 {
            return None;
        }
        let mut classes: Vec<(i64, u64)> = self.classes.iter().map(|(class, count)| (*class, *count)).collect();
        classes.sort_unstable();
        let quantile = |percent: u64| {
            let rank = (u128::from(self.count) * u128::from(percent)).div_ceil(100).max(1) as u64;
            if negated {
                self.at_rank(&classes, self.count + 1 - rank).saturating_neg()
            } else {
                self.at_rank(&classes, rank)
            }
        };
        let (min_ns, max_ns) = if negated {
            (self.max_ns.saturating_neg(), self.min_ns.saturating_neg())
        } else {
            (self.min_ns, self.max_ns)
        };
        Some(Spread {
            count: self.count,
            min_ns,
            p50_ns: quantile(50),
            p95_ns: quantile(95),
            p99_ns: quantile(99),
            max_ns,
            resolution_ns: if self.shift == 0 { 0 } else { 1i64.checked_shl(self.shift).unwrap_or(i64::MAX) },
        })
    }

    /// The delay that is the `rank`th smallest (from 1): the middle of its class.
    fn at_rank(&self, classes: &[(i64, u64)], rank: u64) -> i64 {
        let mut below = 0;
        for (class, count) in classes {
            below += count;
            if below >= rank {
                let middle = if self.shift == 0 { 0 } else { 1i64 << (self.shift - 1) };
                return ((class << self.shift) | middle).clamp(self.min_ns, self.max_ns);
            }
        }
        self.max_ns
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn few_delays_are_exact() {
        let mut delays = Delays::default();
        assert_eq!(delays.spread(), None);
        (1..=100).for_each(|delay| delays.add(delay * 1000));
        let spread = delays.spread().expect("delays");
        assert_eq!((spread.p50_ns, spread.p95_ns, spread.p99_ns), (50_000, 95_000, 99_000));
        assert_eq!((spread.min_ns, spread.max_ns, spread.resolution_ns), (1000, 100_000, 0));
        let reversed = delays.reversed_spread().expect("delays");
        // Of -100 to -1, the 95th is -6.
        assert_eq!((reversed.min_ns, reversed.p95_ns, reversed.max_ns), (-100_000, -6000, -1000));
    }

    #[test]
    fn extremes_do_not_overflow() {
        let mut delays = Delays::default();
        delays.add(i64::MIN);
        delays.add(i64::MAX);
        assert_eq!(delays.spread().map(|spread| (spread.min_ns, spread.max_ns)), Some((i64::MIN, i64::MAX)));
        assert!(delays.reversed_spread().is_some());
    }

    proptest::proptest! {
        #![proptest_config(proptest::prelude::ProptestConfig::with_cases(16))]

        #[test]
        fn quantiles_are_within_the_resolution_whatever_the_order(
            values in proptest::collection::vec(-3_000_000_000i64..3_000_000_000, 1..9000),
        ) {
            let (mut whole, mut backwards) = (Delays::default(), Delays::default());
            values.iter().for_each(|value| whole.add(*value));
            values.iter().rev().for_each(|value| backwards.add(*value));
            let spread = whole.spread().expect("delays");
            proptest::prop_assert_eq!(Some(spread), backwards.spread());
            let mut sorted = values;
            sorted.sort_unstable();
            let rank = (sorted.len() * 95).div_ceil(100);
            proptest::prop_assert!((spread.p95_ns - sorted[rank - 1]).abs() <= spread.resolution_ns);
        }
    }
}
