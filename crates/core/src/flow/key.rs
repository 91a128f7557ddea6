//! What the packets of a connection have in common.

use std::hash::{Hash, Hasher};
use std::net::IpAddr;

use crate::wire::{self, Addresses, Packet};

/// Two endpoints in an order that does not depend on the packet's direction, and the protocol.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Key {
    /// Upper and lower half of the low end's address, then the high end's.
    addresses: [u64; 4],
    low_port: u16,
    high_port: u16,
    protocol: u8,
    is_v6: bool,
}

/// Word by word, which costs less than the bytes of an array or one field after the other.
impl Hash for Key {
    #[inline(always)]
    fn hash<H: Hasher>(&self, hasher: &mut H) {
        let ports = u64::from(self.low_port) << 16 | u64::from(self.high_port);
        self.addresses.iter().for_each(|half| hasher.write_u64(*half));
        hasher.write_u64(ports << 16 | u64::from(self.protocol) << 8 | u64::from(self.is_v6));
    }
}

impl Key {
    /// The key of a packet with these ports, and whether its sender is the low end.
    #[inline]
    pub fn of_packet(packet: &Packet, source_port: u16, destination_port: u16) -> (Key, bool) {
        let (source, destination) = packet.addresses.numbers();
        let (source, destination) = ((halves(source), source_port), (halves(destination), destination_port));
        let source_is_low = source <= destination;
        let ((low, low_port), (high, high_port)) =
            if source_is_low { (source, destination) } else { (destination, source) };
        let addresses = [low[0], low[1], high[0], high[1]];
        let (protocol, is_v6) = (packet.protocol, packet.addresses.is_v6());
        (Key { addresses, low_port, high_port, protocol, is_v6 }, source_is_low)
    }

    /// Whether these are its ends' addresses.
    pub fn joins(&self, addresses: Addresses) -> bool {
        let (one, other) = addresses.numbers();
        let own = self.numbers();
        addresses.is_v6() == self.is_v6 && (own == (one, other) || own == (other, one))
    }

    pub fn protocol(&self) -> u8 {
        self.protocol
    }

    /// Address and port of the low end and of the high end.
    pub fn ends(&self) -> ((IpAddr, u16), (IpAddr, u16)) {
        let (low, high) = self.numbers();
        let end = |address, port| (wire::address(address, self.is_v6), port);
        (end(low, self.low_port), end(high, self.high_port))
    }

    /// The same of IPv4, with the addresses as numbers.
    #[inline]
    pub(super) fn v4_ends(&self) -> Option<[(u64, u16); 2]> {
        let [_, low, _, high] = self.addresses;
        (!self.is_v6).then_some([(low, self.low_port), (high, self.high_port)])
    }

    fn numbers(&self) -> (u128, u128) {
        let number = |upper: u64, lower: u64| u128::from(upper) << 64 | u128::from(lower);
        let [low_upper, low_lower, high_upper, high_lower] = self.addresses;
        (number(low_upper, low_lower), number(high_upper, high_lower))
    }
}

#[inline]
fn halves(address: u128) -> [u64; 2] {
    [(address >> 64) as u64, address as u64]
}
