//! One packet of an exchange, and the letter that stands for it in patterns.

use crate::wire::tcp::{FIN, RST, SYN};

/// One packet of an exchange.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Mark {
    pub time_ns: Option<i64>,
    pub from_client: bool,
    /// TCP's.
    pub flags: u8,
    /// Nothing in it is new: payload that was seen before, a second SYN or FIN.
    pub is_repeat: bool,
    pub payload_bytes: u32,
    /// Packets on the wire that it stands for.
    pub wire_packets: u32,
    /// Of its first byte, from 0 for the direction's first payload.
    pub position: i64,
    /// Position in the other direction's payload up to which it acknowledges.
    pub acknowledges: Option<i64>,
}

impl Mark {
    /// The letter that stands for it.
    pub fn letter(&self) -> char {
        let has = |flag| self.flags & flag != 0;
        let (first, again) = match self.payload_bytes {
            _ if has(RST) => ('R', 'R'),
            _ if has(SYN) => ('S', 'Y'),
            0 if has(FIN) => ('F', 'Z'),
            0 => ('A', 'A'),
            _ if has(FIN) => ('E', 'X'),
            _ => ('P', 'X'),
        };
        let letter = if self.is_repeat { again } else { first };
        if self.from_client {
            letter
        } else {
            letter.to_ascii_lowercase()
        }
    }
}
