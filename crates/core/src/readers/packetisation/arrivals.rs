//! Payload bytes in the order of their arrival: what is new, what is repeated, what came late.
//!
//! A segment that brings new bytes below the highest seen is late. It was either reordered on the way, or it is a
//! retransmission of one that was lost before it reached the capture point. Two things tell these apart:
//! 1. IPv4 identifications, where the sender counts them up from packet to packet (Linux does): one below that of the
//!    packet that came too early was sent before it, so reordered;
//! 2. otherwise time: a sender can learn of a loss no sooner than one round trip after the packet that came too early,
//!    so what is later by less than the handshake's round trip is reordered. Without a handshake, 3 ms.
//!
//! Reordering is RFC 4737's type-P-reordered, its extent (4.2.1) the number of packets from the earliest arrived one with a
//! higher sequence number to the reordered one. Packets are those on the wire: one that was captured joined counts as many.
//! At most [`MAX_HOLES`] holes are remembered. At more, the lowest one is forgotten, and bytes that fill it later count as
//! repeated.

pub const MAX_HOLES: usize = 64;
const WITHOUT_HANDSHAKE_NS: i64 = 3_000_000;
/// How many packets a sender may have sent between two of this connection, for its identifications to be believed.
const MAX_ID_STEP: u16 = 1024;

/// Bytes not seen below others that were.
#[derive(Debug, Clone, Copy)]
struct Hole {
    start: i64,
    end: i64,
    /// The packet that left it: the earliest with a higher number.
    first_above: u64,
    time_ns: Option<i64>,
    ip_id: Option<u16>,
}

/// A data segment and what it stands for.
#[derive(Debug, Clone, Copy)]
pub(super) struct Arrival {
    pub start: i64,
    pub end: i64,
    pub wire_packets: u64,
    /// Payload of each of them but the last.
    pub piece_bytes: u32,
    pub time_ns: Option<i64>,
    pub ip_id: Option<u16>,
    pub round_trip_ns: Option<i64>,
}

/// What was repeated or late in one direction.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Disorder {
    /// Packets on the wire with bytes seen before, and those bytes.
    pub retransmitted_packets: u64,
    pub retransmitted_bytes: u64,
    /// Packets on the wire, and bytes, that are sent again though not seen before: lost before the capture point.
    pub recovered_packets: u64,
    pub recovered_bytes: u64,
    pub reordered_packets: u64,
    /// Sum and maximum of the reordered packets' extents.
    pub extents: u64,
    pub extent_max: u64,
}

impl Disorder {
    pub fn extent_mean(&self) -> Option<f64> {
        (self.reordered_packets > 0).then(|| self.extents as f64 / self.reordered_packets as f64)
    }
}

#[derive(Debug, Clone, Default)]
pub(super) struct Arrivals {
    /// Sequence number of position 0.
    base: Option<u32>,
    end: i64,
    /// Packets on the wire so far.
    packets: u64,
    last_id: Option<u16>,
    id_steps: u32,
    id_jumps: bool,
    /// Where not all came once and in order.
    disordered: Option<Box<Disordered>>,
}

#[derive(Debug, Clone, Default)]
struct Disordered {
    /// Ascending.
    holes: Vec<Hole>,
    counts: Disorder,
}

impl Arrivals {
    /// Position of a sequence number: the line goes on where the 32 bits wrap.
    #[inline]
    pub fn position(&mut self, sequence: u32) -> i64 {
        let base = *self.base.get_or_insert(sequence);
        let ahead = sequence.wrapping_sub(base.wrapping_add(self.end as u32)) as i32;
        self.end + i64::from(ahead)
    }

    pub fn is_empty(&self) -> bool {
        self.base.is_none()
    }

    /// After the highest byte seen.
    #[inline]
    pub fn end(&self) -> i64 {
        self.end
    }

    #[inline]
    pub fn add(&mut self, arrival: &Arrival) {
        let number = self.packets;
        self.packets += arrival.wire_packets;
        if arrival.start == self.end {
            self.end = arrival.end;
            self.follow_id(arrival);
            return;
        }
        if arrival.start > self.end {
            self.leave_hole(arrival, number);
            self.end = arrival.end;
        } else {
            self.below(arrival, number);
            self.end = self.end.max(arrival.end);
        }
        self.last_id = arrival.ip_id;
    }

    /// Whether in-order data's identifications count up.
    #[inline]
    fn follow_id(&mut self, arrival: &Arrival) {
        if let (Some(last), Some(id)) = (self.last_id, arrival.ip_id) {
            let step = id.wrapping_sub(last);
            if (1..=MAX_ID_STEP).contains(&step) {
                self.id_steps = self.id_steps.saturating_add(1);
            } else {
                self.id_jumps = true;
            }
        }
        self.last_id = arrival.ip_id;
    }

    #[cold]
    fn leave_hole(&mut self, arrival: &Arrival, number: u64) {
        let holes = &mut self.disordered.get_or_insert_default().holes;
        if holes.len() >= MAX_HOLES {
            holes.remove(0);
        }
        holes.push(Hole {
            start: self.end,
            end: arrival.start,
            first_above: number,
            time_ns: arrival.time_ns,
            ip_id: arrival.ip_id,
        });
    }

    #[cold]
    fn below(&mut self, arrival: &Arrival, number: u64) {
        let seen_end = arrival.end.min(self.end);
        let (filled, earliest) = self.disordered.get_or_insert_default().fill(arrival.start, seen_end);
        let repeated = seen_end - arrival.start - filled;
        let was_reordered = earliest.is_some_and(|hole| repeated == 0 && self.was_reordered(arrival, &hole));
        let piece = i64::from(arrival.piece_bytes.max(1));
        let packets = |bytes: i64| bytes.saturating_add(piece - 1) / piece;
        let repeated_packets = (packets(repeated) as u64).min(arrival.wire_packets);
        let filled_packets = (packets(filled) as u64).min(arrival.wire_packets - repeated_packets);
        let counts = &mut self.disordered.get_or_insert_default().counts;
        counts.retransmitted_packets += repeated_packets;
        counts.retransmitted_bytes += repeated as u64;
        let Some(hole) = earliest else { return };
        if was_reordered {
            // The pieces of a joined packet follow each other: extents e, e + 1, ...
            let last = filled_packets.saturating_sub(1);
            let extent = number.saturating_sub(hole.first_above);
            counts.reordered_packets += filled_packets;
            counts.extents = counts.extents.saturating_add(filled_packets * extent + filled_packets * last / 2);
            counts.extent_max = counts.extent_max.max(extent + last);
        } else {
            counts.recovered_packets += filled_packets;
            counts.recovered_bytes += filled as u64;
        }
    }

    fn was_reordered(&self, arrival: &Arrival, hole: &Hole) -> bool {
        const ENOUGH_STEPS: u32 = 2;
        if let (Some(id), Some(above), false) = (arrival.ip_id, hole.ip_id, self.id_jumps) {
            if self.id_steps >= ENOUGH_STEPS {
                return (id.wrapping_sub(above) as i16) < 0;
            }
        }
        match (arrival.time_ns, hole.time_ns) {
            (Some(time), Some(above)) => {
                time.saturating_sub(above) < arrival.round_trip_ns.unwrap_or(WITHOUT_HANDSHAKE_NS)
            }
            _ => true,
        }
    }

    pub fn finish(&self) -> Disorder {
        self.disordered.as_ref().map(|disordered| disordered.counts).unwrap_or_default()
    }
}

impl Disordered {
    /// Takes the bytes from `start` to `end` off the holes: how many they filled, and the lowest hole among them as it was.
    fn fill(&mut self, start: i64, end: i64) -> (i64, Option<Hole>) {
        let mut filled = 0;
        let mut lowest = None;
        let mut at = self.holes.partition_point(|hole| hole.end <= start);
        while let Some(hole) = self.holes.get(at).copied() {
            let (from, to) = (hole.start.max(start), hole.end.min(end));
            if from >= to {
                break;
            }
            filled += to - from;
            lowest = lowest.or(Some(hole));
            match (hole.start < from, to < hole.end) {
                (false, false) => {
                    self.holes.remove(at);
                    continue;
                }
                (true, false) => self.holes[at].end = from,
                (false, true) => self.holes[at].start = to,
                (true, true) => {
                    self.holes[at].end = from;
                    self.holes.insert(at + 1, Hole { start: to, ..hole });
                }
            }
            at += 1;
        }
        if self.holes.len() > MAX_HOLES {
            self.holes.remove(0);
        }
        (filled, lowest)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const PIECE: i64 = 100;

    /// Packet `place` of 100 bytes at `time_us`; round trip 10 ms.
    fn packet(place: i64, time_us: i64, ip_id: Option<u16>) -> Arrival {
        Arrival {
            start: place * PIECE,
            end: (place + 1) * PIECE,
            wire_packets: 1,
            piece_bytes: PIECE as u32,
            time_ns: Some(time_us * 1000),
            ip_id,
            round_trip_ns: Some(10_000_000),
        }
    }

    fn disorder(places: &[i64]) -> Disorder {
        let mut arrivals = Arrivals::default();
        for (at, &place) in places.iter().enumerate() {
            arrivals.add(&packet(place, at as i64, None));
        }
        arrivals.finish()
    }

    #[test]
    fn extents_are_rfc_4737s() {
        // By the definition of 4.2.1: sent 1 to 10, arriving 1 2 3 7 8 9 10 4 5 6, has extents 4, 5, 6.
        let counts = disorder(&[0, 1, 2, 6, 7, 8, 9, 3, 4, 5]);
        assert_eq!((counts.reordered_packets, counts.extents, counts.extent_max), (3, 4 + 5 + 6, 6));
        assert_eq!(counts.retransmitted_packets + counts.recovered_packets, 0);
        // 1 2 3 6 4 5 has extents 1, 2; 1 2 3 5 6 7 4 has 3.
        let counts = disorder(&[0, 1, 2, 5, 3, 4]);
        assert_eq!((counts.reordered_packets, counts.extents, counts.extent_max), (2, 3, 2));
        assert_eq!(disorder(&[0, 1, 2, 4, 5, 6, 3]).extents, 3);
        // The earliest arrived with a higher number counts, not the nearest: 8 before 6 before 5 (0-based 4).
        assert_eq!(disorder(&[0, 1, 2, 3, 7, 5, 4]).extents, 1 + 2);
    }

    #[test]
    fn repeats_are_no_reordering() {
        let counts = disorder(&[0, 1, 2, 1, 2, 3]);
        assert_eq!((counts.reordered_packets, counts.retransmitted_packets, counts.retransmitted_bytes), (0, 2, 200));
    }

    #[test]
    fn what_comes_a_round_trip_later_was_lost() {
        for (late_us, reordered, recovered) in [(9_999, 1, 0), (10_000, 0, 1)] {
            let mut arrivals = Arrivals::default();
            arrivals.add(&packet(0, 0, None));
            arrivals.add(&packet(2, 1, None));
            arrivals.add(&packet(1, 1 + late_us, None));
            let disorder = arrivals.finish();
            assert_eq!((disorder.reordered_packets, disorder.recovered_packets), (reordered, recovered));
        }
    }

    #[test]
    fn identifications_that_count_up_decide_before_time() {
        for (late_id, late_us, reordered, recovered) in [(4, 90_000, 1, 0), (9, 10, 0, 1)] {
            let mut arrivals = Arrivals::default();
            for place in 0..3 {
                arrivals.add(&packet(place, place, Some(1 + place as u16)));
            }
            arrivals.add(&packet(4, 5, Some(5)));
            arrivals.add(&packet(3, 5 + late_us, Some(late_id)));
            let disorder = arrivals.finish();
            assert_eq!((disorder.reordered_packets, disorder.recovered_packets), (reordered, recovered));
        }
    }

    #[test]
    fn a_joined_packet_counts_as_its_pieces() {
        let mut apart = Arrivals::default();
        for place in [0, 3, 1, 2] {
            apart.add(&packet(place, 0, None));
        }
        let mut joined = Arrivals::default();
        joined.add(&packet(0, 0, None));
        joined.add(&packet(3, 0, None));
        joined.add(&Arrival { end: 3 * PIECE, wire_packets: 2, ..packet(1, 0, None) });
        assert_eq!(apart.finish(), joined.finish());
    }

    proptest::proptest! {
        #[test]
        fn agrees_with_the_definitions(places in proptest::collection::vec(0i64..30, 1..60)) {
            // Straight from RFC 4737: sequence numbers, first arrivals only; before the first packet nothing is known.
            let mut expected = Disorder::default();
            let first = places[0];
            let mut seen: Vec<i64> = Vec::new();
            for (at, &place) in places.iter().enumerate() {
                let is_late = seen.iter().any(|&other| other > place);
                if seen.contains(&place) || place < first {
                    expected.retransmitted_packets += 1;
                    expected.retransmitted_bytes += PIECE as u64;
                } else if is_late {
                    let above = places.iter().position(|&other| other > place && other >= first).unwrap_or(at);
                    let extent = (at - above) as u64;
                    expected.reordered_packets += 1;
                    expected.extents += extent;
                    expected.extent_max = expected.extent_max.max(extent);
                }
                seen.push(place);
            }
            let mut arrivals = Arrivals { end: first * PIECE, ..Arrivals::default() };
            for &place in &places {
                arrivals.add(&packet(place, 0, None));
            }
            proptest::prop_assert_eq!(arrivals.finish(), expected);
        }
    }
}
