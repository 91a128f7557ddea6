//! Frames in, tcptrace's statistics of each TCP connection out, as a stream in bounded memory.
//!
//! The rules of counting come from experiments with tcptrace 6.6.7 (docs/flows.md). Tunnels are entered on request. The
//! first fragment of a datagram counts as the packet; later ones add their bytes.

mod acknowledged;
mod acknowledgment;
mod bin;
mod closed;
mod connection;
mod direction;
mod nothing;
mod outstanding;
mod repeats;
mod row;
mod samples;
mod sent;
mod shards;
mod stored;
mod window;

#[cfg(test)]
mod hostile_tests;

use std::net::IpAddr;

pub use bin::{shard_of, BINS, SHARDS};
pub use row::{Completeness, Rare, Row, Side};
pub use shards::{merged, Router};
pub use stored::{RowReader, RowWriter};

use super::Reader;
use crate::capture::{Ended, Frame, Origin};
use crate::flow::fragments::Datagram;
use crate::flow::{protocol, Key, Summary};
use crate::wire::tcp::{self, Segment, FIN, RST};
use crate::wire::{self, usual, Addresses, Dissected, Packet, Transport};
use bin::Bin;
use direction::Arrival;

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Options {
    /// Look into tunnels (docs/captures.md): the innermost packet counts.
    pub tunnels: bool,
    /// Connections held at a time; at more, those idle longest are finished early. Closed connections are finished early
    /// once a thirty-second of this number is held: a packet that one of them gets after so many others have closed
    /// (less those open) begins another row. Where a capture is in parts, each has its share of the number.
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
    /// Read a usual frame's headers; `None` for any other frame, whose headers [`Options::dissect`] reads.
    #[inline(always)]
    pub fn usual(&self, frame: &Frame) -> Option<Packet> {
        usual::read(frame).filter(|_| !self.tunnels)
    }

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

/// Closed connections are finished early once this part of the most connections is held. These are few enough that their
/// memory stays near a core's cache, and enough that a late packet finds its connection.
const CLOSED_FROM: usize = 32;

/// Closed connections finished early at a time: few enough that their memory is still in a core's cache for the next ones.
const CLOSED_AT_A_TIME: usize = 64;

/// Places on the heap for unacknowledged segments (24 bytes each) and gaps (16), of all connections together. Beyond this
/// number, the connections silent longest give up theirs until half of the places are free.
const MAX_PLACES: usize = 1 << 22;

/// Takes frames one by one.
pub struct Engine {
    options: Options,
    /// Some packets are not asked for.
    is_filtered: bool,
    bins: [Bin; BINS / SHARDS],
    /// Of a bin.
    max_connections: usize,
    max_places: usize,
    /// Of the last frame, in the capture.
    number: u64,
    /// Of all frames' times the first and the last; the other way round where there is none.
    first_ns: i64,
    last_ns: i64,
    protocols: [u64; 256],
    /// Packets whose transport is read, but is not TCP.
    others: [u64; 256],
    summary: Summary,
}

impl Engine {
    pub fn new(options: Options) -> Self {
        Engine::of_bins(1, options)
    }

    /// Of a capture that is in so many bins.
    fn of_bins(of: usize, options: Options) -> Self {
        Engine {
            bins: Default::default(),
            max_connections: options.max_connections.div_ceil(of),
            max_places: MAX_PLACES / of,
            is_filtered: options.port.is_some()
                || options.host.is_some()
                || options.from_ns.is_some()
                || options.until_ns.is_some(),
            options,
            number: 0,
            first_ns: i64::MAX,
            last_ns: i64::MIN,
            protocols: [0; 256],
            others: [0; 256],
            summary: Summary::default(),
        }
    }

    /// Counts the next frame; rows that have to be finished early go to `sink`.
    #[inline]
    pub fn frame(&mut self, frame: &Frame, sink: &mut impl FnMut(Row)) {
        let usual = self.options.usual(frame);
        self.frame_of(self.number + 1, frame, usual.as_ref(), 0, sink);
    }

    /// Counts a frame as [`Engine::frame`] does, where other engines get some of the capture's frames; `number` is this
    /// one's in the capture, `usual` what [`Options::usual`] says of it, `bin` what the capture's [`Router`] does.
    #[inline(always)]
    pub fn frame_of(
        &mut self,
        number: u64,
        frame: &Frame,
        usual: Option<&Packet>,
        bin: u8,
        sink: &mut impl FnMut(Row),
    ) {
        let bin = usize::from(bin) % (BINS / SHARDS);
        self.number = number;
        self.sum_up(frame, bin);
        if self.is_filtered && !self.is_within(frame.time_ns) {
            return self.skip("outside_the_time_asked_for");
        }
        // Compiled twice: what is read of a usual frame is not stored only to be read again.
        match usual {
            Some(packet) => self.packet(frame, packet, bin, sink),
            None => self.other_frame(frame, bin, sink),
        }
    }

    #[cold]
    #[inline(never)]
    fn other_frame(&mut self, frame: &Frame, bin: usize, sink: &mut impl FnMut(Row)) {
        match &self.options.dissect(frame) {
            Dissected::Ip(packet) => self.packet(frame, packet, bin, sink),
            Dissected::NonIp { kind } => self.not_ip(kind),
            Dissected::Unusable { reason } => self.skip(reason),
        }
    }

    #[inline(always)]
    fn sum_up(&mut self, frame: &Frame, bin: usize) {
        let summary = &mut self.summary;
        summary.packets += 1;
        summary.bytes += u64::from(frame.original_bytes);
        summary.captured_bytes += frame.data.len() as u64;
        if let Some(time) = frame.time_ns {
            self.first_ns = self.first_ns.min(time);
            self.last_ns = self.last_ns.max(time);
            self.bins[bin].end_ns = time;
        }
    }

    fn is_within(&self, time_ns: Option<i64>) -> bool {
        let Options { from_ns, until_ns, .. } = self.options;
        match time_ns {
            Some(time) => from_ns.is_none_or(|from| time >= from) && until_ns.is_none_or(|until| time < until),
            None => true,
        }
    }

    #[cold]
    fn not_ip(&mut self, kind: &'static str) {
        *self.summary.not_ip.entry(kind).or_default() += 1;
    }

    #[cold]
    fn skip(&mut self, reason: &'static str) {
        *self.summary.skipped.entry(reason).or_default() += 1;
    }

    #[cold]
    fn note(&mut self, what: &'static str, count: u64) {
        *self.summary.notes.entry(what).or_default() += count;
    }

    #[inline(always)]
    fn packet(&mut self, frame: &Frame, packet: &Packet, bin: usize, sink: &mut impl FnMut(Row)) {
        self.protocols[usize::from(packet.protocol)] += 1;
        if packet.longer_than_frame {
            self.note("ip_length_above_frame_length", 1);
        }
        match &packet.transport {
            Transport::Tcp(segment) => self.segment(frame, packet, segment, bin, sink),
            Transport::Unusable { reason } => self.skip(reason),
            Transport::Fragment => self.fragment(frame, packet, bin),
            Transport::Udp(_) | Transport::Other => {
                self.others[usize::from(packet.protocol)] += 1;
                if let Some(kind) = wire::tunnel_not_entered(frame.data, packet) {
                    self.note(kind, 1);
                }
            }
        }
    }

    #[inline(always)]
    fn segment(&mut self, frame: &Frame, packet: &Packet, segment: &Segment, bin: usize, sink: &mut impl FnMut(Row)) {
        if self.is_filtered && !self.is_asked_for(packet.addresses, segment.source_port, segment.destination_port) {
            return self.skip("not_the_port_or_host_asked_for");
        }
        let transport = packet.transport_data(frame.data);
        let arrival = Arrival {
            segment: *segment,
            options: tcp::captured_options(transport, segment),
            time_ns: frame.time_ns.unwrap_or(0),
            captured_payload_bytes: (transport.len() as u32).saturating_sub(u32::from(segment.header_bytes)),
            ip_bytes: packet.ip_bytes,
            frame_bytes: frame.original_bytes,
            ip_id: packet.ip_id.unwrap_or(0),
        };
        let own = &mut self.bins[bin];
        let (latest, sender_is_low) = own.live.find(packet, segment.source_port, segment.destination_port);
        let at = match latest {
            Some(at) if !own.live[at].is_over_for(&arrival, sender_is_low) => at,
            before => {
                let (key, _) = Key::of_packet(packet, segment.source_port, segment.destination_port);
                self.open(key, sender_is_low, frame.time_ns, before, bin, sink)
            }
        };
        let own = &mut self.bins[bin];
        let live = &mut own.live[at];
        if packet.fragment_id.is_some() {
            if let Some(datagram) = Datagram::of(packet) {
                own.fragments.remember(datagram, (at, sender_is_low, live.first_number));
            }
        }
        if let Some(how_far) = live.goes_back(frame.time_ns) {
            *self.summary.notes.entry(how_far).or_default() += 1;
        }
        let grown = live.packet(&arrival, sender_is_low, self.number, frame.time_ns.is_some());
        if segment.has(FIN | RST) {
            own.closed.push(at, live);
        }
        own.places = own.places.saturating_add_signed(grown);
        if own.places > self.max_places {
            self.relieve(bin);
        }
    }

    /// A bin's connections give up what they hold on the heap, those silent longest first, until half of its places are free.
    #[cold]
    fn relieve(&mut self, bin: usize) {
        let Bin { live, places, .. } = &mut self.bins[bin];
        let held = live.iter().filter(|(_, live)| live.places() > 0);
        let mut order: Vec<(u64, u32)> = held.map(|(at, live)| (live.last_number, at)).collect();
        order.sort_unstable();
        for (_, at) in order {
            if *places <= self.max_places / 2 {
                return;
            }
            *places = places.saturating_sub(live[at].places());
            live[at].forget();
        }
    }

    fn is_asked_for(&self, addresses: Addresses, source_port: u16, destination_port: u16) -> bool {
        let has_port = |port| source_port == port || destination_port == port;
        self.options.port.is_none_or(has_port)
            && self.options.host.is_none_or(|host| {
                let (source, destination) = addresses.numbers();
                let is_v6 = addresses.is_v6();
                wire::address(source, is_v6) == host || wire::address(destination, is_v6) == host
            })
    }

    /// Begins a connection, which is the latest between its endpoints from now on, after the one at `before`.
    fn open(
        &mut self,
        key: Key,
        sender_is_low: bool,
        time_ns: Option<i64>,
        before: Option<u32>,
        bin: usize,
        sink: &mut impl FnMut(Row),
    ) -> u32 {
        if !self.bins[bin].live.has_vacant() {
            self.make_room(bin, sink);
        }
        let number = self.number;
        self.bins[bin].live.insert_with(key, before, |live| live.begin(key, sender_is_low, number, time_ns))
    }

    /// Finishes connections of a bin, if too many are held to go on.
    fn make_room(&mut self, bin: usize, sink: &mut impl FnMut(Row)) {
        let most = self.max_connections.max(1);
        let Bin { live, closed, .. } = &mut self.bins[bin];
        let held = live.len();
        let mut places = Vec::new();
        if held >= most.div_ceil(CLOSED_FROM) {
            places = closed.take(CLOSED_AT_A_TIME.min(most.div_ceil(8)), self.number, live);
        }
        if places.is_empty() && held >= most {
            // An eighth of the connections: those whose last packet is longest ago.
            places = live.silent((held / 8).max(1), |live| Some(live.last_number));
            let open = places.iter().filter(|&&at| !live[at].is_closed()).count();
            self.note("open_connections_finished_early", open as u64);
        }
        if !places.is_empty() {
            self.close(places, bin, Some(self.number), sink);
        }
    }

    /// Removes the connections of a bin at these places and hands on their rows, in the order of their first packets. It
    /// notes the sides of which not everything was held. `early` is the number of the packet at which it is done.
    #[cold]
    fn close(&mut self, places: Vec<u32>, bin: usize, early: Option<u64>, sink: &mut impl FnMut(Row)) {
        let (mut forgotten, mut filled) = (0, 0);
        let Bin { live, places: on_heap, end_ns, .. } = &mut self.bins[bin];
        live.remove_all(places, |live| {
            forgotten += live.sides().filter(|side| side.outstanding.has_forgotten).count() as u64;
            filled += live.sides().filter(|side| side.sent.has_filled).count() as u64;
            sink(live.finish(*end_ns, early));
            *on_heap = on_heap.saturating_sub(live.places());
            live.forget();
        });
        for (what, count) in [
            ("sides_with_unacknowledged_segments_forgotten", forgotten),
            ("sides_with_sequence_gaps_taken_for_sent", filled),
        ] {
            if count > 0 {
                self.note(what, count);
            }
        }
    }

    #[cold]
    fn fragment(&mut self, frame: &Frame, packet: &Packet, bin: usize) {
        let own = &mut self.bins[bin];
        let owner = Datagram::of(packet).and_then(|datagram| own.fragments.owner(&datagram));
        let is_there = |at, number| own.live.is_taken(at) && own.live[at].first_number == number;
        match owner.filter(|&(at, _, first_number)| is_there(at, first_number)) {
            Some((at, sender_is_low, _)) => {
                own.live[at].fragment(packet.ip_bytes, frame.original_bytes, sender_is_low);
                self.note("ip_fragment_joined", 1);
            }
            None => self.skip("ip_fragment_without_transport_header"),
        }
    }

    /// Hands the remaining rows to `sink`, in the order of their first packets, and closes the books; `origin` is
    /// what the capture said besides its packets.
    pub fn finish(mut self, origin: Origin, sink: &mut impl FnMut(Row)) -> Summary {
        for (_, bin, at) in in_order(std::slice::from_ref(&self)) {
            self.close(vec![at], bin, None, sink);
        }
        self.into_summary(origin)
    }

    fn into_summary(self, origin: Origin) -> Summary {
        let mut summary = self.summary;
        if self.first_ns <= self.last_ns {
            (summary.first_ns, summary.last_ns) = (Some(self.first_ns), Some(self.last_ns));
        }
        summary.interfaces = origin.interfaces;
        summary.dropped_packets = origin.dropped_packets;
        for (reason, count) in origin.skipped {
            *summary.skipped.entry(reason).or_default() += count;
        }
        for (protocol, count) in (0u8..=255).zip(self.others).filter(|(_, count)| *count > 0) {
            *summary.skipped.entry(protocol::name(protocol).unwrap_or("other_ip_protocol")).or_default() += count;
        }
        summary.protocols = (0u8..=255).zip(self.protocols).filter(|(_, count)| *count > 0).collect();
        summary
    }
}

/// Engine, bin and place of all connections, in the order of their first packets.
fn in_order(engines: &[Engine]) -> Vec<(usize, usize, u32)> {
    let mut order: Vec<(u64, (usize, usize, u32))> = Vec::new();
    for (number, engine) in engines.iter().enumerate() {
        for (bin, own) in engine.bins.iter().enumerate() {
            order.extend(own.live.iter().map(|(at, live)| (live.first_number, (number, bin, at))));
        }
    }
    // Each bin's are mostly in order already, which this sort makes use of.
    order.sort();
    order.into_iter().map(|(_, at)| at).collect()
}

/// The engine with all rows that it has given.
pub struct Rows {
    engine: Engine,
    rows: Vec<Row>,
}

impl Rows {
    pub fn new(options: Options) -> Self {
        Rows { engine: Engine::new(options), rows: Vec::new() }
    }
}

impl Reader for Rows {
    type Tables = (Vec<Row>, Summary);

    #[inline]
    fn frame(&mut self, frame: &Frame) {
        let rows = &mut self.rows;
        self.engine.frame(frame, &mut |row| rows.push(row));
    }

    fn finish(mut self, ended: Ended) -> Self::Tables {
        let rows = &mut self.rows;
        let summary = self.engine.finish(ended.origin, &mut |row| rows.push(row));
        (self.rows, summary)
    }
}
