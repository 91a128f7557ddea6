//! Which of a side's bytes the capture holds, and which it does not hold although the peer acknowledged them.

/// Parts beyond a hole that are remembered; with more, the lowest hole is taken for missed at once.
pub const MAX_PARTS: usize = 64;

/// What the capture does not hold of what was acknowledged.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Missed {
    pub bytes: u64,
    /// Each without a break.
    pub holes: u32,
}

impl Missed {
    fn add_hole(&mut self, start: i64, end: i64) {
        if end > start {
            self.bytes += (end - start) as u64;
            self.holes += 1;
        }
    }
}

/// Positions are counted from the SYN's, unwrapped.
#[derive(Debug, Clone, Default)]
pub struct Content {
    /// All below is settled: held, or missed.
    settled: i64,
    /// Disjoint, ascending, not touching, all above `settled`.
    parts: Vec<(i64, i64)>,
}

impl Content {
    pub fn from(position: i64) -> Self {
        Content { settled: position, parts: Vec::new() }
    }

    /// Bytes from `start` to `end` (exclusive) are held; gives what had to be taken for missed.
    #[inline]
    pub fn add(&mut self, start: i64, end: i64) -> u64 {
        if start > self.settled {
            return self.add_beyond(start, end);
        }
        if end > self.settled {
            self.settled = end;
            if !self.parts.is_empty() {
                self.join();
            }
        }
        0
    }

    /// The peer has all below `position`; gives which of them the capture has not.
    #[inline]
    pub fn acknowledge(&mut self, position: i64) -> Missed {
        if position <= self.settled {
            return Missed::default();
        }
        self.miss(position)
    }

    #[cold]
    fn miss(&mut self, position: i64) -> Missed {
        let passed = self.parts.partition_point(|part| part.0 < position);
        let mut missed = Missed::default();
        let mut end = self.settled;
        for part in &self.parts[..passed] {
            missed.add_hole(end, part.0);
            end = part.1;
        }
        missed.add_hole(end, position);
        self.settled = position;
        self.join();
        missed
    }

    #[cold]
    fn add_beyond(&mut self, start: i64, end: i64) -> u64 {
        let first = self.parts.partition_point(|part| part.1 < start);
        let after = self.parts.partition_point(|part| part.0 <= end);
        let mut merged = (start, end);
        for part in &self.parts[first..after] {
            merged = (merged.0.min(part.0), merged.1.max(part.1));
        }
        self.parts.splice(first..after, [merged]);
        match self.parts.first() {
            Some(&(lowest, _)) if self.parts.len() > MAX_PARTS => self.miss(lowest).bytes,
            _ => 0,
        }
    }

    /// Takes in the parts that are no longer beyond a hole.
    fn join(&mut self) {
        let mut joined = 0;
        for part in &self.parts {
            if part.0 > self.settled {
                break;
            }
            self.settled = self.settled.max(part.1);
            joined += 1;
        }
        self.parts.drain(..joined);
        if self.parts.is_empty() {
            self.parts = Vec::new();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    proptest::proptest! {
        #[test]
        fn agrees_with_a_set_of_numbers(steps in proptest::collection::vec((0i64..90, 1i64..12, 0i64..90), 1..40)) {
            let mut content = Content::from(0);
            let (mut held, mut settled) = (std::collections::BTreeSet::new(), 0);
            for (start, length, acknowledged) in steps {
                proptest::prop_assert_eq!(content.add(start, start + length), 0);
                held.extend(start..start + length);
                let missing = (settled..acknowledged).filter(|number| !held.contains(number)).count() as u64;
                let starts_hole = |number: &i64| {
                    !held.contains(number) && (*number == settled || held.contains(&(number - 1)))
                };
                let holes = (settled..acknowledged).filter(starts_hole).count() as u32;
                let missed = content.acknowledge(acknowledged);
                proptest::prop_assert_eq!((missed.bytes, missed.holes), (missing, holes));
                held.extend(settled..acknowledged);
                settled = settled.max(acknowledged);
            }
        }
    }

    #[test]
    fn remembers_so_many_parts() {
        let mut content = Content::from(0);
        let mut missed = 0;
        for part in 0..10_000 {
            missed += content.add(part * 10 + 5, part * 10 + 10);
            assert!(content.parts.len() <= MAX_PARTS);
        }
        assert_eq!(missed + content.acknowledge(100_000).bytes, 50_000);
    }
}
