//! The set of sequence numbers seen in one direction, as ranges over an unwrapped 64-bit line.

/// What adding a range found.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Added {
    /// Numbers that had been there before.
    pub repeated: u64,
    /// Some new number lies below the highest one seen before.
    pub fills_gap: bool,
}

/// Disjoint, ascending, non-touching ranges. The topmost is kept apart: data in order only lengthens it.
#[derive(Debug, Clone, Default)]
pub struct Ranges {
    top: Option<(i64, i64)>,
    below: Vec<(i64, i64)>,
}

impl Ranges {
    /// One past the highest number, 0 when empty.
    #[inline]
    pub fn end(&self) -> i64 {
        self.top.map_or(0, |top| top.1)
    }

    pub fn contains(&self, number: i64) -> bool {
        let within = |range: &(i64, i64)| range.0 <= number && number < range.1;
        self.top.as_ref().is_some_and(within) || {
            let after = self.below.partition_point(|range| range.1 <= number);
            self.below.get(after).is_some_and(within)
        }
    }

    /// Adds the numbers from `start` to `end` (exclusive, above `start`).
    #[inline]
    pub fn add(&mut self, start: i64, end: i64) -> Added {
        match &mut self.top {
            Some(top) if start == top.1 => {
                top.1 = end;
                Added::default()
            }
            Some(top) if start > top.1 => {
                self.below.push(*top);
                *top = (start, end);
                Added::default()
            }
            None => {
                self.top = Some((start, end));
                Added::default()
            }
            Some(_) => self.add_below(start, end),
        }
    }

    #[cold]
    fn add_below(&mut self, start: i64, end: i64) -> Added {
        let top_end = self.end();
        self.below.extend(self.top.take());
        let first = self.below.partition_point(|range| range.1 < start);
        let after = self.below.partition_point(|range| range.0 <= end);
        let mut merged = (start, end);
        let mut repeated = 0;
        for range in &self.below[first..after] {
            repeated += (end.min(range.1) - start.max(range.0)).max(0);
            merged = (merged.0.min(range.0), merged.1.max(range.1));
        }
        self.below.splice(first..after, [merged]);
        self.top = self.below.pop();
        Added { repeated: repeated as u64, fills_gap: (end.min(top_end) - start) > repeated }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn added(repeated: u64, fills_gap: bool) -> Added {
        Added { repeated, fills_gap }
    }

    #[test]
    fn in_order_data_repeats_nothing() {
        let mut ranges = Ranges::default();
        assert_eq!(ranges.add(0, 10), added(0, false));
        assert_eq!(ranges.add(10, 20), added(0, false));
        assert_eq!(ranges.add(30, 40), added(0, false));
        assert_eq!(ranges.end(), 40);
    }

    #[test]
    fn a_gap_filled_is_out_of_order_and_not_repeated() {
        let mut ranges = Ranges::default();
        ranges.add(0, 10);
        ranges.add(20, 30);
        assert_eq!(ranges.add(10, 20), added(0, true));
        assert_eq!(ranges.add(5, 35), added(25, false));
        assert_eq!(ranges.add(-5, 2), added(2, true));
        assert!(ranges.contains(-5) && ranges.contains(34) && !ranges.contains(35));
    }

    #[test]
    fn partial_overlap_counts_what_overlaps() {
        let mut ranges = Ranges::default();
        ranges.add(0, 10);
        assert_eq!(ranges.add(5, 15), added(5, false));
        ranges.add(20, 30);
        ranges.add(40, 50);
        assert_eq!(ranges.add(12, 45), added(3 + 10 + 5, true));
    }

    proptest::proptest! {
        #[test]
        fn agrees_with_a_set_of_numbers(adds in proptest::collection::vec((0i64..80, 1i64..12), 1..60)) {
            let mut ranges = Ranges::default();
            let mut set = std::collections::BTreeSet::new();
            for (start, length) in adds {
                let top = set.last().copied();
                let repeated = (start..start + length).filter(|number| set.contains(number)).count() as u64;
                let fills = (start..start + length).any(|number| !set.contains(&number) && Some(number) < top);
                proptest::prop_assert_eq!(ranges.add(start, start + length), added(repeated, fills));
                set.extend(start..start + length);
                for number in -1..100 {
                    proptest::prop_assert_eq!(ranges.contains(number), set.contains(&number));
                }
            }
        }
    }
}
