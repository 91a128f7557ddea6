//! Frames in, tcptrace's statistics of each TCP connection out, as a stream in bounded memory.
//!
//! What counts as what was found by experiments with tcptrace 6.6.7 (docs/flows.md). Tunnels are entered on request;
//! of fragmented datagrams the first fragment counts as the packet, later ones add their bytes.

mod acknowledgment;
mod connection;
mod direction;
mod outstanding;
mod repeats;
mod row;
mod samples;
mod sent;
mod table;
mod window;

#[cfg(test)]
mod hostile_tests;

use std::hash::BuildHasher;
use std::net::IpAddr;

pub use row::{Completeness, Row, Side};

use crate::capture::{Frame, Origin};
use crate::flow::fragments::{Datagram, Owners};
use crate::flow::Summary;
use crate::wire::tcp::{self, Segment};
use crate::wire::{self, Dissected, Packet, Transport};
use connection::{Endpoints, Live};
use direction::Arrival;
use table::Table;

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Options {
    /// Look into IP-in-IP, GRE and VXLAN: the innermost packet counts.
    pub tunnels: bool,
    /// Connections held at a time; at more, those idle longest are finished early, closed ones first.
    pub max_connections: usize,
    /// Only connections with this port, this host on either side.
    pub port: Option<u16>,
    pub host: Option<IpAddr>,
    /// Only packets from `from_ns` and before `until_ns` (nanoseconds since the epoch).
    pub from_ns: Option<i64>,
    pub until_ns: Option<i64>,
}

impl Default for Options {
    fn default() -> Self {
        Options { tunnels: false, max_connections: 1 << 18, port: None, host: None, from_ns: None, until_ns: None }
    }
}

impl Options {
    /// Reads a frame's headers.
    #[inline]
    pub fn dissect(&self, frame: &Frame) -> Dissected {
        if self.tunnels {
            wire::dissect_inner(frame)
        } else {
            wire::dissect(frame)
        }
    }
}

/// Places for unacknowledged segments (24 bytes each) and gaps (16) on the heap, of all connections together. Beyond it
/// connections silent longest give up theirs, until half is free.
const MAX_PLACES: usize = 1 << 22;

/// Takes frames one by one.
pub struct Engine {
    options: Options,
    live: Vec<Live>,
    /// Places in `live` that hold no connection.
    vacant: Vec<u32>,
    /// The latest connection of each pair of endpoints.
    index: Table,
    hasher: foldhash::fast::RandomState,
    /// What the last packet belonged to: the next one often does too.
    last: u32,
    /// Time of the last frame.
    end_ns: i64,
    fragments: Owners,
    places: usize,
    max_places: usize,
    protocols: [u64; 256],
    summary: Summary,
}

impl Engine {
    pub fn new(options: Options) -> Self {
        Engine {
            options,
            live: Vec::new(),
            vacant: Vec::new(),
            index: Table::default(),
            hasher: foldhash::fast::RandomState::default(),
            last: 0,
            end_ns: 0,
            fragments: Owners::default(),
            places: 0,
            max_places: MAX_PLACES,
            protocols: [0; 256],
            summary: Summary::default(),
        }
    }

    /// Counts a frame; rows that have to be finished early go to `sink`.
    #[inline]
    pub fn frame(&mut self, frame: &Frame, sink: &mut impl FnMut(Row)) {
        let dissected = self.options.dissect(frame);
        self.dissected(frame, &dissected, sink);
    }

    /// As [`Engine::frame`], where another thread has done [`Options::dissect`].
    #[inline]
    pub fn dissected(&mut self, frame: &Frame, dissected: &Dissected, sink: &mut impl FnMut(Row)) {
        let summary = &mut self.summary;
        summary.packets += 1;
        summary.bytes += u64::from(frame.original_bytes);
        summary.captured_bytes += frame.data.len() as u64;
        if let Some(time) = frame.time_ns {
            summary.first_ns = Some(summary.first_ns.map_or(time, |first| first.min(time)));
            summary.last_ns = Some(summary.last_ns.map_or(time, |last| last.max(time)));
            self.end_ns = time;
        }
        if !self.is_within(frame.time_ns) {
            *self.summary.skipped.entry("outside_the_time_asked_for").or_default() += 1;
            return;
        }
        match dissected {
            Dissected::Ip(packet) => self.packet(frame, packet, sink),
            Dissected::NonIp => self.summary.non_ip_packets += 1,
            Dissected::Unusable { reason } => self.skip(reason),
        }
    }

    #[inline]
    fn is_within(&self, time_ns: Option<i64>) -> bool {
        let Options { from_ns, until_ns, .. } = self.options;
        match time_ns {
            Some(time) => from_ns.is_none_or(|from| time >= from) && until_ns.is_none_or(|until| time < until),
            None => true,
        }
    }

    #[cold]
    fn skip(&mut self, reason: &'static str) {
        *self.summary.skipped.entry(reason).or_default() += 1;
    }

    #[cold]
    fn note(&mut self, what: &'static str, count: u64) {
        *self.summary.notes.entry(what).or_default() += count;
    }

    #[inline]
    fn packet(&mut self, frame: &Frame, packet: &Packet, sink: &mut impl FnMut(Row)) {
        self.protocols[usize::from(packet.protocol)] += 1;
        if packet.longer_than_frame {
            self.note("ip_length_above_frame_length", 1);
        }
        match &packet.transport {
            Transport::Tcp(segment) => self.segment(frame, packet, segment, sink),
            Transport::Unusable { reason } => self.skip(reason),
            Transport::Fragment => self.fragment(frame, packet),
            Transport::Udp(_) | Transport::Other => {}
        }
    }

    #[inline]
    fn segment(&mut self, frame: &Frame, packet: &Packet, segment: &Segment, sink: &mut impl FnMut(Row)) {
        if !self.is_asked_for(packet, segment) {
            return self.skip("not_the_port_or_host_asked_for");
        }
        let (endpoints, sender_is_low) =
            Endpoints::of(&packet.addresses, segment.source_port, segment.destination_port);
        let transport = packet.transport_data(frame.data);
        let arrival = Arrival {
            segment,
            options: tcp::captured_options(transport, segment),
            time_ns: frame.time_ns.unwrap_or(0),
            captured_payload_bytes: (transport.len() as u32).saturating_sub(u32::from(segment.header_bytes)),
            ip_bytes: packet.ip_bytes,
            frame_bytes: frame.original_bytes,
            ip_id: packet.ip_id,
        };
        let found = self.find(&endpoints);
        let at = match found {
            Some(at) if !self.live[at as usize].is_over_for(&arrival, sender_is_low) => at,
            old => {
                let number = self.summary.packets;
                self.open(Live::new(endpoints, sender_is_low, number, frame.time_ns), old, sink)
            }
        };
        self.last = at;
        if packet.fragment_id.is_some() {
            if let Some(datagram) = Datagram::of(packet) {
                self.fragments.remember(datagram, (at, sender_is_low));
            }
        }
        let has_time = frame.time_ns.is_some();
        let grown = self.live[at as usize].packet(&arrival, sender_is_low, self.summary.packets, has_time);
        self.places = self.places.saturating_add_signed(grown);
        if self.places > self.max_places {
            self.relieve();
        }
    }

    /// Connections give up what they hold on the heap, those silent longest first, until half of the places are free.
    #[cold]
    fn relieve(&mut self) {
        let held = (0u32..).zip(&self.live).filter(|(_, live)| live.places() > 0);
        let mut order: Vec<(u64, u32)> = held.map(|(at, live)| (live.last_number, at)).collect();
        order.sort_unstable();
        for (_, at) in order {
            if self.places <= self.max_places / 2 {
                return;
            }
            let live = &mut self.live[at as usize];
            self.places = self.places.saturating_sub(live.places());
            live.forget();
        }
    }

    /// A connection's row, and in the notes which of its sides not everything was held of.
    fn close(&mut self, live: Live, end_ns: i64, sink: &mut impl FnMut(Row)) {
        let forgotten = live.sides().filter(|side| side.outstanding.has_forgotten).count();
        let filled = live.sides().filter(|side| side.sent.has_filled).count();
        for (what, count) in [
            ("sides_with_unacknowledged_segments_forgotten", forgotten),
            ("sides_with_sequence_gaps_taken_for_sent", filled),
        ] {
            if count > 0 {
                self.note(what, count as u64);
            }
        }
        sink(live.finish(end_ns));
    }

    #[inline]
    fn is_asked_for(&self, packet: &Packet, segment: &Segment) -> bool {
        let has_port = |port| segment.source_port == port || segment.destination_port == port;
        self.options.port.is_none_or(has_port)
            && self.options.host.is_none_or(|host| {
                let (source, destination) = packet.addresses.numbers();
                let is_v6 = packet.addresses.is_v6();
                wire::address(source, is_v6) == host || wire::address(destination, is_v6) == host
            })
    }

    #[inline]
    fn find(&self, endpoints: &Endpoints) -> Option<u32> {
        if let Some(last) = self.live.get(self.last as usize) {
            // A connection that others of its endpoints followed is not the latest any more, but then it is not last.
            if last.endpoints == *endpoints {
                return Some(self.last);
            }
        }
        let hash = self.hasher.hash_one(endpoints);
        self.index.find(hash, |place| self.live[place as usize].endpoints == *endpoints)
    }

    fn open(&mut self, live: Live, old: Option<u32>, sink: &mut impl FnMut(Row)) -> u32 {
        let (endpoints, mut old) = (live.endpoints, old);
        if self.live.len() - self.vacant.len() >= self.options.max_connections.max(1) {
            self.evict(sink);
            old = old.filter(|&at| self.live[at as usize].first_number > 0);
        }
        let at = match self.vacant.pop() {
            Some(at) => {
                self.live[at as usize] = live;
                at
            }
            None => {
                self.live.push(live);
                (self.live.len() - 1) as u32
            }
        };
        self.index.put(self.hasher.hash_one(endpoints), old, at);
        at
    }

    /// Finishes an eighth of the connections: closed ones, then those whose last packet is longest ago.
    #[cold]
    fn evict(&mut self, sink: &mut impl FnMut(Row)) {
        let mut order: Vec<(bool, u64, u32)> = (0u32..)
            .zip(&self.live)
            .filter(|(_, live)| live.first_number > 0)
            .map(|(at, live)| (!live.is_closed(), live.last_number, at))
            .collect();
        let count = (order.len() / 8).max(1);
        if count < order.len() {
            order.select_nth_unstable(count);
            order.truncate(count);
        }
        let open = order.iter().filter(|(is_open, ..)| *is_open).count() as u64;
        self.note("open_connections_finished_early", open);
        let end_ns = self.end_ns;
        order.sort_unstable_by_key(|&(_, _, at)| self.live[at as usize].first_number);
        for (_, _, at) in order {
            let live = std::mem::take(&mut self.live[at as usize]);
            self.index.remove(self.hasher.hash_one(live.endpoints), at);
            self.vacant.push(at);
            self.places = self.places.saturating_sub(live.places());
            self.close(live, end_ns, sink);
        }
        self.vacant.sort_unstable_by(|one, other| other.cmp(one));
        // They tell of places that are others' now.
        self.fragments = Owners::default();
    }

    /// The capture's last frame is at this time, where other engines got part of it. Before [`Engine::finish`].
    pub fn capture_ends(&mut self, time_ns: i64) {
        self.end_ns = time_ns;
    }

    #[cold]
    fn fragment(&mut self, frame: &Frame, packet: &Packet) {
        match Datagram::of(packet).and_then(|datagram| self.fragments.owner(&datagram)) {
            Some((at, sender_is_low)) => {
                self.live[at as usize].fragment(packet.ip_bytes, frame.original_bytes, sender_is_low);
                self.note("ip_fragment_joined", 1);
            }
            None => self.skip("ip_fragment_without_transport_header"),
        }
    }

    /// Hands the remaining rows to `sink`, in the order of their first packets, and closes the books; `origin` is
    /// what the capture said besides its packets.
    pub fn finish(mut self, origin: Origin, sink: &mut impl FnMut(Row)) -> Summary {
        let end_ns = self.end_ns;
        let mut live = std::mem::take(&mut self.live);
        // Where none was evicted, places are in the order of first packets.
        if !self.vacant.is_empty() {
            live.retain(|live| live.first_number > 0);
            live.sort_unstable_by_key(|live| live.first_number);
        }
        live.into_iter().for_each(|live| self.close(live, end_ns, sink));
        let mut summary = self.summary;
        summary.interfaces = origin.interfaces;
        summary.dropped_packets = origin.dropped_packets;
        for (reason, count) in origin.skipped {
            *summary.skipped.entry(reason).or_default() += count;
        }
        summary.protocols = (0u8..=255).zip(self.protocols).filter(|(_, count)| *count > 0).collect();
        summary
    }
}
