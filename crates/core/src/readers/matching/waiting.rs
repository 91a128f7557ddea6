//! The packets of one direction that one point has seen, and the other has not seen yet or only in part.

use std::collections::{BTreeMap, VecDeque};
use std::ops::RangeInclusive;

use super::packet::{Identity, Range};

/// Packets that wait at one point for one direction of a connection; then the oldest is given up.
pub const MAX_WAITING: usize = 1 << 16;
/// How long a packet is waited for.
pub const MAX_WAIT_NS: i64 = 30_000_000_000;
/// Matched packets that are remembered, to know a copy when it comes.
const REMEMBERED: usize = 64;
/// At most so many waiting packets are looked at to place one. This bounds the work on hostile input and is far above any
/// real overlap.
const LOOKED_AT: usize = 256;

/// Where a packet waits: its first number, or its hash with the top bit set; then its order.
pub(super) type Place = (u64, u64);

const WHOLE: u64 = 1 << 63;

#[derive(Debug, Clone)]
pub(super) struct Packet {
    pub identity: Identity,
    pub time_ns: i64,
    /// Which packet of its direction it was at its point.
    pub order: u64,
    pub payload_bytes: u32,
    /// Numbers not matched, as offsets; `None` while that is all.
    pub left: Option<Vec<(u32, u32)>>,
    /// Packets of the other point that took a part.
    pub parts: u32,
    /// The other point had seen the same packet before, and it was matched.
    pub is_copy: bool,
}

impl Packet {
    pub fn numbers(&self) -> u32 {
        match self.identity {
            Identity::Range(range) => range.numbers,
            Identity::Whole(_) => 1,
        }
    }

    /// What is not matched, as offsets.
    pub fn left(&self) -> impl Iterator<Item = (u32, u32)> + '_ {
        let all = self.left.is_none().then_some((0, self.numbers()));
        all.into_iter().chain(self.left.iter().flatten().copied())
    }

    pub fn is_matched(&self) -> bool {
        self.left.as_ref().is_some_and(Vec::is_empty)
    }

    /// Payload bytes not matched.
    pub fn payload_left(&self) -> u64 {
        let Identity::Range(range) = self.identity else {
            return if self.is_matched() { 0 } else { u64::from(self.payload_bytes) };
        };
        let from = u32::from(range.has_syn);
        let to = from.saturating_add(self.payload_bytes);
        self.left().map(|(start, end)| u64::from(end.min(to).saturating_sub(start.max(from)))).sum()
    }

    /// Takes the numbers from offset `start` to `end`, which are left, out.
    pub fn take(&mut self, start: u32, end: u32) {
        let all = (0, self.numbers());
        let left = self.left.get_or_insert_with(|| vec![all]);
        if let Some(at) = left.iter().position(|part| part.0 <= start && end <= part.1) {
            let part = left[at];
            let rest = [(part.0, start), (end, part.1)];
            left.splice(at..=at, rest.into_iter().filter(|(start, end)| start < end));
        }
    }

    pub fn place(&self) -> Place {
        let first = match self.identity {
            Identity::Range(range) => u64::from(range.start),
            Identity::Whole(hash) => hash | WHOLE,
        };
        (first, self.order)
    }
}

/// Whether two packets at two points may be, or hold, the same: retransmissions are told apart here.
fn may_share(own: &Range, other: &Range) -> bool {
    let stamps_agree = own.stamp.is_none() || other.stamp.is_none() || own.stamp == other.stamp;
    stamps_agree && (own.start != other.start || ids_agree(own, other))
}

fn ids_agree(own: &Range, other: &Range) -> bool {
    own.ip_id.is_none() || other.ip_id.is_none() || own.ip_id == other.ip_id
}

/// A waiting packet that has a number, and how far on.
#[derive(Debug, Clone, Copy)]
pub(super) struct Found {
    pub place: Place,
    /// The number's offset in the waiting packet.
    pub offset: u32,
    /// Numbers from there on that are left without a gap.
    pub numbers: u32,
}

#[derive(Debug, Clone, Default)]
pub(super) struct Waiting {
    /// Boxed, because most maps hold few packets and have room for eleven.
    packets: BTreeMap<Place, Box<Packet>>,
    /// As they came; those matched since too.
    queue: VecDeque<Place>,
    longest: u32,
    remembered: VecDeque<Identity>,
    /// The latest packet that was matched: those before it were passed.
    latest_matched: u64,
}

impl Waiting {
    pub fn len(&self) -> usize {
        self.packets.len()
    }

    /// Takes numbers from offset `start` to `end` out of a waiting packet, and gives it as it is then; it no longer waits
    /// once all are taken.
    pub fn take(&mut self, place: Place, start: u32, end: u32) -> Option<Packet> {
        let packet = self.packets.get_mut(&place)?;
        packet.take(start, end);
        packet.parts += 1;
        let taken = if packet.is_matched() { *self.packets.remove(&place)? } else { Packet::clone(packet) };
        self.matched(&taken);
        Some(taken)
    }

    pub fn insert(&mut self, packet: Packet) {
        let place = packet.place();
        self.longest = self.longest.max(packet.numbers());
        self.queue.push_back(place);
        self.packets.insert(place, Box::new(packet));
        // The queue holds no more matched packets than waiting ones.
        if self.queue.len() > 64 + 2 * self.packets.len() {
            let packets = &self.packets;
            self.queue.retain(|place| packets.contains_key(place));
        }
    }

    /// A packet that waited too long at `now_ns`, or the oldest if `make_room`.
    pub fn give_up(&mut self, now_ns: i64, make_room: bool) -> Option<Packet> {
        while let Some(place) = self.queue.front() {
            let Some(packet) = self.packets.get(place) else {
                self.queue.pop_front();
                continue;
            };
            if !make_room && now_ns.saturating_sub(packet.time_ns) <= MAX_WAIT_NS {
                return None;
            }
            return self.packets.remove(place).map(|packet| *packet);
        }
        None
    }

    /// A packet was matched, at least in part.
    pub fn matched(&mut self, packet: &Packet) {
        self.latest_matched = self.latest_matched.max(packet.order);
        if packet.is_matched() {
            self.remember(packet.identity);
        }
    }

    fn remember(&mut self, identity: Identity) {
        if self.remembered.len() >= REMEMBERED {
            self.remembered.pop_front();
        }
        self.remembered.push_back(identity);
    }

    pub fn into_packets(self) -> impl Iterator<Item = Packet> {
        self.packets.into_values().map(|packet| *packet)
    }

    /// Whether `identity` repeats what was matched before.
    pub fn is_copy(&self, identity: &Identity) -> bool {
        let holds = |other: &Identity| match (identity, other) {
            (Identity::Whole(own), Identity::Whole(other)) => own == other,
            (Identity::Range(own), Identity::Range(other)) => {
                let offset = own.start.wrapping_sub(other.start);
                let inside = u64::from(offset) + u64::from(own.numbers) <= u64::from(other.numbers);
                inside && may_share(own, other)
            }
            _ => false,
        };
        self.remembered.iter().any(holds)
            || match identity {
                Identity::Whole(_) => false,
                Identity::Range(range) => {
                    self.over(range.start, 1).any(|(_, packet)| packet.parts > 0 && holds(&packet.identity))
                }
            }
    }

    /// The waiting packet that is `hash`: the one whose delay is nearest to `usual`, if that is known.
    pub fn whole(&self, hash: u64, delay: impl Fn(i64) -> i64, usual: Option<i64>) -> Option<Place> {
        let first = hash | WHOLE;
        self.packets
            .range((first, 0)..=(first, u64::MAX))
            .take(LOOKED_AT)
            .min_by_key(|(place, packet)| (self.is_passed(packet), unlikelihood(packet, &delay, usual), place.1))
            .map(|(place, _)| *place)
    }

    /// The waiting packet from which the number `at` of `range` most likely came.
    ///
    /// Those with another timestamp, or another identification at the same start, are not. Then the same
    /// identification is better than none, one that later packets have not passed is better than one that they have,
    /// and the delay nearest to the usual one is best.
    pub fn with_number(&self, range: &Range, at: u32, delay: impl Fn(i64) -> i64, usual: Option<i64>) -> Option<Found> {
        let candidates = self.over(at, 1).filter_map(|(place, packet)| {
            let Identity::Range(other) = packet.identity else { return None };
            if !may_share(range, &other) || packet.left.as_ref().is_some_and(|left| left.len() >= LOOKED_AT) {
                return None;
            }
            let offset = at.wrapping_sub(other.start);
            let (_, end) = packet.left().find(|(start, end)| (*start..*end).contains(&offset))?;
            let same_id = range.start == other.start && range.ip_id.is_some() && range.ip_id == other.ip_id;
            let rank = (!same_id, self.is_passed(packet), unlikelihood(packet, &delay, usual), place.1);
            Some((rank, Found { place, offset, numbers: end - offset }))
        });
        candidates.min_by_key(|(rank, _)| *rank).map(|(_, candidate)| candidate)
    }

    /// How many numbers after `at`, of the next `numbers`, the first one that waits is.
    pub fn next_after(&self, range: &Range, at: u32, numbers: u32) -> Option<u32> {
        let ahead = self.over(at, numbers).filter_map(|(_, packet)| {
            let Identity::Range(other) = packet.identity else { return None };
            if !may_share(range, &other) {
                return None;
            }
            let starts = packet.left().map(|(start, _)| other.start.wrapping_add(start).wrapping_sub(at));
            starts.filter(|distance| (1..numbers).contains(distance)).min()
        });
        ahead.min()
    }

    fn is_passed(&self, packet: &Packet) -> bool {
        packet.order < self.latest_matched
    }

    /// Waiting packets that may hold one of `numbers` numbers from `at`, the highest starts first.
    fn over(&self, at: u32, numbers: u32) -> impl Iterator<Item = (Place, &Packet)> {
        let low = at.wrapping_sub(self.longest.saturating_sub(1));
        let high = at.wrapping_add(numbers.saturating_sub(1));
        let between = |range: RangeInclusive<u32>| {
            let (start, end) = (u64::from(*range.start()), u64::from(*range.end()));
            self.packets.range((start, 0)..=(end, u64::MAX)).rev()
        };
        // Sequence numbers wrap.
        let (upper, lower) =
            if low <= high { (between(low..=high), None) } else { (between(0..=high), Some(between(low..=u32::MAX))) };
        upper.chain(lower.into_iter().flatten()).take(LOOKED_AT).map(|(place, packet)| (*place, &**packet))
    }
}

/// How far a packet's delay would be from the usual one; 0 where none is known.
fn unlikelihood(packet: &Packet, delay: &impl Fn(i64) -> i64, usual: Option<i64>) -> u64 {
    usual.map_or(0, |usual| delay(packet.time_ns).abs_diff(usual))
}
