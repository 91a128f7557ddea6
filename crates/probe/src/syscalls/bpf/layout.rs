//! Where things lie: in the keys and values of the maps, which the BPF programs and this process share, and on the programs'
//! own stack.

use crate::bpf::instruction::{Register, R8};
use crate::syscalls::call::{Cell, History, Part, NAME_BYTES};

/// The address of what is kept of the thread, in every program.
pub const KEPT: Register = R8;

/// Bytes below the stack's end.
pub mod stack {
    use super::{about, stream, transition};

    pub const THREAD_ID: i16 = -8;
    pub const NAME: i16 = -24;
    pub const NAMESPACE_IDS: i16 = -32;
    pub const TRANSITION: i16 = -64;
    /// Of a transition's cell.
    pub const CELL_NUMBER: i16 = -72;
    pub const STREAM: i16 = -128;
    pub const ABOUT: i16 = -152;

    // None lies over another.
    const _: () = assert!(TRANSITION + transition::BYTES as i16 <= NAMESPACE_IDS);
    const _: () = assert!(STREAM + stream::BYTES as i16 <= CELL_NUMBER);
    const _: () = assert!(ABOUT + about::BYTES as i16 <= STREAM);
}

/// A thread that is followed: an entry of the map of threads, and a chunk of the ring of a trace.
pub mod thread {
    pub const HISTORY: i16 = 0;
    /// The time at which the stream began, which with the thread's id tells streams apart; 0: none yet.
    pub const STREAM: i16 = 8;
    pub const NAME: i16 = 16;
    /// Calls of the thread so far.
    pub const INDEX: i16 = 32;
    pub const ENTRY_NS: i16 = 40;
    /// Trace only.
    pub const NUMBER: i16 = 48;
    /// Count only: the state of the generator that chooses the calls to be timed.
    pub const RANDOM: i16 = 48;
    /// Other than 0 between a call's entry and its exit.
    pub const IN_CALL: i16 = 56;
    /// In a call that is one of a sample to be timed.
    pub const IN_TIMED_CALL: i32 = 2;
    pub const TID: i16 = 64;
    pub const TGID: i16 = 68;
    /// How many names had been changed when this thread's was last looked at.
    pub const RENAMES: i16 = 72;
    /// Count only: the number of the cell of the call before; 0: none.
    pub const PREVIOUS: i16 = 80;
    /// Count only: the number of the next cell of the stream's block; 0: the block has none left.
    pub const FRESH: i16 = 84;
    /// Bytes of a thread that is counted.
    pub const BYTES: usize = 88;
    /// Trace only. Calls lost before those held.
    pub const LOST: i16 = 80;
    pub const HELD: i16 = 88;
    /// 1 when the stream ends with this chunk.
    pub const ENDED: i16 = 96;
    pub const CALLS: i16 = 104;
    pub const MAXIMUM_HELD: i32 = 32;
    pub const CALL_BYTES: i32 = 24;
    /// Bytes of a thread that is traced.
    pub const CHUNK_BYTES: usize = CALLS as usize + (MAXIMUM_HELD * CALL_BYTES) as usize;
}

/// A call in a chunk.
pub mod call {
    pub const ENTRY_NS: i16 = 0;
    /// Duration in the upper 48 bits, number in the lower 16.
    pub const DURATION_NUMBER: i16 = 8;
    pub const VALUE: i16 = 16;
    /// As the upper 48 bits: did not return.
    pub const NO_DURATION: u64 = (1 << 48) - 1;
}

/// A key of the map of transitions; the value is the number of its cell, as a word.
pub mod transition {
    pub const HISTORY: i16 = 0;
    pub const STREAM: i16 = 8;
    pub const TID: i16 = 16;
    pub const PART: i16 = 20;
    pub const BYTES: usize = 24;
}

/// A value of the array of cells: a `Cell`'s numbers, and what came after it last.
pub mod cell {
    pub const CALLS: i16 = 0;
    pub const RETURNED: i16 = 8;
    pub const ERRORS: i16 = 16;
    pub const BYTES_MOVED: i16 = 24;
    pub const TIME_NS: i16 = 32;
    /// Of a sample only. Squares are summed by their lower 32 bits and the others: neither sum is ever carried over, so
    /// that both only grow.
    pub const TIMED: i16 = 40;
    pub const SQUARES_LOW: i16 = 48;
    pub const SQUARES_HIGH: i16 = 56;
    /// Two transitions that came after this one; first that which the map of transitions was asked for later.
    pub const NEXT: [i16; 2] = [64, 80];
    pub const BYTES: usize = 96;
    /// Cells are given to streams in blocks, which begin at multiples of this power of two; the first is nobody's.
    pub const BLOCK: u32 = 8;
}

pub mod next {
    /// `NO_HISTORY`: none yet.
    pub const HISTORY: i16 = 0;
    /// Of its cell.
    pub const NUMBER: i16 = 8;
    pub const NO_HISTORY: i32 = -1;
}

/// A key of the map of streams.
pub mod stream {
    pub const STREAM: i16 = 0;
    pub const TID: i16 = 8;
    pub const BYTES: usize = 16;
}

/// A value of the map of streams.
pub mod about {
    pub const NAME: i16 = 0;
    pub const TGID: i16 = 16;
    pub const ENDED: i16 = 20;
    pub const BYTES: usize = 24;
}

pub fn word(bytes: &[u8], offset: i16) -> u32 {
    let at = offset as usize;
    bytes.get(at..at + 4).and_then(|b| b.try_into().ok()).map_or(0, u32::from_ne_bytes)
}

pub fn double(bytes: &[u8], offset: i16) -> u64 {
    let at = offset as usize;
    bytes.get(at..at + 8).and_then(|b| b.try_into().ok()).map_or(0, u64::from_ne_bytes)
}

/// The text up to the first NUL.
pub fn name(bytes: &[u8], offset: i16) -> Vec<u8> {
    let at = offset as usize;
    let field = bytes.get(at..at + NAME_BYTES).unwrap_or_default();
    field.split(|byte| *byte == 0).next().unwrap_or_default().to_vec()
}

/// What the kernel tells streams apart by.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Identity {
    pub began_ns: u64,
    pub tid: u32,
}

impl Identity {
    /// From a key of the map of streams.
    pub fn from_bytes(key: &[u8]) -> Self {
        Identity { began_ns: double(key, stream::STREAM), tid: word(key, stream::TID) }
    }

    pub fn to_bytes(self) -> [u8; stream::BYTES] {
        let mut key = [0; stream::BYTES];
        key[stream::STREAM as usize..][..8].copy_from_slice(&self.began_ns.to_ne_bytes());
        key[stream::TID as usize..][..4].copy_from_slice(&self.tid.to_ne_bytes());
        key
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Transition {
    pub stream: Identity,
    pub history: History,
    pub part: Part,
}

impl Transition {
    pub fn from_bytes(key: &[u8]) -> Self {
        let stream = Identity { began_ns: double(key, transition::STREAM), tid: word(key, transition::TID) };
        let history = History::from_bits(double(key, transition::HISTORY));
        Transition { stream, history, part: Part::from_number(word(key, transition::PART)) }
    }

    pub fn to_bytes(self) -> [u8; transition::BYTES] {
        let mut key = [0; transition::BYTES];
        key[transition::HISTORY as usize..][..8].copy_from_slice(&self.history.bits().to_ne_bytes());
        key[transition::STREAM as usize..][..8].copy_from_slice(&self.stream.began_ns.to_ne_bytes());
        key[transition::TID as usize..][..4].copy_from_slice(&self.stream.tid.to_ne_bytes());
        key[transition::PART as usize..][..4].copy_from_slice(&self.part.number().to_ne_bytes());
        key
    }
}

pub fn cell_from_bytes(value: &[u8]) -> Cell {
    Cell {
        calls: double(value, cell::CALLS),
        returned: double(value, cell::RETURNED),
        errors: double(value, cell::ERRORS),
        bytes: double(value, cell::BYTES_MOVED),
        timed: double(value, cell::TIMED),
        time_ns: double(value, cell::TIME_NS),
        squares_ns2: (u128::from(double(value, cell::SQUARES_HIGH)) << 32)
            + u128::from(double(value, cell::SQUARES_LOW)),
    }
}
