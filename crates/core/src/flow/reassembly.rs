//! One direction's payload in the order of its sequence numbers, each byte once, as far as captured.
//!
//! Segments that come early wait. The waiting segments of all connections share [`MAX_WAITING_BYTES`]. Where these are used
//! up, and at the connection's end, the bytes that they wait for are given up: they count as not captured, and if they come
//! later, as repeated.

use std::collections::VecDeque;

pub(crate) const MAX_WAITING_BYTES: usize = 1 << 26;
/// Memory of a waiting segment besides its bytes.
const WAITING_COST_BYTES: usize = 96;

/// Consecutive bytes of the stream.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Chunk<'a> {
    pub captured: &'a [u8],
    /// Of the first byte in the direction's payload, from 0.
    pub position: i64,
    /// TCP's number of that byte.
    pub sequence: u32,
    /// Bytes after these that are not captured.
    pub missing: u64,
    /// When they were first captured.
    pub time_ns: Option<i64>,
    /// The first byte is a segment's first.
    pub begins_segment: bool,
}

#[derive(Debug)]
struct Waiting {
    start: i64,
    end: i64,
    captured: Box<[u8]>,
    time_ns: Option<i64>,
}

#[derive(Debug, Default)]
pub(crate) struct Stream {
    /// Sequence number of position 0.
    base: Option<u32>,
    /// Position of the next byte.
    next: i64,
    /// By ascending start.
    waiting: VecDeque<Waiting>,
}

impl Stream {
    /// A SYN says where the payload begins.
    pub fn begin(&mut self, sequence: u32) {
        self.base.get_or_insert(sequence);
    }

    /// Where a sequence number lies in the payload, near what comes next; `None` before anything of it is known.
    #[inline]
    pub fn position(&self, sequence: u32) -> Option<i64> {
        let base = self.base?;
        Some(self.next + i64::from(sequence.wrapping_sub(base.wrapping_add(self.next as u32)) as i32))
    }

    /// TCP's number of a position in the payload.
    fn sequence(&self, position: i64) -> u32 {
        self.base.unwrap_or_default().wrapping_add(position as u32)
    }

    pub fn is_begun(&self) -> bool {
        self.base.is_some()
    }

    /// Whether all payload before a position was seen.
    #[inline]
    pub fn has(&self, position: i64) -> bool {
        position <= self.next
    }

    /// Takes a segment; `sink` gets what it makes available. `spare` is what may still wait, of all connections.
    #[inline]
    pub fn segment(
        &mut self,
        sequence: u32,
        payload_bytes: u32,
        captured: &[u8],
        time_ns: Option<i64>,
        spare: &mut usize,
        mut sink: impl FnMut(Chunk),
    ) {
        let base = *self.base.get_or_insert(sequence);
        let ahead = sequence.wrapping_sub(base.wrapping_add(self.next as u32)) as i32;
        let start = self.next + i64::from(ahead);
        let end = start + i64::from(payload_bytes);
        if end <= self.next {
            return;
        }
        if start > self.next {
            self.wait(Waiting { start, end, captured: captured.into(), time_ns }, spare, sink);
            return;
        }
        self.deliver(start, end, captured, time_ns, &mut sink);
        if !self.waiting.is_empty() {
            self.release(spare, &mut sink);
        }
    }

    #[inline]
    fn deliver(&mut self, start: i64, end: i64, captured: &[u8], time_ns: Option<i64>, sink: &mut impl FnMut(Chunk)) {
        let old = (self.next - start).max(0) as usize;
        let captured = captured.get(old..).unwrap_or_default();
        let new = (end - self.next).max(0) as u64;
        let captured = &captured[..captured.len().min(new as usize)];
        let position = self.next.max(start);
        let (sequence, missing) = (self.sequence(position), new - captured.len() as u64);
        self.next = end;
        sink(Chunk { captured, position, sequence, missing, time_ns, begins_segment: old == 0 });
    }

    #[cold]
    fn wait(&mut self, segment: Waiting, spare: &mut usize, mut sink: impl FnMut(Chunk)) {
        let cost = WAITING_COST_BYTES + segment.captured.len();
        let at = self.waiting.partition_point(|other| other.start <= segment.start);
        self.waiting.insert(at, segment);
        match spare.checked_sub(cost) {
            Some(left) => *spare = left,
            None => {
                // Released at once, but not paid for.
                self.give_up(spare, &mut sink);
                *spare = spare.saturating_sub(cost);
            }
        }
    }

    /// Hands on what waits for nothing any more.
    #[cold]
    fn release(&mut self, spare: &mut usize, sink: &mut impl FnMut(Chunk)) {
        while self.waiting.front().is_some_and(|first| first.start <= self.next) {
            let Some(first) = self.waiting.pop_front() else { break };
            *spare += WAITING_COST_BYTES + first.captured.len();
            if first.end > self.next {
                self.deliver(first.start, first.end, &first.captured, first.time_ns, sink);
            }
        }
    }

    /// Hands on all that waits; what it waits for counts as not captured.
    pub fn give_up(&mut self, spare: &mut usize, sink: &mut impl FnMut(Chunk)) {
        while let Some(first) = self.waiting.front() {
            if first.start > self.next {
                let missing = (first.start - self.next) as u64;
                let (time_ns, position, sequence) = (first.time_ns, self.next, self.sequence(self.next));
                self.next = first.start;
                sink(Chunk { captured: &[], position, sequence, missing, time_ns, begins_segment: true });
            }
            self.release(spare, sink);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    proptest::proptest! {
        #[test]
        fn any_order_gives_the_stream_once(
            cuts in proptest::collection::vec(1usize..30, 1..20),
            order in proptest::collection::vec(0usize..40, 0..60),
            base: u32,
        ) {
            let total: usize = cuts.iter().sum();
            let bytes: Vec<u8> = (0..total).map(|at| at as u8).collect();
            let mut segments = Vec::new();
            let mut at = 0;
            for cut in cuts {
                segments.push((at, at + cut));
                at += cut;
            }
            // Any order with repeats and merged neighbours, then each once.
            let mut sent: Vec<(usize, usize)> = order
                .iter()
                .map(|&pick| {
                    let from = segments[pick % segments.len()].0;
                    (from, segments[(pick + pick % 3).min(segments.len() - 1)].1.max(from + 1))
                })
                .collect();
            sent.extend(&segments);
            let mut stream = Stream::default();
            stream.begin(base);
            let mut spare = MAX_WAITING_BYTES;
            let mut got = Vec::new();
            for (start, end) in sent {
                let piece = &bytes[start..end.min(total)];
                let sequence = base.wrapping_add(start as u32);
                stream.segment(sequence, piece.len() as u32, piece, None, &mut spare, |chunk| {
                    assert_eq!(chunk.missing, 0);
                    got.extend_from_slice(chunk.captured);
                });
            }
            proptest::prop_assert_eq!(got, bytes);
            proptest::prop_assert_eq!(spare, MAX_WAITING_BYTES);
        }
    }

    #[test]
    fn what_never_comes_is_missing() {
        let mut stream = Stream::default();
        stream.begin(100);
        let mut spare = 150;
        let mut got = Vec::new();
        let mut sink = |chunk: Chunk| got.push((chunk.captured.to_vec(), chunk.missing));
        stream.segment(100, 3, b"ab", None, &mut spare, &mut sink);
        stream.segment(110, 2, b"xy", None, &mut spare, &mut sink);
        // No room for a second one to wait.
        stream.segment(120, 2, b"zz", None, &mut spare, &mut sink);
        assert_eq!(spare, 150);
        stream.segment(103, 7, b"late...", None, &mut spare, &mut sink);
        let none = Vec::new();
        assert_eq!(got, [(b"ab".to_vec(), 1), (none.clone(), 7), (b"xy".to_vec(), 0), (none, 8), (b"zz".to_vec(), 0)]);
    }
}
