//! Which connection a packet belongs to for packetisation and HTTP, with a bound on how many are followed at once.
//!
//! TCP: a SYN with another initial sequence number than the one before from the same endpoint opens another connection
//! (ports are used again); so does one after the connection's end. UDP: a silence of [`UDP_TIMEOUT_NS`] does.
//!
//! At most [`MAX_FOLLOWED`] connections are followed. At more, connections with FINs from both sides or a RST are
//! finished. Where these are not a quarter of all, those that have been silent longest are finished too, and a later
//! packet of theirs counts as another connection. So the order of the packets alone decides, and memory is bounded.

use super::table::{Connection, Table};
use super::{Key, Protocol, SegmentLimits, WirePackets};
use crate::wire::tcp::{Segment, ACK, FIN, RST, SYN};
use crate::wire::{udp::Datagram, Packet};

pub const MAX_FOLLOWED: usize = 1 << 15;

/// The longest silence inside one UDP flow.
pub const UDP_TIMEOUT_NS: i64 = 60_000_000_000;

/// A connection while packets come; arrays are indexed by whether the sender is the key's low end.
pub(crate) struct Followed<T> {
    pub key: Key,
    pub protocol: Protocol,
    /// Number in the capture, from 1, of the connection's first packet: with the endpoints, its name.
    pub first_packet: u64,
    last_packet: u64,
    last_ns: Option<i64>,
    pub originator_is_low: bool,
    /// From the SYNs' options.
    max_segment: [Option<u16>; 2],
    syn: [Option<u32>; 2],
    first_sequence: [Option<u32>; 2],
    fin: [bool; 2],
    reset: bool,
    pub state: T,
}

impl<T: Default> Followed<T> {
    fn new(key: Key, protocol: Protocol, number: u64, originator_is_low: bool) -> Self {
        Followed {
            key,
            protocol,
            first_packet: number,
            last_packet: number,
            last_ns: None,
            originator_is_low,
            max_segment: [None; 2],
            syn: [None; 2],
            first_sequence: [None; 2],
            fin: [false; 2],
            reset: false,
            state: T::default(),
        }
    }
}

impl<T> Followed<T> {
    /// What a segment of this connection stands for on a link with this MTU.
    #[inline]
    pub fn wire_packets(&self, packet: &Packet, segment: &Segment, sender_is_low: bool, mtu: u32) -> WirePackets {
        let limits = self.limits(sender_is_low, mtu);
        WirePackets::of_segment(segment.payload_bytes, segment.header_bytes.into(), packet.ip_bytes, &limits)
    }

    /// Whether a segment of this connection has the payload of a full packet, or of several.
    #[inline]
    pub fn is_full(&self, packet: &Packet, segment: &Segment, sender_is_low: bool, mtu: u32) -> bool {
        self.limits(sender_is_low, mtu).is_full(segment.payload_bytes, segment.header_bytes.into(), packet.ip_bytes)
    }

    #[inline]
    fn limits(&self, sender_is_low: bool, mtu: u32) -> SegmentLimits {
        SegmentLimits {
            mtu,
            receiver: self.max_segment[usize::from(!sender_is_low)],
            smaller: match self.max_segment {
                [Some(high), Some(low)] => Some(high.min(low)),
                [high, low] => high.or(low),
            },
        }
    }

    pub fn has_fin(&self, from_low: bool) -> bool {
        self.fin[usize::from(from_low)]
    }

    fn is_over(&self) -> bool {
        self.reset || self.fin == [true; 2]
    }

    /// Whether a UDP packet at this time comes after the longest silence inside a flow.
    fn is_silent(&self, time_ns: Option<i64>) -> bool {
        match (time_ns, self.last_ns) {
            (Some(time), Some(last)) => time.saturating_sub(last) > UDP_TIMEOUT_NS,
            _ => false,
        }
    }

    /// Whether a SYN opens another connection.
    fn is_replaced_by(&self, segment: &Segment, sender_is_low: bool) -> bool {
        let own = usize::from(sender_is_low);
        match (self.syn[own], self.first_sequence[own]) {
            (Some(syn), _) => syn != segment.sequence,
            // The SYN was captured after the segment that it leads to.
            (None, Some(first)) if first == segment.sequence.wrapping_add(1) => false,
            (None, None) => match self.syn[1 - own] {
                // This SYN answers the other side's, or both ends open at once.
                Some(_) => self.is_over(),
                None => !segment.has(ACK),
            },
            (None, Some(_)) => true,
        }
    }

    fn take(&mut self, segment: &Segment, sender_is_low: bool) {
        let own = usize::from(sender_is_low);
        if segment.has(SYN) {
            if !segment.has(ACK) && self.syn[1 - own].is_none() {
                self.originator_is_low = sender_is_low;
            }
            self.syn[own] = Some(segment.sequence);
            self.max_segment[own] = segment.max_segment_bytes.or(self.max_segment[own]);
        } else if self.first_sequence[own].is_none() {
            self.first_sequence[own] = Some(segment.sequence);
        }
        self.fin[own] |= segment.has(FIN);
        self.reset |= segment.has(RST);
    }
}

impl<T> Connection for Followed<T> {
    #[inline]
    fn key(&self) -> &Key {
        &self.key
    }

    fn number(&self) -> u64 {
        self.first_packet
    }
}

/// The connections that are followed.
pub(crate) struct Tracking<T> {
    table: Table<Followed<T>>,
    /// Connections finished for room before their end was seen.
    pub finished_early: u64,
}

impl<T> Default for Tracking<T> {
    fn default() -> Self {
        Tracking { table: Table::default(), finished_early: 0 }
    }
}

impl<T: Default> Tracking<T> {
    /// The segment's connection, and whether its sender is the key's low end. `finish` takes what makes room.
    #[inline]
    pub fn segment(
        &mut self,
        number: u64,
        packet: &Packet,
        segment: &Segment,
        finish: impl FnMut(&mut Followed<T>),
    ) -> (&mut Followed<T>, bool) {
        let ports = (segment.source_port, segment.destination_port);
        let (latest, sender_is_low) = self.table.find(packet, ports.0, ports.1);
        let at = match latest {
            Some(at) if !segment.has(SYN) || !self.table[at].is_replaced_by(segment, sender_is_low) => at,
            before => {
                let answers = segment.has(SYN) && segment.has(ACK) && !segment.has(RST) && !segment.has(FIN);
                let (key, _) = Key::of_packet(packet, ports.0, ports.1);
                self.open(Followed::new(key, Protocol::Tcp, number, sender_is_low != answers), before, finish)
            }
        };
        let followed = &mut self.table[at];
        followed.last_packet = number;
        followed.take(segment, sender_is_low);
        (followed, sender_is_low)
    }

    /// As [`Tracking::segment`], for a UDP datagram.
    #[inline]
    pub fn datagram(
        &mut self,
        number: u64,
        time_ns: Option<i64>,
        packet: &Packet,
        datagram: &Datagram,
        finish: impl FnMut(&mut Followed<T>),
    ) -> (&mut Followed<T>, bool) {
        let ports = (datagram.source_port, datagram.destination_port);
        let (latest, sender_is_low) = self.table.find(packet, ports.0, ports.1);
        let at = match latest {
            Some(at) if !self.table[at].is_silent(time_ns) => at,
            before => {
                let (key, _) = Key::of_packet(packet, ports.0, ports.1);
                self.open(Followed::new(key, Protocol::Udp, number, sender_is_low), before, finish)
            }
        };
        let followed = &mut self.table[at];
        followed.last_packet = number;
        followed.last_ns = time_ns.or(followed.last_ns);
        (followed, sender_is_low)
    }

    fn open(&mut self, new: Followed<T>, before: Option<u32>, finish: impl FnMut(&mut Followed<T>)) -> u32 {
        if self.table.len() >= MAX_FOLLOWED {
            self.make_room(finish);
        }
        self.table.insert(new, before)
    }

    #[cold]
    fn make_room(&mut self, finish: impl FnMut(&mut Followed<T>)) {
        let mut places = self.table.chosen(Followed::is_over);
        let excess = (self.table.len() - places.len()).saturating_sub(MAX_FOLLOWED / 4 * 3);
        if excess > 0 {
            places.extend(self.table.silent(excess, |row| (!row.is_over()).then_some(row.last_packet)));
        }
        self.finished_early += excess as u64;
        self.table.remove_all(places, finish);
    }

    /// Finishes all that are left.
    pub fn finish(mut self, finish: impl FnMut(&mut Followed<T>)) {
        self.table.remove_all(self.table.in_order(), finish);
    }
}
