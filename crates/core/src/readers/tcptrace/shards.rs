//! The connections of a capture in [`SHARDS`] parts, each with an engine of its own, so that several threads can count.
//!
//! A connection is in the same part on every machine and however many threads there are: a part's rows depend on the
//! capture alone.

use super::{Engine, Options, Row, MAX_PLACES};
use crate::capture::{add, Frame, Origin};
use crate::flow::fragments::{Datagram, Owners};
use crate::flow::{widen, Summary};
use crate::wire::{usual, Addresses, Dissected, Packet, Transport};

/// With four, one core and two take 3 % longer: more is written at the same time than a core's cache holds.
pub const SHARDS: usize = 2;

impl Options {
    /// The engines of a capture's parts, which share what may be held.
    pub fn engines(&self) -> [Engine; SHARDS] {
        std::array::from_fn(|_| {
            let max_connections = self.max_connections.div_ceil(SHARDS);
            let mut engine = Engine::new(Options { max_connections, ..self.clone() });
            engine.max_places = MAX_PLACES / SHARDS;
            engine
        })
    }
}

/// Says which part a frame belongs to.
#[derive(Default)]
pub struct Router {
    /// The part of the datagrams whose first fragment has passed.
    fragments: Owners<u8>,
}

impl Router {
    /// The part of the next frame; what belongs to no connection is in the first.
    #[inline]
    pub fn shard(&mut self, dissected: &Dissected) -> usize {
        match dissected {
            Dissected::Ip(packet) => usize::from(self.of_packet(packet)),
            _ => 0,
        }
    }

    /// As [`Router::shard`], of a frame that is not dissected. What cannot be read may be in any part.
    #[inline]
    pub fn shard_of(&mut self, frame: &Frame, options: &Options) -> usize {
        match usual::ends(frame) {
            Some((addresses, source_port, destination_port)) => {
                usize::from(shard(addresses, source_port, destination_port))
            }
            None => self.shard(&options.dissect(frame)),
        }
    }

    #[inline]
    fn of_packet(&mut self, packet: &Packet) -> u8 {
        match &packet.transport {
            _ if packet.fragment_id.is_some() => self.of_fragment(packet),
            Transport::Tcp(segment) => shard(packet.addresses, segment.source_port, segment.destination_port),
            _ => 0,
        }
    }

    #[cold]
    fn of_fragment(&mut self, packet: &Packet) -> u8 {
        let datagram = Datagram::of(packet);
        match &packet.transport {
            Transport::Tcp(segment) => {
                let shard = shard(packet.addresses, segment.source_port, segment.destination_port);
                if let Some(datagram) = datagram {
                    self.fragments.remember(datagram, shard);
                }
                shard
            }
            Transport::Fragment => datagram.and_then(|datagram| self.fragments.owner(&datagram)).unwrap_or(0),
            _ => 0,
        }
    }
}

/// The part of a connection, whichever end has sent.
#[inline]
fn shard(addresses: Addresses, source_port: u16, destination_port: u16) -> u8 {
    // The sum is the same both ways, and its product's highest bits depend on all of its own.
    const ODD: u64 = 0x9e37_79b9_7f4a_7c15;
    let ends = match addresses {
        Addresses::V4 { source, destination } => u64::from(source) + u64::from(destination),
        Addresses::V6 { .. } => {
            let (source, destination) = addresses.numbers();
            let sum = source.wrapping_add(destination);
            ((sum >> 64) as u64).wrapping_mul(ODD) ^ sum as u64
        }
    };
    let both = (ends << 17).wrapping_add(u64::from(source_port) + u64::from(destination_port));
    (both.wrapping_mul(ODD) >> (64 - SHARDS.ilog2())) as u8
}

/// Hands the remaining rows of all parts to `sink`, in the order of their connections' first packets, and closes the books.
/// `last_ns` is the time of the capture's last frame.
pub fn merged(
    mut engines: [Engine; SHARDS],
    last_ns: Option<i64>,
    origin: Origin,
    sink: &mut impl FnMut(Row),
) -> Summary {
    let mut order: Vec<(u64, u8, u32)> = Vec::new();
    for (shard, engine) in (0u8..).zip(&mut engines) {
        engine.end_ns = last_ns.unwrap_or(0);
        order.extend(engine.live.in_order().into_iter().map(|at| (engine.live[at].first_number, shard, at)));
    }
    order.sort();
    for (_, shard, at) in order {
        engines[usize::from(shard)].close(vec![at], sink);
    }
    let mut whole = Summary::default();
    for summary in engines.into_iter().map(|engine| engine.into_summary(Origin::default())) {
        whole.packets += summary.packets;
        whole.bytes += summary.bytes;
        whole.captured_bytes += summary.captured_bytes;
        widen(&mut whole.first_ns, &mut whole.last_ns, summary.first_ns);
        widen(&mut whole.first_ns, &mut whole.last_ns, summary.last_ns);
        for (protocol, count) in summary.protocols {
            *whole.protocols.entry(protocol).or_default() += count;
        }
        add(&mut whole.not_ip, summary.not_ip);
        add(&mut whole.skipped, summary.skipped);
        add(&mut whole.notes, summary.notes);
    }
    whole.interfaces = origin.interfaces;
    whole.dropped_packets = origin.dropped_packets;
    add(&mut whole.skipped, origin.skipped);
    whole
}
