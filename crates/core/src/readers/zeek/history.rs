//! The letters that tell what happened, in order.

/// More letters than any real connection has; further ones are left out.
pub const MAX_LETTERS: usize = 255;
const INLINE: usize = 22;

/// Text without an allocation where it is short, as it almost always is.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct History {
    inline: [u8; INLINE],
    length: u8,
    /// All letters, once they are more than fit inline.
    long: Vec<u8>,
}

impl History {
    #[inline]
    pub fn push(&mut self, letter: u8) {
        let length = usize::from(self.length);
        if let Some(place) = self.inline.get_mut(length) {
            *place = letter;
            self.length += 1;
        } else if length < MAX_LETTERS {
            self.push_long(letter);
        }
    }

    #[cold]
    fn push_long(&mut self, letter: u8) {
        if self.long.is_empty() {
            self.long.extend(self.inline);
        }
        self.long.push(letter);
        self.length += 1;
    }

    pub fn letters(&self) -> &[u8] {
        if self.long.is_empty() {
            &self.inline[..usize::from(self.length).min(INLINE)]
        } else {
            &self.long
        }
    }

    pub fn as_str(&self) -> &str {
        std::str::from_utf8(self.letters()).unwrap_or_default()
    }

    /// Roles are exchanged; before the only letter, where that is of a SYN+ACK.
    pub fn turn_syn_ack(&mut self) {
        let is_alone = self.letters() == b"H";
        if is_alone {
            *self = History::default();
        }
        self.push(b'^');
        if is_alone {
            self.push(b'h');
        }
    }

    /// SYN and RST of the originator without anything between that shows a handshake or data lost:
    /// `^?S[^HAFGIQ]*R.*`, as Zeek's rule for RSTOS0 reads.
    pub fn is_syn_then_reset(&self) -> bool {
        let letters = self.letters();
        let letters = letters.strip_prefix(b"^").unwrap_or(letters);
        let Some(after) = letters.strip_prefix(b"S") else { return false };
        let stop = after.iter().position(|letter| b"RHAFGIQ".contains(letter));
        stop.is_some_and(|at| after[at] == b'R')
    }
}

/// Whether the `count`th event of its kind is shown: the 1st, 10th, 100th, ...
#[inline]
pub fn is_shown(count: u32) -> bool {
    matches!(count, 1 | 10 | 100 | 1_000 | 10_000 | 100_000 | 1_000_000 | 10_000_000 | 100_000_000 | 1_000_000_000)
}
