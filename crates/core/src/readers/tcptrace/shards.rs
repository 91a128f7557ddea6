//! The connections of a capture in [`BINS`], each with limits of its own, and these in [`SHARDS`], each with an engine of
//! its own, so that several threads can count, or several machines.
//!
//! A connection is in the same bin on every machine and however many threads there are: a bin's rows depend on the
//! capture alone.

use super::bin::{BINS, SHARDS};
use super::{in_order, Engine, Options, Row};
use crate::capture::{add, Frame, Origin};
use crate::flow::fragments::{Datagram, Owners};
use crate::flow::{widen, Summary};
use crate::wire::{usual, Addresses, Dissected, Packet, Transport};

impl Options {
    /// The engines of a capture's shards, which share what may be held.
    pub fn engines(&self) -> [Engine; SHARDS] {
        std::array::from_fn(|_| Engine::of_bins(BINS, self.clone()))
    }
}

/// Says which bin a frame belongs to.
#[derive(Default)]
pub struct Router {
    /// The bin of the datagrams whose first fragment has passed.
    fragments: Owners<u8>,
}

impl Router {
    /// Return the bin of the next frame. What belongs to no connection, or cannot be read, may be in any bin.
    #[inline(always)]
    pub fn bin_of(&mut self, frame: &Frame, options: &Options) -> u8 {
        match usual::ends(frame) {
            Some((addresses, source_port, destination_port)) => bin(addresses, source_port, destination_port),
            None => self.of_other(frame, options),
        }
    }

    /// Return the bin of a usual frame.
    #[inline(always)]
    pub fn bin_of_usual(packet: &Packet) -> u8 {
        match &packet.transport {
            Transport::Tcp(segment) => bin(packet.addresses, segment.source_port, segment.destination_port),
            _ => 0,
        }
    }

    #[cold]
    fn of_other(&mut self, frame: &Frame, options: &Options) -> u8 {
        match options.dissect(frame) {
            Dissected::Ip(packet) => self.of_packet(&packet),
            _ => 0,
        }
    }

    fn of_packet(&mut self, packet: &Packet) -> u8 {
        match &packet.transport {
            _ if packet.fragment_id.is_some() => self.of_fragment(packet),
            _ => Router::bin_of_usual(packet),
        }
    }

    #[cold]
    fn of_fragment(&mut self, packet: &Packet) -> u8 {
        let datagram = Datagram::of(packet);
        match &packet.transport {
            Transport::Tcp(segment) => {
                let bin = bin(packet.addresses, segment.source_port, segment.destination_port);
                if let Some(datagram) = datagram {
                    self.fragments.remember(datagram, bin);
                }
                bin
            }
            Transport::Fragment => datagram.and_then(|datagram| self.fragments.owner(&datagram)).unwrap_or(0),
            _ => 0,
        }
    }
}

/// The bin of a connection, whichever end has sent.
#[inline]
fn bin(addresses: Addresses, source_port: u16, destination_port: u16) -> u8 {
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
    (both.wrapping_mul(ODD) >> (64 - BINS.ilog2())) as u8
}

/// Hands the remaining rows of all shards to `sink`, in the order of their connections' first packets, and closes the books.
/// `last_ns` is the time of the capture's last frame.
pub fn merged(
    mut engines: [Engine; SHARDS],
    last_ns: Option<i64>,
    origin: Origin,
    sink: &mut impl FnMut(Row),
) -> Summary {
    engines.iter_mut().flat_map(|engine| &mut engine.bins).for_each(|bin| bin.end_ns = last_ns.unwrap_or(0));
    for (shard, bin, at) in in_order(&engines) {
        engines[shard].close(vec![at], bin, None, sink);
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
