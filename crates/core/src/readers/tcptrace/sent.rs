//! Which sequence numbers a side has sent, on an unwrapped 64-bit line: one range while data comes in order.

/// Ranges kept apart below the topmost one. At more, the lowest gap is taken for sent.
pub(super) const MAX_GAPS: usize = 1024;

/// Disjoint, ascending, not touching; the topmost apart.
#[derive(Debug, Clone)]
pub(super) struct Sent {
    start: i64,
    end: i64,
    /// The number that position 0 stands for: the first one seen.
    base: u32,
    has_base: bool,
    /// Some gap was taken for sent.
    pub has_filled: bool,
    /// A pointer alone, as most connections never have it.
    #[allow(clippy::box_collection)]
    below: Option<Box<Vec<(i64, i64)>>>,
}

/// A part of an added range.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Part {
    New { start: i64, end: i64 },
    Repeated { start: i64, end: i64 },
}

/// Quarters of the sequence space, in which tcptrace keeps segments apart: one that reaches into the next quarter is
/// two there (docs/flows.md).
#[derive(Debug, Clone, Copy)]
pub(super) struct Quarters {
    base: u32,
}

impl Quarters {
    const LENGTH: u32 = 1 << 30;

    /// The quarter (0 to 3) that a position is in.
    #[inline]
    pub fn of(&self, position: i64) -> u8 {
        (self.base.wrapping_add(position as u32) / Self::LENGTH) as u8
    }

    #[inline]
    pub fn begins(&self, position: i64) -> bool {
        self.base.wrapping_add(position as u32).is_multiple_of(Self::LENGTH)
    }

    /// Numbers from a position to its quarter's end.
    #[inline]
    pub fn left(&self, position: i64) -> i64 {
        i64::from(Self::LENGTH - self.base.wrapping_add(position as u32) % Self::LENGTH)
    }
}

impl Sent {
    pub const NONE: Sent = Sent { start: 0, end: 0, base: 0, has_base: false, has_filled: false, below: None };

    #[inline]
    pub fn quarters(&self) -> Quarters {
        Quarters { base: self.base }
    }

    pub fn contains(&self, position: i64) -> bool {
        let has = |range: &(i64, i64)| range.0 <= position && position < range.1;
        has(&(self.start, self.end)) || self.below.iter().any(|below| below.iter().any(has))
    }

    /// Some number above a range's `end` and in the same quarter has been sent.
    pub fn is_followed(&self, end: i64) -> bool {
        let limit = end - 1 + self.quarters().left(end - 1);
        let follows = |range: &(i64, i64)| range.1 > end && range.0 < limit;
        end < limit && (follows(&(self.start, self.end)) || self.below.iter().any(|below| below.iter().any(follows)))
    }

    pub fn is_empty(&self) -> bool {
        self.start == self.end
    }

    pub fn has_base(&self) -> bool {
        self.has_base
    }

    /// The position of a number, by way of the highest one.
    #[inline]
    pub fn position(&self, number: u32) -> i64 {
        let ahead = number.wrapping_sub(self.base.wrapping_add(self.end as u32)) as i32;
        self.end + i64::from(ahead)
    }

    /// As [`Sent::position`]; the first number of all gets position 0.
    #[inline]
    pub fn position_of_own(&mut self, number: u32) -> i64 {
        if !self.has_base {
            self.has_base = true;
            self.base = number;
        }
        self.position(number)
    }

    /// Places for ranges on the heap, used or not.
    #[inline]
    pub fn places(&self) -> usize {
        self.below.as_ref().map_or(0, |below| below.capacity())
    }

    /// Gives the heap back: all gaps count as sent.
    pub fn forget(&mut self) {
        if let Some(lowest) = self.below.take().and_then(|below| below.first().copied()) {
            self.start = lowest.0;
            self.has_filled = true;
        }
    }

    /// Adds a range that begins where the topmost ends, or above it; false where it does not.
    #[inline]
    pub fn extend(&mut self, start: i64, end: i64) -> bool {
        if start == self.end && !self.is_empty() {
            self.end = end;
            return true;
        }
        if start < self.end && !self.is_empty() {
            return false;
        }
        if !self.is_empty() {
            let below = self.below.get_or_insert_with(Box::default);
            below.push((self.start, self.end));
            if below.len() > MAX_GAPS {
                let lowest = below.remove(0);
                below[0].0 = lowest.0;
                self.has_filled = true;
            }
        }
        (self.start, self.end) = (start, end);
        true
    }

    /// Adds any range that is not empty, and hands its parts to `sink` in ascending order.
    #[cold]
    pub fn add(&mut self, start: i64, end: i64, mut sink: impl FnMut(Part)) {
        let ranges = self.below.get_or_insert_with(Box::default);
        ranges.push((self.start, self.end));
        let first = ranges.partition_point(|range| range.1 < start);
        let after = ranges.partition_point(|range| range.0 <= end);
        let mut merged = (start, end);
        let mut at = start;
        for range in &ranges[first..after] {
            merged = (merged.0.min(range.0), merged.1.max(range.1));
            let (low, high) = (range.0.max(start), range.1.min(end));
            if low >= high {
                continue;
            }
            if at < low {
                sink(Part::New { start: at, end: low });
            }
            sink(Part::Repeated { start: low, end: high });
            at = high;
        }
        if at < end {
            sink(Part::New { start: at, end });
        }
        ranges.splice(first..after, [merged]);
        if let Some(top) = ranges.pop() {
            (self.start, self.end) = top;
        }
        if ranges.is_empty() {
            self.below = None;
        } else if ranges.len() > MAX_GAPS {
            let lowest = ranges.remove(0);
            ranges[0].0 = lowest.0;
            self.has_filled = true;
        }
    }
}

/// Hands on a range in pieces that lie in one quarter of the sequence space each.
pub(super) fn each_quarter(quarters: &Quarters, mut start: i64, end: i64, mut sink: impl FnMut(i64, u32)) {
    while start < end {
        let length = quarters.left(start).min(end - start);
        sink(start, length as u32);
        start += length;
    }
}
