//! Segments that were sent and not yet acknowledged, by position: two in place, more on the heap.

use std::collections::VecDeque;

/// Segments kept for a side. At more, the lowest is forgotten as if it were acknowledged.
pub(super) const MAX_SEGMENTS: usize = 1 << 16;

const IN_PLACE: usize = 2;

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct OutstandingSegment {
    pub start: i64,
    pub length: u32,
    pub retransmissions: u32,
    /// When it was sent last.
    pub sent_ns: i64,
}

impl OutstandingSegment {
    pub fn end(&self) -> i64 {
        self.start + i64::from(self.length)
    }
}

#[derive(Debug, Clone)]
pub(super) struct Outstanding {
    in_place: [OutstandingSegment; IN_PLACE],
    count: u32,
    /// Some segment is not held that should be.
    pub has_forgotten: bool,
    /// Once there, it holds all. A pointer alone, as most connections never have it.
    #[allow(clippy::box_collection)]
    more: Option<Box<VecDeque<OutstandingSegment>>>,
}

impl Outstanding {
    pub const NONE: Outstanding = Outstanding {
        in_place: [OutstandingSegment { start: 0, length: 0, retransmissions: 0, sent_ns: 0 }; IN_PLACE],
        count: 0,
        has_forgotten: false,
        more: None,
    };

    /// Adds a segment above all others.
    #[inline]
    pub fn push(&mut self, segment: OutstandingSegment) {
        if let Some(more) = &mut self.more {
            if more.len() >= MAX_SEGMENTS {
                more.pop_front();
                self.has_forgotten = true;
            }
            more.push_back(segment);
        } else if let Some(place) = self.in_place.get_mut(self.count as usize) {
            // Field by field: as a whole it would be read back from where its parts were just written, which waits.
            place.start = segment.start;
            place.length = segment.length;
            place.retransmissions = segment.retransmissions;
            place.sent_ns = segment.sent_ns;
            self.count += 1;
        } else {
            self.spill().push_back(segment);
        }
    }

    #[cold]
    fn spill(&mut self) -> &mut VecDeque<OutstandingSegment> {
        let held = &self.in_place[..self.count as usize];
        self.count = 0;
        self.more.get_or_insert_with(|| Box::new(held.iter().copied().collect()))
    }

    /// Adds a segment where it belongs.
    #[cold]
    pub fn insert(&mut self, segment: OutstandingSegment) {
        let more = self.spill();
        let is_full = more.len() >= MAX_SEGMENTS;
        if is_full {
            more.pop_front();
        }
        let at = more.partition_point(|other| other.start < segment.start);
        more.insert(at, segment);
        self.has_forgotten |= is_full;
    }

    /// Places on the heap, used or not.
    #[inline]
    pub fn places(&self) -> usize {
        self.more.as_ref().map_or(0, |more| more.capacity())
    }

    /// Gives the heap back: what is held there counts as acknowledged.
    pub fn forget(&mut self) {
        if let Some(more) = self.more.take() {
            self.has_forgotten |= !more.is_empty();
        }
    }

    /// The segment that a position is in.
    #[cold]
    pub fn at(&mut self, position: i64) -> Option<&mut OutstandingSegment> {
        let segment = match &mut self.more {
            Some(more) => {
                let after = more.partition_point(|segment| segment.start <= position);
                more.get_mut(after.checked_sub(1)?)
            }
            None => self.in_place[..self.count as usize].iter_mut().rfind(|segment| segment.start <= position),
        };
        segment.filter(|segment| position < segment.end())
    }

    /// As [`Outstanding::at`], to look at.
    pub fn find(&self, position: i64) -> Option<&OutstandingSegment> {
        let segment = match &self.more {
            Some(more) => {
                let after = more.partition_point(|segment| segment.start <= position);
                more.get(after.checked_sub(1)?)
            }
            None => self.in_place[..self.count as usize].iter().rfind(|segment| segment.start <= position),
        };
        segment.filter(|segment| position < segment.end())
    }

    /// Hands on the segments with numbers from `start` to `end`.
    #[cold]
    pub fn each_within(&mut self, start: i64, end: i64, sink: impl FnMut(&mut OutstandingSegment)) {
        let all: &mut dyn Iterator<Item = &mut OutstandingSegment> = match &mut self.more {
            Some(more) => {
                let first = more.partition_point(|segment| segment.end() <= start);
                &mut more.range_mut(first..)
            }
            None => &mut self.in_place[..self.count as usize].iter_mut(),
        };
        all.skip_while(|segment| segment.end() <= start).take_while(|segment| segment.start < end).for_each(sink);
    }

    /// Takes the lowest segment, if it begins below `position`.
    #[inline]
    pub fn take_below(&mut self, position: i64) -> Option<OutstandingSegment> {
        if let Some(more) = &mut self.more {
            return match more.front() {
                Some(first) if first.start < position => more.pop_front(),
                _ => None,
            };
        }
        let first = self.in_place[0];
        if self.count == 0 || first.start >= position {
            return None;
        }
        self.in_place.copy_within(1.., 0);
        self.count -= 1;
        Some(first)
    }
}
