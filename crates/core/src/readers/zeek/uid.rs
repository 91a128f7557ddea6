//! A connection's identifier: like Zeek's to look at, but the same each time.

use super::connection::Row;
use std::net::IpAddr;

const LENGTH: usize = 17;
const DIGITS: &[u8; 62] = b"0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz";

impl Row {
    /// `C` and 16 digits to base 62 of a hash of start time, endpoints and protocol.
    pub fn uid(&self) -> String {
        let mut hash = Hash::default();
        hash.take(self.start_ns.map_or(u64::MAX, |ns| ns as u64));
        for (address, port) in
            [(self.originator_address, self.originator_port), (self.responder_address, self.responder_port)]
        {
            let number = match address {
                IpAddr::V4(v4) => u128::from(u32::from(v4)),
                IpAddr::V6(v6) => u128::from(v6),
            };
            hash.take((number >> 64) as u64);
            hash.take(number as u64);
            hash.take(u64::from(port) << 1 | u64::from(address.is_ipv6()));
        }
        hash.take(u64::from(self.ip_protocol) << 32 | u64::from(self.ordinal));
        let mut number = hash.number();
        let mut text = String::with_capacity(LENGTH);
        text.push('C');
        for _ in 1..LENGTH {
            text.push(char::from(DIGITS[(number % 62) as usize]));
            number /= 62;
        }
        text
    }
}

/// Two runs of SplitMix64's finisher (Steele, Lea, Flood 2014), from different beginnings.
struct Hash([u64; 2]);

impl Default for Hash {
    fn default() -> Self {
        Hash([0x9e37_79b9_7f4a_7c15, 0x7477_696e_6265_6421])
    }
}

impl Hash {
    fn take(&mut self, word: u64) {
        for state in &mut self.0 {
            let mut mixed = state.rotate_left(23) ^ word;
            mixed = (mixed ^ mixed >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
            mixed = (mixed ^ mixed >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
            *state = state.wrapping_add(mixed ^ mixed >> 31);
        }
    }

    fn number(&self) -> u128 {
        u128::from(self.0[0]) << 64 | u128::from(self.0[1])
    }
}
