//! One bin's connections and what is held of them: limits hold of each bin by itself, so that which connections are finished
//! early does not depend on who counts the others.

use super::closed::Closed;
use super::connection::Live;
use crate::flow::fragments::Owners;
use crate::flow::table::Table;

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
