//! Frames in, one row per connection out as Zeek's conn.log has it, and verdicts on checksums.
//!
//! What each column means and where it differs from Zeek's: `docs/connections.md`. Rules are from Zeek's documentation,
//! from the logs that its project publishes, and from what its source does; no code is.
//!
//! Memory is bounded: by [`Options::max_connections`], and within a connection by [`content::MAX_PARTS`] and
//! [`history::MAX_LETTERS`]. Rows leave by [`Log::take`].

mod connection;
pub mod content;
pub mod history;
mod outcome;
mod roles;
mod side;
mod state;
mod summary;
pub mod timers;
mod transition;
mod uid;

pub use connection::Row;
pub use history::History;
pub use outcome::ConnectionState;
pub use side::Counts;
pub use state::State;
pub use summary::{Checksums, Summary, Verdicts};

use super::Reader;
use crate::capture::{self, Ended, Frame, Origin};
use crate::flow::table::Table;
pub use crate::flow::Protocol;
use crate::flow::{fragments, widen, Key};
use crate::wire::checksum::{self, Verdict, ICMP, ICMPV6};
use crate::wire::tcp::{self, Segment, SYN};
use crate::wire::{self, Dissected, Packet, Transport};
use connection::{Live, ONE_WAY};

/// With so many connections held as are allowed, this share of them goes: those that have been silent longest.
const EVICTED_SHARE: usize = 16;
/// Connections that have ended are looked for this often at most, in packet time.
const SWEEP_NS: i64 = 2_000_000_000;

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Options {
    /// Look into tunnels (docs/captures.md): the innermost packet counts.
    pub tunnels: bool,
    /// Packets with a bad checksum count like others (Zeek's `-C`).
    pub ignore_checksums: bool,
    /// Checksums that the capturing host left to its NIC are bad, as they are for Zeek.
    pub unfinished_are_bad: bool,
    /// With this many connections at once, the sixteenth that has been silent longest is logged as it is, and forgotten.
    pub max_connections: usize,
}

impl Default for Options {
    fn default() -> Self {
        Options { tunnels: false, ignore_checksums: false, unfinished_are_bad: false, max_connections: 1_000_000 }
    }
}

#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Capture {
    /// As they ended, and what ended together in the order of first packets.
    pub rows: Vec<Row>,
    pub summary: Summary,
}

/// Takes frames one by one.
pub struct Log {
    options: Options,
    table: Table<Live>,
    fragments: fragments::Owners,
    rows: Vec<Row>,
    now_ns: i64,
    swept_ns: i64,
    packets_since_sweep: usize,
    /// Connections that [`Log::close`] has still to end, the next one last.
    rest: Vec<u32>,
    summary: Summary,
}

impl Log {
    pub fn new(options: Options) -> Self {
        Log {
            table: Table::default(),
            options,
            fragments: fragments::Owners::default(),
            rows: Vec::new(),
            now_ns: i64::MIN,
            swept_ns: i64::MIN,
            packets_since_sweep: 0,
            rest: Vec::new(),
            summary: Summary::default(),
        }
    }

    #[inline]
    pub fn frame(&mut self, frame: &Frame) {
        let summary = &mut self.summary;
        summary.packets += 1;
        summary.bytes += u64::from(frame.original_bytes);
        summary.captured_bytes += frame.data.len() as u64;
        widen(&mut summary.first_ns, &mut summary.last_ns, frame.time_ns);
        if let Some(time) = frame.time_ns.filter(|time| *time > self.now_ns) {
            self.now_ns = time;
            self.sweep(time);
        }
        match &wire::dissect(frame) {
            Dissected::Ip(outer) if self.options.tunnels => {
                let packet = wire::innermost(frame.data, *outer);
                self.packet(frame, &packet, packet.transport_offset != outer.transport_offset);
            }
            Dissected::Ip(packet) => self.packet(frame, packet, false),
            Dissected::NonIp { kind } => self.not_ip(kind),
            Dissected::Unusable { reason } => self.skip(reason),
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

    #[inline]
    fn packet(&mut self, frame: &Frame, packet: &Packet, is_tunnelled: bool) {
        let unfinished_are_bad = self.options.unfinished_are_bad;
        let discredits = |verdict| verdict == Verdict::Bad || (unfinished_are_bad && verdict == Verdict::Partial);
        let checksums = &mut self.summary.checksums;
        let mut is_bad_header = false;
        if let Some(verdict) = checksum::ip(packet, frame.data) {
            checksums.ipv4.count(verdict);
            is_bad_header = discredits(verdict);
        }
        let verdict = checksum::transport(packet, frame.data);
        match packet.protocol {
            tcp::PROTOCOL => checksums.tcp.count(verdict),
            wire::udp::PROTOCOL => checksums.udp.count(verdict),
            ICMP => checksums.icmp.count(verdict),
            ICMPV6 => checksums.icmpv6.count(verdict),
            _ => {}
        }
        if packet.longer_than_frame {
            *self.summary.notes.entry("ip_length_above_frame_length").or_default() += 1;
        }
        if is_bad_header && !self.options.ignore_checksums {
            // Whose it is cannot be known.
            self.summary.ignored_packets += 1;
            return;
        }
        let is_bad = discredits(verdict) && !self.options.ignore_checksums;
        self.summary.ignored_packets += u64::from(is_bad);
        let packet = Taken { frame, packet, is_tunnelled, is_bad };
        if !matches!(packet.packet.transport, Transport::Tcp(_)) {
            if let Some(kind) = wire::tunnel_not_entered(frame.data, packet.packet) {
                *self.summary.notes.entry(kind).or_default() += 1;
            }
        }
        match &packet.packet.transport {
            Transport::Tcp(segment) => self.segment(&packet, segment),
            Transport::Udp(datagram) => {
                let ports = (datagram.source_port, datagram.destination_port);
                self.message(&packet, Protocol::Udp, ports, datagram.payload_bytes);
            }
            Transport::Other if matches!(packet.packet.protocol, ICMP | ICMPV6) => self.icmp(&packet),
            Transport::Fragment => self.fragment(&packet),
            Transport::Other => self.skip("no_transport_with_connections"),
            Transport::Unusable { reason } => self.skip(reason),
        }
    }

    #[inline]
    fn segment(&mut self, taken: &Taken, segment: &Segment) {
        let Taken { frame, packet, .. } = taken;
        let ports = (segment.source_port, segment.destination_port);
        let (mut latest, sender_is_low) = self.find(packet, ports);
        let mut ordinal = 0;
        if segment.has(SYN) && !taken.is_bad {
            if let Some(at) = latest.filter(|&at| self.table[at].is_over_for(segment)) {
                ordinal = self.end(at, frame.time_ns);
                latest = None;
            }
        }
        let at = latest
            .unwrap_or_else(|| self.begin(taken, Protocol::Tcp, ports, roles::segment_is_from_responder(segment)));
        self.remember_fragment(packet, at, sender_is_low);
        let live = &mut self.table[at];
        if ordinal > 0 {
            live.ordinal = ordinal;
        }
        if taken.is_bad {
            live.damaged(sender_is_low);
        } else {
            let is_whole = packet.transport_captured == packet.transport_bytes;
            let lengths = [packet.ip_bytes, frame.original_bytes];
            live.segment(frame.time_ns, sender_is_low, segment, lengths, is_whole);
        }
    }

    fn icmp(&mut self, taken: &Taken) {
        const HEADER_BYTES: u32 = 8;
        let packet = taken.packet;
        let &[kind, code, ..] = packet.transport_data(taken.frame.data) else {
            return self.skip("icmp_header_cut_off");
        };
        let (source, destination, is_one_way) = roles::icmp_ports(packet.protocol, kind, code);
        let ports = (if is_one_way { source | ONE_WAY } else { source }, destination);
        self.message(taken, Protocol::Icmp, ports, packet.transport_bytes.saturating_sub(HEADER_BYTES));
    }

    #[inline]
    fn message(&mut self, taken: &Taken, protocol: Protocol, ports: (u16, u16), payload_bytes: u32) {
        let Taken { frame, packet, .. } = taken;
        let (latest, sender_is_low) = self.find(packet, ports);
        let at = latest.unwrap_or_else(|| {
            let is_answer = protocol == Protocol::Udp && roles::datagram_is_from_responder(ports.0, ports.1);
            self.begin(taken, protocol, ports, is_answer)
        });
        self.remember_fragment(packet, at, sender_is_low);
        let live = &mut self.table[at];
        if taken.is_bad {
            live.damaged(sender_is_low);
        } else {
            live.message(frame.time_ns, sender_is_low, [packet.ip_bytes, frame.original_bytes, payload_bytes]);
        }
    }

    /// A later fragment belongs to the connection of its first one, if that was seen not long before.
    #[cold]
    fn fragment(&mut self, taken: &Taken) {
        let Taken { frame, packet, .. } = taken;
        let owner = fragments::Datagram::of(packet).and_then(|datagram| self.fragments.owner(&datagram));
        match owner.filter(|&(at, _)| self.table.is_taken(at) && self.table[at].key.joins(packet.addresses)) {
            Some((at, sender_is_low)) => {
                self.table[at].fragment(frame.time_ns, sender_is_low, frame.original_bytes, packet.transport_bytes);
                *self.summary.notes.entry("ip_fragment_joined").or_default() += 1;
            }
            None => self.skip("ip_fragment_without_transport_header"),
        }
    }

    #[inline]
    fn remember_fragment(&mut self, packet: &Packet, at: u32, sender_is_low: bool) {
        if packet.fragment_id.is_some() {
            if let Some(datagram) = fragments::Datagram::of(packet) {
                self.fragments.remember(datagram, (at, sender_is_low));
            }
        }
    }

    /// The connection that a packet belongs to, if that has not ended by now, and whether its sender is the key's low end.
    #[inline]
    fn find(&mut self, packet: &Packet, ports: (u16, u16)) -> (Option<u32>, bool) {
        let (latest, sender_is_low) = self.table.find(packet, ports.0, ports.1);
        match latest {
            Some(at) if self.table[at].end_ns() <= self.now_ns => {
                self.end(at, None);
                (None, sender_is_low)
            }
            latest => (latest, sender_is_low),
        }
    }

    /// Gives the ordinal of a connection between the same endpoints that starts now.
    fn end(&mut self, at: u32, time_ns: Option<i64>) -> u32 {
        let Some(live) = self.table.remove(at) else { return 0 };
        let row = live.finish();
        let ordinal = if row.start_ns == time_ns { row.ordinal.saturating_add(1) } else { 0 };
        self.rows.push(row);
        ordinal
    }

    fn begin(&mut self, taken: &Taken, protocol: Protocol, ports: (u16, u16), is_answer: bool) -> u32 {
        let (key, sender_is_low) = Key::of_packet(taken.packet, ports.0, ports.1);
        let is_flipped = is_answer && !roles::is_to_many(&taken.packet.addresses);
        let number = self.summary.connections;
        self.summary.connections += 1;
        let mut live = Live::new(key, protocol, number, sender_is_low != is_flipped, taken.frame.time_ns);
        live.is_tunnelled = taken.is_tunnelled;
        live.is_dns = protocol == Protocol::Udp && timers::is_dns(if is_flipped { ports.0 } else { ports.1 });
        if is_flipped {
            live.was_flipped();
        }
        if self.table.len() >= self.options.max_connections.max(1) {
            self.evict();
        }
        self.table.insert(live, None)
    }

    /// Ends the connections that have been silent longest.
    #[cold]
    fn evict(&mut self) {
        let places = self.table.silent((self.table.len() / EVICTED_SHARE).max(1), |live| Some(live.last_ns()));
        self.summary.evicted_connections += places.len() as u64;
        self.table.remove_all(places, |live| self.rows.push(live.finish()));
    }

    /// Ends what is over by `now`. Only memory and the rows' order depend on when this is done.
    #[inline]
    fn sweep(&mut self, now: i64) {
        self.packets_since_sweep += 1;
        // Not for so few packets that looking would cost more than they do.
        if now.saturating_sub(self.swept_ns) >= SWEEP_NS && self.packets_since_sweep > self.table.len() / 4 {
            self.sweep_now(now);
        }
    }

    #[cold]
    fn sweep_now(&mut self, now: i64) {
        self.swept_ns = now;
        self.packets_since_sweep = 0;
        self.table.remove_all(self.table.chosen(|live| live.end_ns() <= now), |live| self.rows.push(live.finish()));
    }

    /// Rows that [`Log::take`] would give.
    #[inline]
    pub fn waiting(&self) -> usize {
        self.rows.len()
    }

    /// Rows that have come to be since the last call.
    pub fn take(&mut self) -> Vec<Row> {
        std::mem::take(&mut self.rows)
    }

    /// Ends so many of the connections that are left, after the last frame; false when none is. What [`Log::finish`]
    /// would give at once can so be taken in parts.
    pub fn close(&mut self, at_most: usize) -> bool {
        if self.rest.is_empty() {
            self.rest = self.table.in_order();
            self.rest.reverse();
        }
        for _ in 0..at_most {
            let Some(at) = self.rest.pop() else { break };
            self.end(at, None);
        }
        !self.rest.is_empty()
    }

    /// Closes the books; `origin` is what the file said besides its packets. Rows that were taken before are not
    /// among these.
    pub fn finish(mut self, origin: Origin) -> Capture {
        self.close(usize::MAX);
        let mut summary = self.summary;
        summary.interfaces = origin.interfaces;
        summary.dropped_packets = origin.dropped_packets;
        capture::add(&mut summary.skipped, origin.skipped);
        Capture { rows: self.rows, summary }
    }
}

/// A packet and what is known of it.
struct Taken<'a> {
    frame: &'a Frame<'a>,
    packet: &'a Packet,
    is_tunnelled: bool,
    /// Its checksum says so, and is to be heeded.
    is_bad: bool,
}

impl Reader for Log {
    type Tables = Capture;

    #[inline]
    fn frame(&mut self, frame: &Frame) {
        Log::frame(self, frame);
    }

    fn finish(self, ended: Ended) -> Capture {
        Log::finish(self, ended.origin)
    }
}
