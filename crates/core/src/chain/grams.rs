//! A hash table of counts by packed gram.

/// Counts by packed gram, with open addressing, since every call looks into it.
pub struct Grams {
    keys: Vec<u64>,
    counts: Vec<u64>,
    used: usize,
    shift: u32,
}

/// No gram: its call would be a start.
const FREE: u64 = u64::MAX;

impl Default for Grams {
    fn default() -> Self {
        Grams::with_bits(6)
    }
}

impl Grams {
    fn with_bits(bits: u32) -> Self {
        Grams { keys: vec![FREE; 1 << bits], counts: vec![0; 1 << bits], used: 0, shift: 64 - bits }
    }

    #[inline]
    pub fn add(&mut self, key: u64, count: u64) {
        // Knuth's multiplicative hashing by the golden ratio.
        let mut at = (key.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> self.shift) as usize;
        loop {
            if self.keys[at] == key {
                self.counts[at] = self.counts[at].saturating_add(count);
                return;
            }
            if self.keys[at] == FREE {
                break;
            }
            at = (at + 1) & (self.keys.len() - 1);
        }
        self.insert(at, key, count);
    }

    #[cold]
    fn insert(&mut self, at: usize, key: u64, count: u64) {
        if key == FREE {
            return;
        }
        self.keys[at] = key;
        self.counts[at] = count;
        self.used += 1;
        if self.used * 2 > self.keys.len() {
            let mut wider = Grams::with_bits(64 - self.shift + 1);
            for (key, count) in self.entries() {
                wider.add(key, count);
            }
            *self = wider;
        }
    }

    pub fn entries(&self) -> impl Iterator<Item = (u64, u64)> + '_ {
        self.keys.iter().copied().zip(self.counts.iter().copied()).filter(|(key, _)| *key != FREE)
    }
}
