//! Finds a connection's place by the hash of its endpoints: open addressing, 8 bytes an entry.

/// An entry is a place and the upper half of its hash.
#[derive(Debug, Clone, Copy)]
struct Entry {
    tag: u32,
    place: u32,
}

const EMPTY: Entry = Entry { tag: 0, place: u32::MAX };

#[derive(Debug)]
pub(super) struct Table {
    entries: Vec<Entry>,
    used: usize,
}

impl Default for Table {
    fn default() -> Self {
        Table { entries: vec![EMPTY; 1024], used: 0 }
    }
}

impl Table {
    fn start(tag: u32, mask: usize) -> usize {
        // The tag alone places an entry, so that growing needs no keys.
        (u64::from(tag).wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 32) as usize & mask
    }

    fn tag(hash: u64) -> u32 {
        (hash >> 32) as u32 ^ hash as u32
    }

    /// The place with this hash for which `is_it` holds.
    #[inline]
    pub fn find(&self, hash: u64, mut is_it: impl FnMut(u32) -> bool) -> Option<u32> {
        let (tag, mask) = (Self::tag(hash), self.entries.len() - 1);
        let mut at = Self::start(tag, mask);
        loop {
            let entry = self.entries[at];
            if entry.place == EMPTY.place {
                return None;
            }
            if entry.tag == tag && is_it(entry.place) {
                return Some(entry.place);
            }
            at = (at + 1) & mask;
        }
    }

    /// Puts in a place, instead of `old` where that is given.
    pub fn put(&mut self, hash: u64, old: Option<u32>, place: u32) {
        if (self.used + 1) * 4 > self.entries.len() * 3 {
            self.grow();
        }
        let (tag, mask) = (Self::tag(hash), self.entries.len() - 1);
        let mut at = Self::start(tag, mask);
        loop {
            let entry = &mut self.entries[at];
            if entry.place == EMPTY.place {
                *entry = Entry { tag, place };
                self.used += 1;
                return;
            }
            if Some(entry.place) == old {
                entry.place = place;
                return;
            }
            at = (at + 1) & mask;
        }
    }

    /// Takes a place out, if it is there.
    pub fn remove(&mut self, hash: u64, place: u32) {
        let mask = self.entries.len() - 1;
        let mut hole = Self::start(Self::tag(hash), mask);
        while self.entries[hole].place != place {
            if self.entries[hole].place == EMPTY.place {
                return;
            }
            hole = (hole + 1) & mask;
        }
        self.used -= 1;
        // Entries after the hole move up, unless that would put them before where they start.
        let mut at = hole;
        loop {
            at = (at + 1) & mask;
            let entry = self.entries[at];
            if entry.place == EMPTY.place {
                break;
            }
            let start = Self::start(entry.tag, mask);
            if (at.wrapping_sub(start) & mask) >= (at.wrapping_sub(hole) & mask) {
                self.entries[hole] = entry;
                hole = at;
            }
        }
        self.entries[hole] = EMPTY;
    }

    fn grow(&mut self) {
        let entries = vec![EMPTY; self.entries.len() * 2];
        let mask = entries.len() - 1;
        for entry in std::mem::replace(&mut self.entries, entries) {
            if entry.place == EMPTY.place {
                continue;
            }
            let mut at = Self::start(entry.tag, mask);
            while self.entries[at].place != EMPTY.place {
                at = (at + 1) & mask;
            }
            self.entries[at] = entry;
        }
    }
}
