//! One direction of a connection at both points, while packets come.
//!
//! Which point is nearer to the sender is not known yet (clocks differ), so both are treated alike; `report` turns the
//! counts round.

use super::density::Arrivals;
use super::packet::{Identity, Matched, Range, Seen};
use super::waiting::{Packet, Place, Waiting, MAX_WAITING};
use crate::delays::Delays;

/// Packets with payload bytes.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Amount {
    pub packets: u64,
    pub payload_bytes: u64,
}

impl Amount {
    fn add(&mut self, payload_bytes: u64) {
        self.packets += 1;
        self.payload_bytes = self.payload_bytes.saturating_add(payload_bytes);
    }
}

/// What one point saw of a direction.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct PointCounts {
    pub seen: Amount,
    pub super_packets: u64,
    /// Matched in full.
    pub matched_packets: u64,
    /// Packets among them that are several at the other point, and how many these are.
    pub in_parts: Amount,
    pub parts: u64,
    /// Packets of which nothing came up at the other point, though it should have; copies of matched ones excluded.
    pub missing: Amount,
    pub copies: Amount,
    /// Bytes of packets of which only a part came up: those of the missing part.
    pub partly_missing: Amount,
    /// Stretches of numbers (packets where there are none) that did not come up.
    pub missing_ranges: u64,
    /// Unmatched, while the other point may not have been captured.
    pub edge: Amount,
}

/// Arrivals right before a packet, all sent after it, at which TCP takes it for lost (RFC 5681, 3.2).
const DUPLICATE_ACKS: usize = 3;

/// Counts reordering as if packets passed one point (`up`) before the other (RFC 4737, by the order at `up`).
#[derive(Debug, Clone, Default)]
pub(super) struct Reordering {
    latest: Option<Matched>,
    /// Orders at `up` of the last arrivals, the latest one first.
    before: [Option<u64>; DUPLICATE_ACKS],
    pub reordered: u64,
    /// The 3-reordered ones among them (RFC 4737, 5).
    pub taken_for_lost: u64,
    /// Not among them: the capture at `up` has them in another order than their sender numbered them in.
    pub by_capture: u64,
    pub arrivals: Arrivals,
}

impl Reordering {
    fn matched(&mut self, packet: Matched) {
        match self.latest {
            Some(latest) if packet.up < latest.up => {
                if packet.down > latest.down && packet.was_sent_after(&latest) {
                    self.by_capture += 1;
                } else if packet.down > latest.down {
                    self.reordered += 1;
                    let is_later = |before: &Option<u64>| before.is_some_and(|before| before > packet.up);
                    self.taken_for_lost += u64::from(self.before.iter().all(is_later));
                }
            }
            _ => self.latest = Some(packet),
        }
        self.before.rotate_right(1);
        self.before[0] = Some(packet.up);
    }
}

#[derive(Debug, Clone, Default)]
pub(super) struct Point {
    pub counts: PointCounts,
    pub waiting: Waiting,
    orders: u64,
}

#[derive(Debug, Clone, Default)]
pub(super) struct Direction {
    pub points: [Point; 2],
    /// Time at the second point less time at the first, of each two packets that begin with the same byte.
    pub differences: Delays,
    /// The latest of them.
    usual_ns: Option<i64>,
    /// From the first point to the second, and the other way.
    pub reordering: [Reordering; 2],
}

/// A packet was given up at a point before it was matched in full.
pub(super) struct GivenUp {
    pub point: usize,
    pub packet: Packet,
    /// Not because it was old.
    pub for_room: bool,
}

impl Direction {
    /// Takes a packet that `point` (0 or 1) saw; gives the packets that wait no longer. `is_full`: too many wait in all.
    pub fn arrived(&mut self, point: usize, seen: &Seen, is_full: bool) -> Option<GivenUp> {
        let [first, second] = &mut self.points;
        let (own, other) = if point == 0 { (first, second) } else { (second, first) };
        own.counts.seen.add(u64::from(seen.payload_bytes));
        own.counts.super_packets += u64::from(seen.is_super);
        own.orders += 1;
        let mut packet = Packet {
            identity: seen.identity,
            time_ns: seen.time_ns,
            order: own.orders,
            payload_bytes: seen.payload_bytes,
            left: None,
            parts: 0,
            is_copy: false,
        };
        let mut arrival = Arrival {
            point,
            packet: &mut packet,
            other,
            usual_ns: &mut self.usual_ns,
            differences: &mut self.differences,
            reordering: &mut self.reordering,
        };
        match seen.identity {
            Identity::Whole(hash) => arrival.whole(hash),
            Identity::Range(range) => arrival.range(&range),
        }
        if packet.parts > 0 {
            own.waiting.matched(&packet);
        }
        if packet.is_matched() {
            own.counts.matched(&packet);
            return None;
        }
        packet.is_copy = packet.parts == 0 && other.waiting.is_copy(&packet.identity);
        own.waiting.insert(packet);
        let for_room = is_full || own.waiting.len() > MAX_WAITING;
        let packet = own.waiting.give_up(seen.time_ns, for_room)?;
        Some(GivenUp { point, packet, for_room })
    }

    /// Packets that wait at both points.
    pub fn waiting(&self) -> usize {
        self.points.iter().map(|point| point.waiting.len()).sum()
    }
}

impl PointCounts {
    fn matched(&mut self, packet: &Packet) {
        self.matched_packets += 1;
        if packet.parts > 1 {
            self.in_parts.add(u64::from(packet.payload_bytes));
            self.parts += u64::from(packet.parts);
        }
    }

    /// A packet that will not be matched any more; `certain`: the other point was captured when it should have come up.
    pub fn unmatched(&mut self, packet: &Packet, certain: bool) {
        let bytes = packet.payload_left();
        if packet.parts > 0 && certain {
            self.partly_missing.add(bytes);
            self.missing_ranges += packet.left().count() as u64;
        } else if !certain {
            self.edge.add(bytes);
        } else if packet.is_copy {
            self.copies.add(bytes);
        } else {
            self.missing.add(bytes);
            self.missing_ranges += 1;
        }
    }
}

/// A packet on its way to what it matches at the other point.
struct Arrival<'a> {
    point: usize,
    packet: &'a mut Packet,
    other: &'a mut Point,
    usual_ns: &'a mut Option<i64>,
    differences: &'a mut Delays,
    reordering: &'a mut [Reordering; 2],
}

impl Arrival<'_> {
    fn whole(&mut self, hash: u64) {
        let (point, own_ns) = (self.point, self.packet.time_ns);
        let delay = |other_ns| difference(point, own_ns, other_ns);
        if let Some(place) = self.other.waiting.whole(hash, delay, *self.usual_ns) {
            self.take(place, 0, 0, 1);
        }
    }

    fn range(&mut self, range: &Range) {
        /// Packets that one may be spread over; more than a BIG TCP super-packet has.
        const MAX_PARTS: usize = 1024;
        let (point, own_ns) = (self.point, self.packet.time_ns);
        let delay = |other_ns| difference(point, own_ns, other_ns);
        let mut at = 0;
        for _ in 0..MAX_PARTS {
            let rest = range.numbers - at;
            let number = range.start.wrapping_add(at);
            match self.other.waiting.with_number(range, number, delay, *self.usual_ns) {
                Some(piece) => {
                    let numbers = piece.numbers.min(rest);
                    self.take(piece.place, piece.offset, at, numbers);
                    at += numbers;
                }
                None => match self.other.waiting.next_after(range, number, rest) {
                    Some(ahead) => at += ahead,
                    None => return,
                },
            }
            if at >= range.numbers {
                return;
            }
        }
    }

    /// Matches numbers of this packet from `own_offset` with those of a waiting one from `offset`.
    fn take(&mut self, place: Place, offset: u32, own_offset: u32, numbers: u32) {
        let Some(taken) = self.other.waiting.take(place, offset, offset.saturating_add(numbers)) else { return };
        self.packet.take(own_offset, own_offset.saturating_add(numbers));
        self.packet.parts += 1;
        if taken.is_matched() {
            self.other.counts.matched(&taken);
        }
        let (own, other) = (self.packet.order, taken.order);
        let (first, second) = if self.point == 0 { (own, other) } else { (other, own) };
        let number = match self.packet.identity {
            Identity::Range(range) => range.ip_id,
            Identity::Whole(_) => None,
        };
        // Of packets that were merged each arrives, and one that was split arrives with its first part.
        let (first_offset, second_offset) = if self.point == 0 { (own_offset, offset) } else { (offset, own_offset) };
        if first_offset == 0 {
            self.reordering[0].arrivals.arrived(Matched { up: first, down: second, number });
        }
        if second_offset == 0 {
            self.reordering[1].arrivals.arrived(Matched { up: second, down: first, number });
        }
        if offset != 0 || own_offset != 0 {
            return;
        }
        let difference = difference(self.point, self.packet.time_ns, taken.time_ns);
        self.differences.add(difference);
        *self.usual_ns = Some(difference);
        self.reordering[0].matched(Matched { up: first, down: second, number });
        self.reordering[1].matched(Matched { up: second, down: first, number });
    }
}

/// The second point's time less the first's, of a packet that `point` saw at `own_ns`.
fn difference(point: usize, own_ns: i64, other_ns: i64) -> i64 {
    if point == 0 {
        other_ns.saturating_sub(own_ns)
    } else {
        own_ns.saturating_sub(other_ns)
    }
}
