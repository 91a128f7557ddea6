//! What the packets of a connection have in common.

use std::hash::{Hash, Hasher};
use std::net::IpAddr;

use crate::wire::{self, Addresses, Packet};

/// An endpoint pair in one order for both directions, so that either finds the same connection.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Key {
    low_address: u128,
    high_address: u128,
    low_port: u16,
    high_port: u16,
    protocol: u8,
    is_v6: bool,
}

/// In three steps rather than one a field.
impl Hash for Key {
    #[inline]
    fn hash<H: Hasher>(&self, state: &mut H) {
        let ports = u64::from(self.low_port) << 16 | u64::from(self.high_port);
        state.write_u128(self.low_address);
        state.write_u128(self.high_address);
        state.write_u64(ports << 16 | u64::from(self.protocol) << 8 | u64::from(self.is_v6));
    }
}

impl Key {
    /// The key, and whether the source is its low end.
    #[inline]
    pub fn of(source: (u128, u16), destination: (u128, u16), protocol: u8, is_v6: bool) -> (Key, bool) {
        let source_is_low = source <= destination;
        let (low, high) = if source_is_low { (source, destination) } else { (destination, source) };
        let key = Key { low_address: low.0, high_address: high.0, low_port: low.1, high_port: high.1, protocol, is_v6 };
        (key, source_is_low)
    }

    /// The key of a packet with these ports, and whether its sender is the low end.
    #[inline]
    pub fn of_packet(packet: &Packet, source_port: u16, destination_port: u16) -> (Key, bool) {
        let (source, destination) = packet.addresses.numbers();
        let is_v6 = packet.addresses.is_v6();
        Key::of((source, source_port), (destination, destination_port), packet.protocol, is_v6)
    }

    /// Whether these are its ends' addresses.
    pub fn joins(&self, addresses: Addresses) -> bool {
        let (one, other) = addresses.numbers();
        let own = (self.low_address, self.high_address);
        addresses.is_v6() == self.is_v6 && (own == (one, other) || own == (other, one))
    }

    pub fn protocol(&self) -> u8 {
        self.protocol
    }

    /// Address and port of the low end and of the high end.
    pub fn ends(&self) -> ((IpAddr, u16), (IpAddr, u16)) {
        let end = |address, port| (wire::address(address, self.is_v6), port);
        (end(self.low_address, self.low_port), end(self.high_address, self.high_port))
    }
}
