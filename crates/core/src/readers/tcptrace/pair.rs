//! Two endpoints over IPv4 in few machine words, to see at once that a packet is of the same connection as the last.

use crate::wire::Addresses;

/// Each an address and a port; the low one first. By default what no two endpoints are.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Pair {
    low: u64,
    high: u64,
}

impl Default for Pair {
    fn default() -> Self {
        Pair { low: u64::MAX, high: 0 }
    }
}

impl Pair {
    /// The pair, and whether the source is the low one.
    #[inline(always)]
    pub fn of(addresses: &Addresses, source_port: u16, destination_port: u16) -> Option<(Self, bool)> {
        let Addresses::V4 { source, destination } = *addresses else { return None };
        let end = |address: u32, port: u16| u64::from(address) << 16 | u64::from(port);
        let (source, destination) = (end(source, source_port), end(destination, destination_port));
        Some((Pair { low: source.min(destination), high: source.max(destination) }, source <= destination))
    }
}
