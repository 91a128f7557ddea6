//! The distribution of payload sizes in one direction, exact for ordinary traffic and bounded for any.
//!
//! The first [`MAX_EXACT`] different sizes have a row each. Further ones fall into bins of a sixteenth to an eighth of
//! their size: [1, 2) to [15, 16) one by one, then each octave [2^k, 2^(k+1)) in eight equal parts.

pub const MAX_EXACT: usize = 128;
const PARTS_LOG2: u32 = 3;

/// A direction's packets with payloads from `least_bytes` to `most_bytes` (both included; equal where the size is exact).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SizeCount {
    pub least_bytes: u32,
    pub most_bytes: u32,
    /// Segments as captured.
    pub segments: u64,
    /// Packets on the wire that the direction's segments stand for.
    pub wire_packets: u64,
}

/// Most connections are short and have this few sizes: without an allocation.
const FEW: usize = 4;

#[derive(Debug, Clone, Copy, Default)]
struct Exact {
    bytes: u32,
    segments: u64,
    wire_packets: u64,
}

#[derive(Debug, Default)]
pub(super) struct Sizes {
    /// By first appearance; those that no segment has yet are at the end.
    few: [Exact; FEW],
    /// Where the last size was: most are the same as the one before.
    last: u32,
    more: Option<Box<More>>,
}

/// Both ascending.
#[derive(Debug, Default)]
struct More {
    exact: Vec<SizeCount>,
    binned: Vec<SizeCount>,
}

impl Sizes {
    /// Counts packets of `bytes` (not 0) of payload.
    #[inline]
    pub fn add(&mut self, bytes: u32, segments: u64, wire_packets: u64) {
        match self.few.get_mut(self.last as usize) {
            Some(row) if row.bytes == bytes => {
                row.segments += segments;
                row.wire_packets += wire_packets;
            }
            _ => self.find(bytes, segments, wire_packets),
        }
    }

    fn find(&mut self, bytes: u32, segments: u64, wire_packets: u64) {
        for (at, row) in (0u32..).zip(&mut self.few) {
            if row.bytes == bytes || row.bytes == 0 {
                row.bytes = bytes;
                row.segments += segments;
                row.wire_packets += wire_packets;
                self.last = at;
                return;
            }
        }
        let row = self.more.get_or_insert_default().row(bytes);
        row.segments += segments;
        row.wire_packets += wire_packets;
    }

    /// Gives rows in ascending order of their least size; an exact size comes before the bin that begins there.
    pub fn finish(&mut self, mut row: impl FnMut(SizeCount)) {
        self.few.sort_unstable_by_key(|exact| exact.bytes);
        let few = self.few.iter().filter(|exact| exact.bytes > 0).map(|exact| SizeCount {
            least_bytes: exact.bytes,
            most_bytes: exact.bytes,
            segments: exact.segments,
            wire_packets: exact.wire_packets,
        });
        let Some(more) = self.more.take() else {
            few.for_each(row);
            return;
        };
        let mut rows: Vec<SizeCount> = few.chain(more.exact).chain(more.binned).collect();
        rows.sort_unstable_by_key(|row| (row.least_bytes, row.most_bytes));
        rows.into_iter().for_each(&mut row);
    }
}

impl More {
    fn row(&mut self, bytes: u32) -> &mut SizeCount {
        let at = self.exact.partition_point(|row| row.least_bytes < bytes);
        let is_there = self.exact.get(at).is_some_and(|row| row.least_bytes == bytes);
        if !is_there && self.exact.len() + FEW >= MAX_EXACT {
            return row_of(&mut self.binned, bin(bytes));
        }
        row_of(&mut self.exact, (bytes, bytes))
    }
}

fn row_of(rows: &mut Vec<SizeCount>, (least_bytes, most_bytes): (u32, u32)) -> &mut SizeCount {
    let at = rows.partition_point(|row| row.least_bytes < least_bytes);
    if rows.get(at).is_none_or(|row| row.least_bytes != least_bytes) {
        rows.insert(at, SizeCount { least_bytes, most_bytes, segments: 0, wire_packets: 0 });
    }
    &mut rows[at]
}

/// First and last size of the bin.
fn bin(bytes: u32) -> (u32, u32) {
    let octave = bytes.max(1).ilog2();
    if octave <= PARTS_LOG2 {
        return (bytes, bytes);
    }
    let low_bits = (1u32 << (octave - PARTS_LOG2)) - 1;
    (bytes & !low_bits, bytes | low_bits)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn few_sizes_are_exact() {
        let mut sizes = Sizes::default();
        for bytes in [1448, 1448, 600, 1448, 600, 1] {
            sizes.add(bytes, 1, 1);
        }
        let mut rows = Vec::new();
        sizes.finish(|row| rows.push((row.least_bytes, row.most_bytes, row.segments)));
        assert_eq!(rows, [(1, 1, 1), (600, 600, 2), (1448, 1448, 3)]);
    }

    #[test]
    fn bins_are_an_eighth_of_an_octave() {
        assert_eq!(bin(15), (15, 15));
        assert_eq!(bin(16), (16, 17));
        assert_eq!(bin(1448), (1408, 1535));
        assert_eq!(bin(65_535), (61_440, 65_535));
        assert_eq!(bin(u32::MAX), (0xf000_0000, u32::MAX));
        assert_eq!(bin(0), (0, 0));
    }

    proptest::proptest! {
        #[test]
        fn many_sizes_are_bounded_and_none_is_lost(list in proptest::collection::vec(1u32..70_000, 0..2000)) {
            let mut sizes = Sizes::default();
            for &bytes in &list {
                sizes.add(bytes, 1, 2);
            }
            let mut rows = Vec::new();
            sizes.finish(|row| rows.push(row));
            proptest::prop_assert!(rows.len() <= MAX_EXACT + 15 + 8 * 14);
            proptest::prop_assert_eq!(rows.iter().map(|row| row.segments).sum::<u64>(), list.len() as u64);
            proptest::prop_assert_eq!(rows.iter().map(|row| row.wire_packets).sum::<u64>(), 2 * list.len() as u64);
            let exact = |bytes| rows.iter().any(|row| row.least_bytes == bytes && row.most_bytes == bytes);
            let mut first: Vec<u32> = Vec::new();
            for bytes in list {
                if first.len() < MAX_EXACT && !first.contains(&bytes) {
                    first.push(bytes);
                }
            }
            proptest::prop_assert!(first.into_iter().all(exact));
        }
    }
}
