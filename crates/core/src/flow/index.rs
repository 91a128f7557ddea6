//! Finds a connection's place by the hash of its endpoints: open addressing, 9 bytes an entry.
//!
//! Most lookups are for the first packet of a connection, which is not there yet. One byte an entry is enough to see
//! this, and these bytes all stay in a core's cache, where the entries do not.

/// An entry is a place and its hash, in 32 bits.
#[derive(Debug, Clone, Copy)]
struct Entry {
    tag: u32,
    place: u32,
}

const NO_ENTRY: Entry = Entry { tag: 0, place: u32::MAX };

/// Values of an entry's byte; other values are part of the entry's tag.
const EMPTY: u8 = 0;
/// The entry was removed, and others lie behind it.
const REMOVED: u8 = 1;

#[derive(Debug)]
pub(super) struct Index {
    marks: Vec<u8>,
    entries: Vec<Entry>,
    /// Entries that are not empty, removed ones included.
    used: usize,
    held: usize,
}

impl Default for Index {
    fn default() -> Self {
        Index::of_size(1024)
    }
}

impl Index {
    /// `size` is a power of two.
    fn of_size(size: usize) -> Self {
        Index { marks: vec![EMPTY; size], entries: vec![NO_ENTRY; size], used: 0, held: 0 }
    }

    fn mask(&self) -> usize {
        self.marks.len() - 1
    }

    fn tag(hash: u64) -> u32 {
        (hash >> 32) as u32 ^ hash as u32
    }

    /// Where the search begins, and the mark. Both follow from the tag alone, so that growing needs no keys.
    #[inline]
    fn start(tag: u32) -> (usize, u8) {
        let spread = u64::from(tag).wrapping_mul(0x9e37_79b9_7f4a_7c15);
        ((spread >> 32) as usize, (spread >> 24) as u8 | 2)
    }

    /// The place with this hash for which `is_it` holds.
    #[inline]
    pub fn find(&self, hash: u64, mut is_it: impl FnMut(u32) -> bool) -> Option<u32> {
        let (tag, mask) = (Self::tag(hash), self.mask());
        let (start, mark) = Self::start(tag);
        let mut at = start & mask;
        loop {
            match self.marks[at] {
                EMPTY => return None,
                byte if byte == mark => {
                    let entry = self.entries[at];
                    if entry.tag == tag && is_it(entry.place) {
                        return Some(entry.place);
                    }
                }
                _ => {}
            }
            at = (at + 1) & mask;
        }
    }

    /// Loads the entries of these hashes into the core's cache, all at the same time. Lookups one after the other would
    /// wait for each.
    pub fn fetch(&self, hashes: &[u64]) {
        let first = |hash: &u64| Self::start(Self::tag(*hash)).0 & self.mask();
        let loaded =
            hashes.iter().map(first).fold(0, |sum, at| sum ^ self.entries[at].place ^ u32::from(self.marks[at]));
        std::hint::black_box(loaded);
    }

    /// Where a place is entered.
    fn entry_of(&self, hash: u64, place: u32) -> Option<usize> {
        let (start, mark) = Self::start(Self::tag(hash));
        let mut at = start & self.mask();
        loop {
            match self.marks[at] {
                EMPTY => return None,
                byte if byte == mark && self.entries[at].place == place => return Some(at),
                _ => at = (at + 1) & self.mask(),
            }
        }
    }

    /// Puts in a place, instead of `old` where that is given.
    pub fn put(&mut self, hash: u64, old: Option<u32>, place: u32) {
        if let Some(at) = old.and_then(|old| self.entry_of(hash, old)) {
            self.entries[at].place = place;
            return;
        }
        if (self.used + 1) * 4 > self.marks.len() * 3 {
            // Where much was removed, the same size is enough.
            let size = if self.held * 2 > self.marks.len() { self.marks.len() * 2 } else { self.marks.len() };
            let former = std::mem::replace(self, Index::of_size(size));
            for (entry, mark) in former.entries.into_iter().zip(former.marks) {
                if mark > REMOVED {
                    self.add(entry);
                }
            }
        }
        self.add(Entry { tag: Self::tag(hash), place });
    }

    fn add(&mut self, entry: Entry) {
        let (start, mark) = Self::start(entry.tag);
        let mut at = start & self.mask();
        while self.marks[at] > REMOVED {
            at = (at + 1) & self.mask();
        }
        self.used += usize::from(self.marks[at] == EMPTY);
        self.held += 1;
        self.marks[at] = mark;
        self.entries[at] = entry;
    }

    /// Takes a place out, if it is there.
    pub fn remove(&mut self, hash: u64, place: u32) {
        let Some(mut at) = self.entry_of(hash, place) else { return };
        self.held -= 1;
        self.marks[at] = REMOVED;
        // Removed entries with nothing behind them are empty.
        if self.marks[(at + 1) & self.mask()] == EMPTY {
            while self.marks[at] == REMOVED {
                self.marks[at] = EMPTY;
                self.used -= 1;
                at = at.wrapping_sub(1) & self.mask();
            }
        }
    }
}
