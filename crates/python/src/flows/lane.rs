//! One shard's connections, and its rows in parts.

use twinbed_core::capture::{Ended, Frame};
use twinbed_core::readers::tcptrace::{Engine, Row};
use twinbed_core::table::parquet::GROUP_ROWS;
use twinbed_core::wire::Packet;

/// All shards' blocks together stay in a core's cache while columns go over them.
const BLOCK_ROWS: usize = 128;
/// Rows of a part: of a row group of a Parquet file.
const PART_ROWS: usize = GROUP_ROWS;

/// Takes rows by the block.
pub trait Part: Send {
    fn push(&mut self, rows: &[Row]);
}

/// Rows on their way into a part.
pub struct Rows<P> {
    block: Vec<Row>,
    part: P,
    in_part: usize,
    count: u64,
}

impl<P: Part> Rows<P> {
    pub fn new(part: P) -> Self {
        Rows { block: Vec::with_capacity(BLOCK_ROWS), part, in_part: 0, count: 0 }
    }

    /// `full` takes a part, and leaves an empty one.
    #[inline]
    pub fn push(&mut self, row: Row, full: impl FnMut(&mut P)) {
        self.block.push(row);
        if self.block.len() == BLOCK_ROWS {
            self.block(full);
        }
    }

    fn block(&mut self, mut full: impl FnMut(&mut P)) {
        self.part.push(&self.block);
        self.in_part += self.block.len();
        self.count += self.block.len() as u64;
        self.block.clear();
        if self.in_part >= PART_ROWS {
            self.in_part = 0;
            full(&mut self.part);
        }
    }

    /// Hands on the rows that are no full part, and gives the number of all.
    pub fn rest(mut self, mut out: impl FnMut(&mut P)) -> u64 {
        if !self.block.is_empty() {
            self.block(&mut out);
        }
        if self.in_part > 0 {
            out(&mut self.part);
        }
        self.count
    }
}

pub struct Lane<P> {
    pub engine: Engine,
    pub rows: Rows<P>,
}

impl<P: Part> Lane<P> {
    /// Counts a frame, given as [`Engine::frame_of`] takes it; `full` takes a part, and leaves an empty one.
    #[inline(always)]
    pub fn count(&mut self, number: u64, frame: &Frame, usual: Option<&Packet>, bin: u8, mut full: impl FnMut(&mut P)) {
        let rows = &mut self.rows;
        self.engine.frame_of(number, frame, usual, bin, &mut |row| rows.push(row, &mut full));
    }
}

/// What reading gave beside rows.
pub struct Frames {
    pub ended: Vec<Ended>,
    /// The time of the last frame that has one.
    pub last_ns: Option<i64>,
}
