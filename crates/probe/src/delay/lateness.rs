//! How late frames went: counts by buckets that are an eighth of a power of two wide, so that a quantile is right within 13 %.

use std::sync::atomic::{AtomicI64, AtomicU64, Ordering};

use serde::Serialize;

const STEPS_BITS: u32 = 3;
const BUCKETS: usize = (64 - STEPS_BITS as usize + 1) << STEPS_BITS;

pub struct Lateness {
    buckets: Vec<AtomicU64>,
    most_ns: AtomicI64,
}

#[derive(Debug, PartialEq, Serialize)]
pub struct Summary {
    /// Half of the frames were late by no more; the upper end of a bucket. None of no frames.
    pub median_ns: Option<u64>,
    pub p99_ns: Option<u64>,
    pub most_ns: Option<u64>,
}

impl Default for Lateness {
    fn default() -> Self {
        Lateness { buckets: (0..BUCKETS).map(|_| AtomicU64::new(0)).collect(), most_ns: AtomicI64::new(0) }
    }
}

impl Lateness {
    pub fn count(&self, late_ns: i64) {
        let late_ns = late_ns.max(0);
        self.buckets[bucket(late_ns as u64)].fetch_add(1, Ordering::Relaxed);
        self.most_ns.fetch_max(late_ns, Ordering::Relaxed);
    }

    pub fn summary(&self) -> Summary {
        let counts: Vec<u64> = self.buckets.iter().map(|bucket| bucket.load(Ordering::Relaxed)).collect();
        let all: u64 = counts.iter().sum();
        let most = self.most_ns.load(Ordering::Relaxed) as u64;
        let quantile = |share: f64| {
            let wanted = (share * all as f64).ceil() as u64;
            let mut seen = 0;
            let at = counts.iter().position(|count| {
                seen += count;
                all > 0 && seen >= wanted
            });
            at.map(|at| end(at).min(most))
        };
        Summary { median_ns: quantile(0.5), p99_ns: quantile(0.99), most_ns: (all > 0).then_some(most) }
    }
}

fn bucket(value: u64) -> usize {
    let steps = 1 << STEPS_BITS;
    if value < steps {
        return value as usize;
    }
    let exponent = value.ilog2() - STEPS_BITS;
    ((u64::from(exponent) << STEPS_BITS) + (value >> exponent)) as usize
}

/// The largest value of a bucket.
fn end(bucket: usize) -> u64 {
    let steps = 1 << STEPS_BITS;
    if bucket < steps {
        return bucket as u64;
    }
    let exponent = (bucket >> STEPS_BITS) as u32 - 1;
    let first = ((bucket % steps + steps) as u64) << exponent;
    first + (1_u64 << exponent) - 1
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn buckets_meet_and_are_narrow() {
        for value in (0..5000).chain((12..63).flat_map(|power| [(1_u64 << power) - 1, 1 << power, (1 << power) + 1])) {
            let at = bucket(value);
            assert!(end(at) >= value && (at == 0 || end(at - 1) < value), "{value}");
            assert!(end(at) as f64 <= value as f64 * 1.13, "{value}");
        }
        assert!(bucket(i64::MAX as u64) < BUCKETS);
    }

    #[test]
    fn a_summary_of_a_hundred() {
        let late = Lateness::default();
        assert_eq!(late.summary(), Summary { median_ns: None, p99_ns: None, most_ns: None });
        (1..=100).for_each(|number| late.count(number * 1000));
        late.count(-5);
        let summary = late.summary();
        assert!((50_000..57_000).contains(&summary.median_ns.unwrap()));
        assert!((99_000..=100_000).contains(&summary.p99_ns.unwrap()));
        assert_eq!(summary.most_ns, Some(100_000));
    }
}
