//! One bin of a capture's connections, and what is held of them: limits hold of each bin by itself, so that which connections are finished
//! early does not depend on who counts the others.

use super::closed::Closed;
use super::connection::Live;
use crate::flow::fragments::Owners;
use crate::flow::table::Table;

/// So many machines can count one capture. More bins would be smaller ones, which are full earlier.
pub const BINS: usize = 16;
/// With four, one core and two take 3 % longer: more is written at the same time than a core's cache holds.
pub const SHARDS: usize = 2;

/// The engine that has this bin.
#[inline]
pub fn shard_of(bin: u8) -> usize {
    usize::from(bin) / (BINS / SHARDS)
}

#[derive(Default)]
pub(super) struct Bin {
    pub live: Table<Live>,
    pub closed: Closed,
    /// Places on the heap that connections have.
    pub places: usize,
    /// Time of the last frame.
    pub end_ns: i64,
    /// A connection's place, whether the low end sent, and the connection's first packet: the place may be another's by then.
    pub fragments: Owners<(u32, bool, u64)>,
}
