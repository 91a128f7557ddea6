//! What is held of one bin's connections: limits hold of each bin by itself, so that which connections are finished early
//! does not depend on who counts the others.

use super::closed::Closed;
use crate::flow::fragments::Owners;

#[derive(Default)]
pub(super) struct Bin {
    pub closed: Closed,
    /// Connections that are held, and the most that were.
    pub held: usize,
    most: usize,
    /// Places on the heap that they have.
    pub places: usize,
    /// Time of the last frame.
    pub end_ns: i64,
    /// A connection's place, whether the low end sent, and the connection's first packet: the place may be another's by then.
    pub fragments: Owners<(u32, bool, u64)>,
}

impl Bin {
    /// Whether one more connection is more than ever were held.
    #[inline]
    pub fn has_to_grow(&self) -> bool {
        self.held == self.most
    }

    #[inline]
    pub fn insert(&mut self) {
        self.held += 1;
        self.most = self.most.max(self.held);
    }
}
