//! A key over IPv4 in few machine words, to see at once that a packet is of the same connection as the last.

use super::Key;
use crate::wire::{Addresses, Packet};

/// Each end is a protocol, an address and a port; the low one comes first. The default equals no packet's pair.
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
    /// The pair, and whether the source is the low end.
    #[inline(always)]
    pub fn of(packet: &Packet, source_port: u16, destination_port: u16) -> Option<(Self, bool)> {
        let Addresses::V4 { source, destination } = packet.addresses else { return None };
        let source = end(packet.protocol, source.into(), source_port);
        let destination = end(packet.protocol, destination.into(), destination_port);
        Some((Pair { low: source.min(destination), high: source.max(destination) }, source <= destination))
    }

    /// The pair of a key over IPv4; the default for IPv6.
    #[inline]
    pub fn of_key(key: &Key) -> Self {
        match key.v4_ends() {
            Some([low, high]) => {
                let [low, high] = [low, high].map(|(address, port)| end(key.protocol(), address, port));
                Pair { low, high }
            }
            None => Pair::default(),
        }
    }
}

#[inline(always)]
fn end(protocol: u8, address: u64, port: u16) -> u64 {
    u64::from(protocol) << 48 | address << 16 | u64::from(port)
}
