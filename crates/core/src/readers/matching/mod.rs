//! Two captures of the same traffic, at both ends of a link or path: what became of the packets between them.
//!
//! Packets are matched by endpoints, TCP's by sequence numbers, so that a super-packet matches the packets that it was
//! split into or merged from; others by the header fields that stay and the start of their payload (see `packet`).
//! Retransmissions of the same numbers are told apart by timestamp option and IP identification, else by order and by
//! the delay that is nearest to the one before. Addresses that are rewritten on the way (NAT) match nothing.
//!
//! Clocks need not agree. One-way delays hold the clocks' offset, so only their variation means anything; the offset
//! itself can only be had from both directions on the assumption that the least delays there and back are equal.
//! Which capture is nearer to a direction's sender follows from the delays of both directions of a connection, else of
//! its hosts; else `first` is taken for the sender's.
//!
//! An unmatched packet is lost if it had to come up between the other capture's first and last packet with every delay
//! from the least to the greatest seen in that direction. Other unmatched packets are at the edge.
//! A packet waits for [`MAX_WAIT_NS`]. At most [`MAX_WAITING`] packets wait in a direction at one point, and
//! [`MAX_WAITING_IN_ALL`] (200 to 400 bytes each) in all. Further ones are given up early, which is noted.

mod clocks;
mod density;
mod direction;
mod packet;
mod report;
mod source;
mod waiting;

use std::collections::HashMap;
use std::io::Read;

pub use clocks::COMPARED;
pub use density::{Densities, THRESHOLD};
pub use direction::Amount;
pub use report::{Orientation, Pairing, Row};
pub use source::CaptureFacts;
pub use waiting::{MAX_WAITING, MAX_WAIT_NS};

use crate::capture::Counts;
use crate::error::ReadError;
use crate::flow::Key;
use direction::GivenUp;
use packet::Seen;
use report::Connection;
use source::Source;

/// Packets that wait over all connections.
pub const MAX_WAITING_IN_ALL: usize = 1 << 20;
/// Connections that get rows (some 2 KB each); packets of further ones are noted.
pub const MAX_CONNECTIONS: usize = 1 << 20;

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Options {
    /// IP packets longer than this are super-packets.
    pub mtu: u32,
    /// Look into tunnels (docs/captures.md): the innermost packet counts.
    pub tunnels: bool,
}

impl Default for Options {
    fn default() -> Self {
        Options { mtu: 1500, tunnels: false }
    }
}

/// A capture that cannot be read at all, and which.
#[derive(Debug)]
pub struct Unreadable {
    pub is_second: bool,
    pub error: ReadError,
}

/// Matches two captures; `first` is the sender's side where nothing else tells.
pub fn match_captures(first: impl Read, second: impl Read, options: &Options) -> Result<Pairing, Unreadable> {
    let in_first = |error| Unreadable { is_second: false, error };
    let in_second = |error| Unreadable { is_second: true, error };
    let mut first = Source::new(first, options.mtu, options.tunnels);
    let mut second = Source::new(second, options.mtu, options.tunnels);

    let offset_ns =
        clocks::offset(first.look_ahead(COMPARED).map_err(in_first)?, second.look_ahead(COMPARED).map_err(in_second)?);
    let unknown = (offset_ns.unwrap_or(0), offset_ns.unwrap_or(0));
    let mut matcher = Matcher { unknown, ..Default::default() };
    loop {
        let of_first = first.next_ns().map_err(in_first)?;
        let of_second = second.next_ns().map_err(in_second)?;
        let take_first = match (of_first, of_second) {
            (None, None) => break,
            (Some(first), Some(second)) => first <= second.saturating_sub(offset_ns.unwrap_or(0)),
            (of_first, _) => of_first.is_some(),
        };
        let (seen, point, other) =
            if take_first { (first.next(), 0, &second.facts) } else { (second.next(), 1, &first.facts) };
        if let Some(seen) = seen {
            matcher.arrived(point, &seen, other);
        }
    }
    let mut notes = matcher.notes;
    if offset_ns.is_none() {
        notes.insert("starts_have_nothing_in_common", 1);
    }
    Ok(report::report(matcher.connections, first.facts, second.facts, notes, unknown))
}

#[derive(Default)]
struct Matcher {
    connections: Vec<Connection>,
    index: HashMap<Key, u32, foldhash::fast::RandomState>,
    waiting: usize,
    /// The least and greatest difference that a direction is assumed to have before one is seen.
    unknown: (i64, i64),
    notes: Counts,
}

impl Matcher {
    fn arrived(&mut self, point: usize, seen: &Seen, other: &CaptureFacts) {
        let at = match self.index.get(&seen.key) {
            Some(at) => *at,
            None if self.connections.len() >= MAX_CONNECTIONS => {
                *self.notes.entry("connection_table_full").or_default() += 1;
                return;
            }
            None => {
                let at = self.connections.len() as u32;
                let connection = Connection { key: seen.key, protocol: seen.protocol, directions: [None, None] };
                self.connections.push(connection);
                self.index.insert(seen.key, at);
                at
            }
        };
        let connection = &mut self.connections[at as usize];
        let direction = connection.directions[usize::from(seen.sender_is_low)].get_or_insert_default();
        let before = direction.waiting();
        let given_up = direction.arrived(point, seen, self.waiting >= MAX_WAITING_IN_ALL);
        self.waiting = (self.waiting + direction.waiting()).saturating_sub(before);
        if let Some(GivenUp { point, packet, for_room }) = given_up {
            if for_room {
                *self.notes.entry("given_up_for_room").or_default() += 1;
            }
            let differences = direction.differences.extremes().unwrap_or(self.unknown);
            let certain = report::was_captured(point, packet.time_ns, differences, other);
            direction.points[point].counts.unmatched(&packet, certain);
        }
    }
}
