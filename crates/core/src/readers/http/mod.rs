//! HTTP/1.0 and 1.1 over plain TCP: frames in, a row for each exchange (a request and its response) out.
//!
//! Heads that are captured fully frame the messages (RFC 9112; `message`). They are read from each direction's payload in
//! order (`reassembly`), so repeated and reordered segments make no exchange. A snap length may cut heads: then a client's
//! segment that begins with a request line begins an exchange. Where no payload is captured at all, the client's first data
//! after the server's does. Heads tell pipelined requests apart; where heads are cut, segments that begin with a request line
//! do. Where no payload is captured, requests that follow each other without an answer between them count as one, and a part
//! of a response that comes after the next request counts as the answer to that.
//!
//! A connection is HTTP if the client's first captured payload begins with a known method, or if none of that is captured and
//! the server's port is one of [`PORTS`]. Other connections have exchanges only if the server's port is one of
//! [`Options::turns`]: then ends take turns, and what the client sends after the server did begins a request. Every packet of a connection is in one of its exchanges: the handshake in the
//! first, the end in the last.
//!
//! Memory: 32,768 connections (see `flow::tracking`), what waits (64 MiB, see `reassembly`), and the rows.

mod exchange;
mod mark;
mod message;
mod records;
mod sample;
mod steps;
mod waits;

use std::net::IpAddr;

pub use exchange::{Delimited, Exchange, Way};
pub use mark::Mark;
pub use steps::{Steps, MAX_PACKETS};
pub use waits::{Kind, Wait, DELAYED_NS, TIMEOUT_NS};

use super::Reader;
use crate::capture::{self, Counts, Ended, Frame, Origin};
use crate::flow::reassembly::{Chunk, Stream, MAX_WAITING_BYTES};
use crate::flow::tracking::{Followed, Tracking};
use crate::flow::Key;
use crate::wire::tcp::{Segment, ACK, FIN, SYN};
use crate::wire::{self, Dissected, Packet, Transport};
use exchange::{Exchanges, MAX_BEFORE};
use records::{begins_handshake, Records};
use sample::Bounds;
use steps::hash_of;

/// A connection on these ports without captured payload is taken for HTTP: http, http-alt (IANA) and usual ones.
pub const PORTS: [u16; 5] = [80, 591, 8000, 8008, 8080];

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Options {
    /// IP packets longer than this stand for several on the wire.
    pub mtu: u32,
    /// Look into tunnels (docs/captures.md): the innermost packet counts.
    pub tunnels: bool,
    /// Also take each exchange apart into its steps.
    pub steps: bool,
    /// Ports of servers whose requests and answers take turns, whatever they speak.
    pub turns: Vec<u16>,
}

impl Default for Options {
    fn default() -> Self {
        Options { mtu: 1500, tunnels: false, steps: false, turns: Vec::new() }
    }
}

/// A connection with exchanges.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Connection {
    pub client_address: IpAddr,
    pub client_port: u16,
    pub server_address: IpAddr,
    pub server_port: u16,
    /// Number in the capture, from 1, of its first packet.
    pub first_packet: u64,
}

#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Summary {
    pub packets: u64,
    /// TCP connections that are not HTTP, or of which no request was captured.
    pub other_connections: u64,
    /// Connections finished before their end was seen, to bound memory.
    pub connections_finished_early: u64,
    /// As the capture file says; `None` where it does not.
    pub dropped_packets: Option<u64>,
    /// Packets and records that are in no row, by reason.
    pub skipped: Counts,
}

#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Requests {
    /// In the order of their first packets.
    pub connections: Vec<Connection>,
    /// By connection, then index.
    pub exchanges: Vec<Exchange>,
    pub summary: Summary,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
enum Speaks {
    #[default]
    NotKnown,
    Http {
        client_is_low: bool,
    },
    Tls {
        client_is_low: bool,
    },
    /// Another protocol, whose ends take turns.
    Turns {
        client_is_low: bool,
    },
    Other,
}

impl Speaks {
    /// Whether the client is the key's low end, of a connection with exchanges.
    fn client_is_low(self) -> Option<bool> {
        match self {
            Speaks::Http { client_is_low } | Speaks::Tls { client_is_low } | Speaks::Turns { client_is_low } => {
                Some(client_is_low)
            }
            Speaks::NotKnown | Speaks::Other => None,
        }
    }
}

/// A connection while packets come; arrays are indexed by whether the sender is the key's low end.
#[derive(Debug, Default)]
struct Live {
    speaks: Speaks,
    streams: [Stream; 2],
    exchanges: Exchanges,
    /// Of TLS, of both directions.
    records: Option<Box<[Records; 2]>>,
    /// Place in the result's connections, once it has an exchange.
    place: Option<u32>,
    has_syn: bool,
    /// Packets from before it was known which end is the client.
    before: [Way; 2],
    /// The same, in their order, with the sender in place of the client: whether it is the key's low end.
    marks_before: Vec<Mark>,
    has_syn_of: [bool; 2],
    has_fin_of: [bool; 2],
}

/// Takes frames one by one.
pub struct Analyzer {
    options: Options,
    connections: Tracking<Live>,
    done: Requests,
    /// Bytes that may still wait in all streams.
    spare: usize,
    bounds: Bounds,
}

impl Analyzer {
    pub fn new(options: Options) -> Self {
        Analyzer {
            options,
            connections: Tracking::default(),
            done: Requests::default(),
            spare: MAX_WAITING_BYTES,
            bounds: Bounds::default(),
        }
    }

    #[inline]
    pub fn frame(&mut self, frame: &Frame) {
        self.done.summary.packets += 1;
        let dissected = wire::dissect_within(frame, self.options.tunnels);
        let reason = match &dissected {
            Dissected::Ip(packet) => match &packet.transport {
                Transport::Tcp(segment) => return self.segment(frame, packet, segment),
                Transport::Udp(_) | Transport::Other => "not_tcp",
                Transport::Fragment => "ip_fragment_without_transport_header",
                Transport::Unusable { reason } => reason,
            },
            Dissected::NonIp { kind } => kind,
            Dissected::Unusable { reason } => reason,
        };
        *self.done.summary.skipped.entry(reason).or_default() += 1;
    }

    #[inline]
    fn segment(&mut self, frame: &Frame, packet: &Packet, segment: &Segment) {
        let Analyzer { options, connections, done, spare, bounds } = self;
        let (followed, sender_is_low) =
            connections.segment(done.summary.packets, packet, segment, |followed| done.take(followed, spare, bounds));
        if followed.state.speaks == Speaks::Other {
            return;
        }
        let way = way(packet, segment, options.mtu, followed, sender_is_low);
        let (key, first_packet) = (followed.key, followed.first_packet);
        let ends = Ends {
            has_syn: followed.state.has_syn,
            originator_is_low: followed.originator_is_low,
            sender_is_low,
            ports: (segment.source_port, segment.destination_port),
        };
        let live = &mut followed.state;
        let mark = options.steps.then(|| live.mark(frame, segment, sender_is_low, way.wire_packets));
        if let (Some(mark), Some(client_is_low)) = (&mark, live.speaks.client_is_low()) {
            if let Some(position) = mark.acknowledges {
                live.exchanges.acknowledged(client_is_low == sender_is_low, position, mark.time_ns);
            }
        }
        let Live { streams, speaks, records, exchanges, place, has_syn, .. } = &mut *live;
        let stream = &mut streams[usize::from(sender_is_low)];
        if segment.has(SYN) {
            *has_syn = true;
            stream.begin(segment.sequence.wrapping_add(1));
        } else if segment.payload_bytes > 0 {
            let captured = packet.transport_data(frame.data);
            let captured = captured.get(usize::from(segment.header_bytes)..).unwrap_or_default();
            stream.segment(segment.sequence, segment.payload_bytes, captured, frame.time_ns, spare, |chunk| {
                if *speaks == Speaks::NotKnown {
                    *speaks = ends.speak(&chunk, options.steps, &options.turns);
                    exchanges.is_encrypted = matches!(*speaks, Speaks::Tls { .. });
                }
                let Some(client_is_low) = speaks.client_is_low() else { return };
                if options.steps && client_is_low == sender_is_low {
                    exchanges.sample(|| hash_of_ends(&key, client_is_low), bounds.below());
                }
                hand_on(*speaks, records, exchanges, &chunk, sender_is_low, |row| {
                    done.add(row, place, &key, client_is_low, first_packet, bounds);
                });
            });
        }
        bounds.begun(live.exchanges.lists_begun());
        match live.speaks {
            Speaks::Http { client_is_low } | Speaks::Tls { client_is_low } | Speaks::Turns { client_is_low } => {
                for is_low in [false, true] {
                    let before = std::mem::take(&mut live.before[usize::from(is_low)]);
                    if before.packets > 0 {
                        live.exchanges.before(is_low == client_is_low, &before);
                    }
                }
                for before in std::mem::take(&mut live.marks_before) {
                    let from_low = before.from_client;
                    live.exchanges.mark_before(&Mark { from_client: from_low == client_is_low, ..before });
                }
                if live.has_syn || !live.exchanges.is_empty() {
                    let from_client = client_is_low == sender_is_low;
                    let mark = mark.map(|mark| Mark { from_client, ..mark });
                    live.exchanges.packet(from_client, &way, mark.as_ref());
                }
            }
            Speaks::NotKnown if live.has_syn => {
                live.before[usize::from(sender_is_low)].add(&way);
                if let Some(mark) = mark.filter(|_| live.marks_before.len() < MAX_BEFORE) {
                    live.marks_before.push(mark);
                }
            }
            Speaks::NotKnown | Speaks::Other => {}
        }
    }

    /// Closes the books; `origin` is what the file said besides its packets.
    pub fn finish(mut self, origin: Origin) -> Requests {
        let mut done = self.done;
        done.summary.connections_finished_early = self.connections.finished_early;
        self.connections.finish(|followed| done.take(followed, &mut self.spare, &mut self.bounds));
        self.bounds.trim_lists(done.exchanges.iter_mut());
        done.sort();
        done.summary.dropped_packets = origin.dropped_packets;
        capture::add(&mut done.summary.skipped, origin.skipped);
        done
    }
}

fn way(packet: &Packet, segment: &Segment, mtu: u32, followed: &Followed<Live>, sender_is_low: bool) -> Way {
    Way {
        packets: 1,
        wire_packets: followed.wire_packets(packet, segment, sender_is_low, mtu).count,
        bytes: u64::from(packet.ip_bytes),
        payload_bytes: u64::from(segment.payload_bytes),
    }
}

impl Live {
    /// What a segment is among those of its connection; the sender stands in place of the client.
    fn mark(&mut self, frame: &Frame, segment: &Segment, sender_is_low: bool, wire_packets: u64) -> Mark {
        let own = usize::from(sender_is_low);
        let (stream, other) = (&self.streams[own], &self.streams[1 - own]);
        let position = match segment.has(SYN) {
            true => 0,
            false => stream.position(segment.sequence).unwrap_or_default(),
        };
        let is_new = match segment.payload_bytes {
            _ if segment.has(SYN) => !std::mem::replace(&mut self.has_syn_of[own], true),
            0 => !segment.has(FIN) || !self.has_fin_of[own],
            bytes => !stream.is_begun() || !stream.has(position.saturating_add(i64::from(bytes))),
        };
        self.has_fin_of[own] |= segment.has(FIN);
        Mark {
            time_ns: frame.time_ns,
            from_client: sender_is_low,
            flags: segment.flags,
            is_repeat: !is_new,
            payload_bytes: segment.payload_bytes,
            wire_packets: u32::try_from(wire_packets).unwrap_or(u32::MAX),
            position,
            acknowledges: if segment.has(ACK) { other.position(segment.acknowledgment) } else { None },
        }
    }
}

fn hash_of_ends(key: &Key, client_is_low: bool) -> u64 {
    let (low, high) = key.ends();
    if client_is_low {
        hash_of(low, high)
    } else {
        hash_of(high, low)
    }
}

/// What is known of a connection when its first payload comes.
#[derive(Debug, Clone, Copy)]
struct Ends {
    has_syn: bool,
    originator_is_low: bool,
    sender_is_low: bool,
    /// Of the sender and of the other end.
    ports: (u16, u16),
}

impl Ends {
    /// `with_tls`: encrypted connections have exchanges too; `turns`: ports as in [`Options::turns`].
    fn speak(&self, first: &Chunk, with_tls: bool, turns: &[u16]) -> Speaks {
        match self.speaks_http(first, with_tls) {
            Speaks::Other if turns.contains(&self.ports.1) && self.sender_is_low == self.originator_is_low => {
                Speaks::Turns { client_is_low: self.sender_is_low }
            }
            Speaks::Other if turns.contains(&self.ports.0) && self.sender_is_low != self.originator_is_low => {
                Speaks::Turns { client_is_low: !self.sender_is_low }
            }
            speaks => speaks,
        }
    }

    fn speaks_http(&self, first: &Chunk, with_tls: bool) -> Speaks {
        if with_tls
            && begins_handshake(first.captured)
            && (self.sender_is_low == self.originator_is_low || !self.has_syn)
        {
            return Speaks::Tls { client_is_low: self.sender_is_low };
        }
        let client_is_sender = Speaks::Http { client_is_low: self.sender_is_low };
        let client_is_other = Speaks::Http { client_is_low: !self.sender_is_low };
        let is_from_originator = self.sender_is_low == self.originator_is_low;
        if first.captured.is_empty() {
            let (sender_serves, other_serves) = (PORTS.contains(&self.ports.0), PORTS.contains(&self.ports.1));
            return match (sender_serves, other_serves) {
                (false, true) if is_from_originator || !self.has_syn => client_is_sender,
                (true, false) if !self.has_syn => client_is_other,
                _ => Speaks::Other,
            };
        }
        if message::begins_request(first.captured) {
            return client_is_sender;
        }
        match self.has_syn {
            true => Speaks::Other,
            false if message::begins_response(first.captured) => client_is_other,
            // In the middle of something.
            false => Speaks::NotKnown,
        }
    }
}

/// Hands bytes of one end to the exchanges; of TLS, its application data. `done` takes exchanges that nothing can be added to.
#[inline]
fn hand_on(
    speaks: Speaks,
    records: &mut Option<Box<[Records; 2]>>,
    exchanges: &mut Exchanges,
    chunk: &Chunk,
    from_low: bool,
    mut done: impl FnMut(Exchange),
) {
    let Some(client_is_low) = speaks.client_is_low() else { return };
    let from_client = client_is_low == from_low;
    let mut give = |chunk: &Chunk| match from_client {
        true => exchanges.request_bytes(chunk, &mut done),
        false => exchanges.response_bytes(chunk),
    };
    match speaks {
        Speaks::Tls { .. } => {
            let records = records.get_or_insert_with(Box::default);
            records[usize::from(from_low)].data(chunk, from_client, |data| give(data));
        }
        Speaks::Turns { .. } => {
            let missing = chunk.missing + chunk.captured.len() as u64;
            give(&Chunk { captured: &[], missing, ..*chunk });
        }
        _ => give(chunk),
    }
}

impl Requests {
    fn add(
        &mut self,
        mut row: Exchange,
        place: &mut Option<u32>,
        key: &Key,
        client_is_low: bool,
        first_packet: u64,
        bounds: &mut Bounds,
    ) {
        bounds.keep(&mut row, &mut self.exchanges);
        row.connection = *place.get_or_insert_with(|| {
            let (low, high) = key.ends();
            let (client, server) = if client_is_low { (low, high) } else { (high, low) };
            self.connections.push(Connection {
                client_address: client.0,
                client_port: client.1,
                server_address: server.0,
                server_port: server.1,
                first_packet,
            });
            self.connections.len() as u32 - 1
        });
        self.exchanges.push(row);
    }

    fn take(&mut self, followed: &mut Followed<Live>, spare: &mut usize, bounds: &mut Bounds) {
        let (key, first_packet) = (followed.key, followed.first_packet);
        let fin = [followed.has_fin(false), followed.has_fin(true)];
        let Live { speaks, streams, records, exchanges, place, .. } = &mut followed.state;
        let speaks = *speaks;
        for (is_low, stream) in [false, true].into_iter().zip(streams) {
            stream.give_up(spare, &mut |chunk| {
                let Some(client_is_low) = speaks.client_is_low() else { return };
                hand_on(speaks, records, exchanges, &chunk, is_low, |row| {
                    self.add(row, place, &key, client_is_low, first_packet, bounds);
                });
            });
        }
        match speaks {
            Speaks::Http { client_is_low } | Speaks::Tls { client_is_low } | Speaks::Turns { client_is_low }
                if !exchanges.is_empty() =>
            {
                if fin[usize::from(!client_is_low)] {
                    exchanges.server_closed();
                }
                std::mem::take(exchanges).finish(|row| self.add(row, place, &key, client_is_low, first_packet, bounds));
            }
            _ => self.summary.other_connections += 1,
        }
    }

    /// Connections in the order of their first packets, and their exchanges by index.
    fn sort(&mut self) {
        let mut order: Vec<u32> = (0..self.connections.len() as u32).collect();
        order.sort_by_key(|&place| self.connections[place as usize].first_packet);
        let mut rank = vec![0u32; order.len()];
        for (new, &old) in (0u32..).zip(&order) {
            rank[old as usize] = new;
        }
        self.connections.sort_by_key(|row| row.first_packet);
        for row in &mut self.exchanges {
            row.connection = rank[row.connection as usize];
        }
        self.exchanges.sort_by_key(|row| (row.connection, row.index));
    }
}

impl Reader for Analyzer {
    type Tables = Requests;

    #[inline]
    fn frame(&mut self, frame: &Frame) {
        Analyzer::frame(self, frame);
    }

    fn finish(self, ended: Ended) -> Requests {
        Analyzer::finish(self, ended.origin)
    }
}
