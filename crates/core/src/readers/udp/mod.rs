//! UDP flows, one row a direction: sizes and times, and for iperf3's streams loss, reordering and jitter from the
//! numbers and times that it writes into each payload.
//!
//! iperf3 is recognised by content, not by port: at least two headers that may follow each other (see `header`), and at
//! most one datagram in a hundred that holds something else. The capture should be the receiver's; at the sender
//! nothing is lost yet. Differences from what iperf3's receiver prints:
//! - lost and out of order: `iperf3_lost` and `iperf3_out_of_order` count as it does. Datagrams that reached the host but
//!   not the socket (its buffer was full) are lost for iperf3 only. Datagrams that came after its
//!   end are lost for neither.
//! - jitter: the capture's times are the kernel's, iperf3's are taken when it has read the datagram, so its own
//!   scheduling is in its jitter and not in this one. Same formula.

mod header;
mod jitter;
mod sequence;
mod stream;

use std::io::Read;
use std::net::IpAddr;

pub use header::{Headers, Width};
pub use jitter::JitterEstimate;
pub use sequence::{SequenceCounts, MAX_GAPS};
pub use stream::{Carried, HeaderStatistics, Unread};

use super::Reader;
use crate::capture::{self, Counts, Ended, Frame, Stop};
use crate::error::ReadError;
use crate::flow::fragments::{Datagram as FragmentKey, Owners};
use crate::flow::table::{Connection, Table};
use crate::flow::Key;
use crate::wire::udp::{self, Datagram};
use crate::wire::{self, Dissected, Packet, Transport};
use stream::Stream;

/// Flows that get a row (about 400 bytes each). Packets of further ones are counted as skipped.
pub const MAX_FLOWS: usize = 1 << 20;
/// Directions whose headers are followed at a time (up to 250 KB each, 1 KB where nothing is lost or late). Further ones
/// get sizes and times only.
pub const MAX_STREAMS: usize = 4096;

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Options {
    pub headers: Headers,
    /// A packet after a longer silence starts a new flow.
    pub timeout_ns: i64,
    /// Look into tunnels (docs/captures.md): the innermost packet counts.
    pub tunnels: bool,
}

impl Default for Options {
    fn default() -> Self {
        Options { headers: Headers::Recognised, timeout_ns: 60_000_000_000, tunnels: false }
    }
}

/// One direction of a flow.
#[derive(Debug, Clone, PartialEq)]
pub struct Row {
    /// The same for both directions of a flow; from 0.
    pub flow: u64,
    pub source: (IpAddr, u16),
    pub destination: (IpAddr, u16),
    pub carried: Carried,
    pub statistics: Result<HeaderStatistics, Unread>,
}

#[derive(Debug, Clone, Default)]
pub struct Streams {
    /// By flow, in the order of their first packets; the direction that began comes first.
    pub rows: Vec<Row>,
    /// Packets of the capture, and those of them that are in a row.
    pub packets: u64,
    pub udp_packets: u64,
    /// Packets and records that are in no row, by reason.
    pub skipped: Counts,
    /// Packets that are in a row, but odd.
    pub notes: Counts,
    /// Why reading ended before the end of the file.
    pub stopped: Option<Stop>,
}

/// Reads a capture. A file that is no capture is an error; one that is damaged further on gives the rows before that.
pub fn streams(reader: impl Read, options: &Options) -> Result<Streams, ReadError> {
    super::read_until_stop(Engine::new(options.clone()), reader)
}

struct Flow {
    key: Key,
    /// From 0, in the order of first packets.
    number: u64,
    first_is_low: bool,
    last_ns: Option<i64>,
    /// iperf3's greeting was seen: its numbers begin at 1.
    greeted: bool,
    /// Indexed by whether the sender is the key's low end.
    sides: [Stream; 2],
}

impl Flow {
    /// Whether a datagram begins another flow between the same ports: after a silence, or with another test's greeting.
    #[inline]
    fn is_over_for(&self, time_ns: Option<i64>, timeout_ns: i64, is_greeting: bool) -> bool {
        let is_silent = match (time_ns, self.last_ns) {
            (Some(time), Some(last)) => time.saturating_sub(last) > timeout_ns,
            _ => false,
        };
        is_silent || is_greeting && self.sides.iter().any(Stream::has_data)
    }
}

impl Connection for Flow {
    #[inline]
    fn key(&self) -> &Key {
        &self.key
    }

    fn number(&self) -> u64 {
        self.number
    }
}

/// Takes frames one by one.
pub struct Engine {
    options: Options,
    flows: Table<Flow>,
    fragments: Owners,
    /// Directions whose headers are followed.
    followed: usize,
    streams: Streams,
}

impl Engine {
    pub fn new(options: Options) -> Self {
        let flows = Table::default();
        Engine { options, flows, fragments: Owners::default(), followed: 0, streams: Streams::default() }
    }

    pub fn frame(&mut self, frame: &Frame) {
        self.streams.packets += 1;
        let dissected = wire::dissect_within(frame, self.options.tunnels);
        let outcome = match &dissected {
            Dissected::Ip(packet) if packet.protocol == udp::PROTOCOL => match &packet.transport {
                Transport::Udp(datagram) => self.datagram(frame, packet, datagram),
                Transport::Unusable { reason } => Err(*reason),
                _ => self.fragment(frame, packet),
            },
            Dissected::Ip(_) => Err("not_udp"),
            Dissected::NonIp { kind } => Err(*kind),
            Dissected::Unusable { reason } => Err(*reason),
        };
        match outcome {
            Ok(()) => self.streams.udp_packets += 1,
            Err(reason) => *self.streams.skipped.entry(reason).or_default() += 1,
        }
    }

    fn datagram(&mut self, frame: &Frame, packet: &Packet, datagram: &Datagram) -> Result<(), &'static str> {
        let ports = (datagram.source_port, datagram.destination_port);
        let (latest, is_low) = self.flows.find(packet, ports.0, ports.1);
        let captured = packet.transport_data(frame.data).get(udp::HEADER_BYTES as usize..).unwrap_or_default();
        let is_greeting = header::is_greeting(captured, datagram.payload_bytes);
        let timeout_ns = self.options.timeout_ns;
        let at = match latest {
            Some(at) if !self.flows[at].is_over_for(frame.time_ns, timeout_ns, is_greeting) => at,
            before => {
                let (key, _) = Key::of_packet(packet, ports.0, ports.1);
                self.open(key, is_low, before).ok_or("flow_table_full")?
            }
        };
        if let (Some(_), Some(fragment)) = (packet.fragment_id, FragmentKey::of(packet)) {
            self.fragments.remember(fragment, (at, is_low));
            *self.streams.notes.entry("datagram_in_fragments").or_default() += 1;
        }
        let flow = &mut self.flows[at];
        flow.last_ns = flow.last_ns.max(frame.time_ns);
        flow.greeted |= is_greeting;
        let from = flow.greeted.then_some(1);
        let side = &mut flow.sides[usize::from(is_low)];
        side.packet(frame.time_ns, packet.ip_bytes, datagram.payload_bytes);
        let (before, has_room) = (side.is_followed(), self.followed < MAX_STREAMS);
        side.datagram(captured, datagram.payload_bytes, frame.time_ns, self.options.headers, from, has_room);
        self.followed = (self.followed + usize::from(side.is_followed())).saturating_sub(usize::from(before));
        Ok(())
    }

    /// A later fragment, for the flow of its first one.
    fn fragment(&mut self, frame: &Frame, packet: &Packet) -> Result<(), &'static str> {
        let owner = FragmentKey::of(packet).and_then(|key| self.fragments.owner(&key));
        let (at, is_low) = owner.ok_or("ip_fragment_without_transport_header")?;
        *self.streams.notes.entry("ip_fragment_joined").or_default() += 1;
        let flow = &mut self.flows[at];
        flow.last_ns = flow.last_ns.max(frame.time_ns);
        flow.sides[usize::from(is_low)].packet(frame.time_ns, packet.ip_bytes, packet.transport_bytes);
        Ok(())
    }

    fn open(&mut self, key: Key, first_is_low: bool, before: Option<u32>) -> Option<u32> {
        let number = self.flows.len();
        if number >= MAX_FLOWS {
            return None;
        }
        let flow =
            Flow { key, number: number as u64, first_is_low, last_ns: None, greeted: false, sides: Default::default() };
        Some(self.flows.insert(flow, before))
    }

    pub fn finish(self, ended: Ended) -> Streams {
        let mut streams = self.streams;
        capture::add(&mut streams.skipped, ended.origin.skipped);
        streams.stopped = ended.stop;
        for (_, flow) in self.flows.iter() {
            let (low, high) = flow.key.ends();
            for is_low in [flow.first_is_low, !flow.first_is_low] {
                let side = &flow.sides[usize::from(is_low)];
                if side.carried.packets == 0 {
                    continue;
                }
                let (source, destination) = if is_low { (low, high) } else { (high, low) };
                let statistics = side.statistics(self.options.headers);
                streams.rows.push(Row {
                    flow: flow.number,
                    source,
                    destination,
                    carried: side.carried.clone(),
                    statistics,
                });
            }
        }
        streams
    }
}

impl Reader for Engine {
    type Tables = Streams;

    #[inline]
    fn frame(&mut self, frame: &Frame) {
        Engine::frame(self, frame);
    }

    fn finish(self, ended: Ended) -> Streams {
        Engine::finish(self, ended)
    }
}
