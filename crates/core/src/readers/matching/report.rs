//! Counts turned the way the packets went: what was sent, what arrived, what became of the rest.

use std::collections::HashMap;
use std::net::IpAddr;

use super::density::Densities;
use super::direction::{Amount, Direction, PointCounts};
use super::source::CaptureFacts;
use crate::capture::Counts;
use crate::delays::Spread;
use crate::flow::Key;

/// How the point nearer to the sender was told.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Orientation {
    /// The delays of this connection's two directions told it.
    Connection,
    /// The delays of another connection of the same hosts told it.
    Hosts,
    /// Nothing told it but the order in which the captures were named.
    Assumed,
}

impl Orientation {
    pub fn name(self) -> &'static str {
        match self {
            Orientation::Connection => "connection",
            Orientation::Hosts => "hosts",
            Orientation::Assumed => "assumed",
        }
    }
}

/// One direction of a connection, from the point nearer to its sender to the other.
#[derive(Debug, Clone, PartialEq)]
pub struct Row {
    pub protocol: u8,
    pub source: (IpAddr, u16),
    pub destination: (IpAddr, u16),
    /// Sent from the first capture's side to the second's.
    pub from_first: bool,
    pub orientation: Orientation,
    /// Seen at the sender's point and at the receiver's.
    pub sent: Amount,
    pub arrived: Amount,
    pub sent_super_packets: u64,
    pub arrived_super_packets: u64,
    /// Packets whose every number was found at the other point.
    pub matched_sent_packets: u64,
    pub matched_arrived_packets: u64,
    /// Packets of which nothing arrived.
    pub lost: Amount,
    /// Packets of which a part did not arrive, and its bytes.
    pub partly_lost: Amount,
    pub lost_ranges: u64,
    /// Arrived, in part or in full, but not seen sent.
    pub appeared: Amount,
    /// Arrived once more than sent.
    pub duplicated: Amount,
    /// In the order of their sending's capture, other than by its own doing (RFC 4737).
    pub reordered_packets: u64,
    /// Those right behind three that were sent later.
    pub three_reordered_packets: u64,
    /// The capture at their sender has them in another order than the sender numbered them in.
    pub capture_reordered_packets: u64,
    /// Not counted as lost or appeared: the other capture may not have been running.
    pub edge_sent: Amount,
    pub edge_arrived: Amount,
    /// Packets sent that arrived as several, and as how many.
    pub split: Amount,
    pub split_parts: u64,
    /// Packets that arrived as one and were sent as several (or parts of several), and as how many.
    pub merged: Amount,
    pub merged_parts: u64,
    /// Receiver's clock less sender's clock: the clocks' offset is in each.
    pub raw_delay: Option<Spread>,
}

/// Both captures as a whole.
#[derive(Debug, Clone, Default)]
pub struct Pairing {
    pub rows: Vec<Row>,
    pub first: CaptureFacts,
    pub second: CaptureFacts,
    /// Two packets that begin with the same byte.
    pub matches: u64,
    /// Half the difference of both directions' least raw delays: the second clock less the first, if the least delays
    /// there and back are equal.
    pub clock_offset_if_symmetric_ns: Option<i64>,
    /// Both directions' least raw delays together, in which the offset cancels.
    pub least_round_trip_ns: Option<i64>,
    /// Of all connections' packets that go from the first capture to the second, and of those that go back.
    pub densities: [Densities; 2],
    pub notes: Counts,
}

pub(super) struct Connection {
    pub key: Key,
    pub protocol: u8,
    /// Indexed by whether the sender is the key's low end.
    pub directions: [Option<Box<Direction>>; 2],
}

impl Connection {
    /// Whether the low end is at the first point, where its two directions' delays tell.
    fn low_is_first(&self) -> Option<bool> {
        let [high, low] = &self.directions;
        let median = |direction: &Option<Box<Direction>>| Some(direction.as_ref()?.differences.spread()?.p50_ns);
        let (high, low) = (median(high)?, median(low)?);
        (high != low).then_some(low > high)
    }
}

pub(super) fn report(
    mut connections: Vec<Connection>,
    first: CaptureFacts,
    second: CaptureFacts,
    notes: Counts,
    unknown: (i64, i64),
) -> Pairing {
    let mut pairing = Pairing { notes, ..Default::default() };
    let mut all: Option<(i64, i64)> = None;
    for direction in connections.iter().flat_map(|connection| connection.directions.iter().flatten()) {
        pairing.matches += direction.differences.count();
        if let Some(own) = direction.differences.extremes() {
            all = Some(all.map_or(own, |(low, high): (i64, i64)| (low.min(own.0), high.max(own.1))));
        }
    }
    for direction in connections.iter_mut().flat_map(|connection| connection.directions.iter_mut().flatten()) {
        let differences = direction.differences.extremes().or(all).unwrap_or(unknown);
        for (point, other) in [(0, &second), (1, &first)] {
            let at = &mut direction.points[point];
            for packet in std::mem::take(&mut at.waiting).into_packets() {
                let certain = was_captured(point, packet.time_ns, differences, other);
                at.counts.unmatched(&packet, certain);
            }
        }
    }
    let hosts: HashMap<(IpAddr, IpAddr), bool> = connections
        .iter()
        .filter_map(|connection| Some((addresses(&connection.key), connection.low_is_first()?)))
        .collect();
    let (mut there, mut back): (Option<i64>, Option<i64>) = (None, None);
    for connection in connections {
        let own = connection.low_is_first();
        let host = hosts.get(&addresses(&connection.key)).copied();
        for (sender_is_low, direction) in [(true, &connection.directions[1]), (false, &connection.directions[0])] {
            let Some(direction) = direction else { continue };
            let (from_first, orientation) = match (own, host) {
                (Some(low_is_first), _) => (low_is_first == sender_is_low, Orientation::Connection),
                (None, Some(low_is_first)) => (low_is_first == sender_is_low, Orientation::Hosts),
                (None, None) => (true, Orientation::Assumed),
            };
            let row = row(&connection, sender_is_low, direction, from_first, orientation);
            if let (Some(delay), true) = (&row.raw_delay, orientation != Orientation::Assumed) {
                let least = if from_first { &mut there } else { &mut back };
                *least = Some(least.map_or(delay.min_ns, |least| least.min(delay.min_ns)));
            }
            let way = usize::from(!from_first);
            pairing.densities[way].add(&direction.reordering[way].arrivals.densities());
            pairing.rows.push(row);
        }
    }
    if let (Some(there), Some(back)) = (there, back) {
        pairing.clock_offset_if_symmetric_ns = Some(there.saturating_sub(back) / 2);
        pairing.least_round_trip_ns = Some(there.saturating_add(back));
    }
    (pairing.first, pairing.second) = (first, second);
    pairing
}

fn addresses(key: &Key) -> (IpAddr, IpAddr) {
    let ((low, _), (high, _)) = key.ends();
    (low, high)
}

/// Whether a packet that `point` saw at `time_ns` must have come up at the other point while that was captured, whatever
/// its delay of those that were seen. `differences` is the least and the greatest of them.
pub(super) fn was_captured(point: usize, time_ns: i64, differences: (i64, i64), other: &CaptureFacts) -> bool {
    let (earliest, latest) = if point == 0 {
        (time_ns.saturating_add(differences.0), time_ns.saturating_add(differences.1))
    } else {
        (time_ns.saturating_sub(differences.1), time_ns.saturating_sub(differences.0))
    };
    other.first_ns.is_some_and(|first| first <= earliest) && other.last_ns.is_some_and(|last| latest <= last)
}

fn row(
    connection: &Connection,
    sender_is_low: bool,
    direction: &Direction,
    from_first: bool,
    orientation: Orientation,
) -> Row {
    let (low, high) = connection.key.ends();
    let (source, destination) = if sender_is_low { (low, high) } else { (high, low) };
    let [first, second] = &direction.points;
    let (up, down): (&PointCounts, &PointCounts) =
        if from_first { (&first.counts, &second.counts) } else { (&second.counts, &first.counts) };
    let reordering = &direction.reordering[usize::from(!from_first)];
    let sum = |one: Amount, other: Amount| Amount {
        packets: one.packets + other.packets,
        payload_bytes: one.payload_bytes.saturating_add(other.payload_bytes),
    };
    Row {
        protocol: connection.protocol,
        source,
        destination,
        from_first,
        orientation,
        sent: up.seen,
        arrived: down.seen,
        sent_super_packets: up.super_packets,
        arrived_super_packets: down.super_packets,
        matched_sent_packets: up.matched_packets,
        matched_arrived_packets: down.matched_packets,
        // A retransmission that looks like what it repeats is lost all the same.
        lost: sum(up.missing, up.copies),
        partly_lost: up.partly_missing,
        lost_ranges: up.missing_ranges + up.copies.packets,
        appeared: sum(down.missing, down.partly_missing),
        duplicated: down.copies,
        reordered_packets: reordering.reordered,
        three_reordered_packets: reordering.taken_for_lost,
        capture_reordered_packets: reordering.by_capture,
        edge_sent: up.edge,
        edge_arrived: down.edge,
        split: up.in_parts,
        split_parts: up.parts,
        merged: down.in_parts,
        merged_parts: down.parts,
        raw_delay: if from_first { direction.differences.spread() } else { direction.differences.reversed_spread() },
    }
}
