//! A call, what came before it, and sums over calls: the words of SYSCALLS.md as types.

use std::ops::{AddAssign, Sub};

use super::probe_files::calls_that_move_bytes;

/// Bytes of a program's name with its NUL (TASK_COMM_LEN).
pub const NAME_BYTES: usize = 16;
/// What stands in a history for "nothing known before".
pub const NONE: u16 = u16::MAX;
/// Numbers above this one are written as this one.
pub const LARGEST_NUMBER: u16 = u16::MAX - 1;
const LARGEST_ERRNO: i64 = 4095;

/// A stream's number in the files.
pub type StreamNumber = u64;

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Stream {
    pub tid: u32,
    /// `None`: not known.
    pub tgid: Option<u32>,
    /// Empty: not known.
    pub name: Vec<u8>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Call {
    pub number: u16,
    pub entry_ns: u64,
    pub exit: Option<Exit>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Exit {
    pub duration_ns: u64,
    pub value: i64,
}

/// A call's number as it is counted. The kernel also traces numbers that it has no call for.
pub fn number(id: i64) -> u16 {
    u16::try_from(id).unwrap_or(LARGEST_NUMBER).min(LARGEST_NUMBER)
}

/// The last four calls of a stream. The current one is in the lowest 16 bits, the one before it above.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct History(u64);

impl Default for History {
    fn default() -> Self {
        Self::EMPTY
    }
}

impl History {
    pub const EMPTY: History = History(u64::MAX);

    pub fn from_bits(bits: u64) -> Self {
        History(bits)
    }

    pub fn bits(self) -> u64 {
        self.0
    }

    pub fn after(self, number: u16) -> Self {
        History(self.0 << 16 | u64::from(number))
    }

    /// `back` calls before the current one, at most 3; `None`: nothing known.
    pub fn before(self, back: u32) -> Option<u16> {
        Some((self.0 >> (16 * back)) as u16).filter(|number| *number != NONE)
    }

    pub fn current(self) -> u16 {
        self.0 as u16
    }
}

/// Whether a call is before the cut after a thread's first calls, or how many calls after it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Part(u32);

impl Part {
    const LETTERS: [char; 5] = ['a', '0', '1', '2', 'b'];

    pub fn from_number(number: u32) -> Self {
        Part(number.min(4))
    }

    pub fn number(self) -> u32 {
        self.0
    }

    /// Of a thread's call number `index`, counted from 1.
    pub fn of(index: u64, skip: u64) -> Self {
        if skip == 0 {
            return Part(4);
        }
        Part(index.saturating_sub(skip).min(4) as u32)
    }

    pub fn letter(self) -> char {
        Self::LETTERS[self.0 as usize]
    }
}

/// Sums over calls.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Cell {
    pub calls: u64,
    pub returned: u64,
    pub errors: u64,
    /// Of positive exit values.
    pub bytes: u64,
    /// Of a sample: how many were timed, and the sum of the squares of their times.
    pub timed: u64,
    pub time_ns: u64,
    pub squares_ns2: u128,
}

impl Cell {
    pub fn of(exit: Option<Exit>) -> Cell {
        let Some(exit) = exit else {
            return Cell { calls: 1, ..Cell::default() };
        };
        Cell {
            calls: 1,
            returned: 1,
            errors: (-LARGEST_ERRNO..0).contains(&exit.value).into(),
            bytes: exit.value.max(0) as u64,
            time_ns: exit.duration_ns,
            ..Cell::default()
        }
    }
}

impl AddAssign for Cell {
    fn add_assign(&mut self, other: Cell) {
        self.calls = self.calls.wrapping_add(other.calls);
        self.returned = self.returned.wrapping_add(other.returned);
        self.errors = self.errors.wrapping_add(other.errors);
        self.bytes = self.bytes.wrapping_add(other.bytes);
        self.timed = self.timed.wrapping_add(other.timed);
        self.time_ns = self.time_ns.wrapping_add(other.time_ns);
        self.squares_ns2 = self.squares_ns2.wrapping_add(other.squares_ns2);
    }
}

impl Sub for Cell {
    type Output = Cell;

    fn sub(self, other: Cell) -> Cell {
        Cell {
            calls: self.calls.wrapping_sub(other.calls),
            returned: self.returned.wrapping_sub(other.returned),
            errors: self.errors.wrapping_sub(other.errors),
            bytes: self.bytes.wrapping_sub(other.bytes),
            timed: self.timed.wrapping_sub(other.timed),
            time_ns: self.time_ns.wrapping_sub(other.time_ns),
            squares_ns2: self.squares_ns2.wrapping_sub(other.squares_ns2),
        }
    }
}

/// Whether a positive exit value is a number of bytes.
pub fn moves_bytes(number: u16) -> bool {
    macro_rules! is_one_of {
        ($($constant:ident)*) => {
            [$(libc::$constant),*].contains(&number.into())
        };
    }
    calls_that_move_bytes!(is_one_of)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_history_forgets_what_is_four_calls_back() {
        let history = [7, 1, 2, 3, 4].into_iter().fold(History::EMPTY, History::after);
        assert_eq!(history.current(), 4);
        assert_eq!([1, 2, 3].map(|back| history.before(back)), [Some(3), Some(2), Some(1)]);
        assert_eq!(History::EMPTY.after(5).before(1), None);
    }

    #[test]
    fn the_cut_lies_between_parts() {
        let letters: String = (1..=8).map(|index| Part::of(index, 3).letter()).collect();
        assert_eq!(letters, "aaa012bb");
        assert_eq!(Part::of(1, 0).letter(), 'b');
    }

    #[test]
    fn odd_numbers_are_the_largest() {
        assert_eq!([0, 65533, 65534, 65535, 1 << 40, -1].map(number), [0, 65533, 65534, 65534, 65534, 65534]);
    }
}
