//! Frames in, one row per connection and a summary out.
//!
//! TCP connections end by being replaced (see `connection`), UDP ones after an idle time. Tunnels are entered on
//! request. A fragment without a transport header counts as a packet of the connection of its first fragment, if
//! that was seen not long before (see `fragments`), and in the summary only otherwise.

mod connection;
mod direction;
pub(crate) mod fragments;
mod key;
pub(crate) mod ranges;

use std::collections::{BTreeMap, HashMap};
use std::io::Read;

pub use connection::{Connection, Protocol};
pub use direction::Counts as DirectionCounts;
pub use key::Key;

use crate::capture::{self, Counts, Frame, Origin};
use crate::error::{ReadError, Result};
use crate::wire::tcp::{Segment, ACK, SYN};
use crate::wire::udp::{self, Datagram};
use crate::wire::{self, Dissected, Packet, Transport};
use connection::Live;

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Options {
    /// IP packets longer than this stand for several on the wire.
    pub mtu: u32,
    /// A UDP packet after a longer silence starts a new row.
    pub udp_timeout_ns: i64,
    /// Look into IP-in-IP, GRE and VXLAN: the innermost packet counts.
    pub tunnels: bool,
}

impl Default for Options {
    fn default() -> Self {
        Options { mtu: 1500, udp_timeout_ns: 60_000_000_000, tunnels: false }
    }
}

/// A capture as a whole.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Summary {
    pub packets: u64,
    /// Frames' original lengths, and what of them the file holds.
    pub bytes: u64,
    pub captured_bytes: u64,
    pub first_ns: Option<i64>,
    pub last_ns: Option<i64>,
    /// IP packets by protocol number.
    pub protocols: BTreeMap<u8, u64>,
    pub non_ip_packets: u64,
    /// IP packets above the MTU.
    pub super_packets: u64,
    /// Packets on the wire that all frames stand for; one each where not super.
    pub wire_packets: u64,
    pub interfaces: u64,
    /// As the capture file says; `None` where it does not.
    pub dropped_packets: Option<u64>,
    /// Packets and records that are in no row, by reason.
    pub skipped: Counts,
    /// Packets that are in a row, but odd.
    pub notes: Counts,
}

#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Capture {
    /// In the order of their first packets.
    pub connections: Vec<Connection>,
    pub summary: Summary,
}

/// Reads a whole capture in memory.
pub fn connections(bytes: &[u8], options: &Options) -> Result<Capture> {
    let mut analyzer = Analyzer::new(options.clone());
    let origin = capture::read_slice(bytes, |frame| analyzer.frame(frame))?;
    Ok(analyzer.finish(origin))
}

/// Reads a capture from a stream (a decompressor, a pipe).
pub fn connections_from(reader: impl Read, options: &Options) -> std::result::Result<Capture, ReadError> {
    let mut analyzer = Analyzer::new(options.clone());
    let origin = capture::read_stream(reader, |frame| analyzer.frame(frame))?;
    Ok(analyzer.finish(origin))
}

/// Takes frames one by one.
pub struct Analyzer {
    options: Options,
    live: Vec<Live>,
    /// The latest connection of an endpoint pair.
    index: HashMap<Key, u32, foldhash::fast::RandomState>,
    /// What the last packet belonged to: the next one often does too.
    last: Option<(Key, u32)>,
    fragments: fragments::Owners,
    protocols: [u64; 256],
    summary: Summary,
}

impl Analyzer {
    pub fn new(options: Options) -> Self {
        Analyzer {
            options,
            live: Vec::new(),
            index: HashMap::default(),
            last: None,
            fragments: fragments::Owners::default(),
            protocols: [0; 256],
            summary: Summary::default(),
        }
    }

    #[inline]
    pub fn frame(&mut self, frame: &Frame) {
        let summary = &mut self.summary;
        summary.packets += 1;
        summary.bytes += u64::from(frame.original_bytes);
        summary.captured_bytes += frame.data.len() as u64;
        if let Some(time) = frame.time_ns {
            summary.first_ns = Some(summary.first_ns.map_or(time, |first| first.min(time)));
            summary.last_ns = Some(summary.last_ns.map_or(time, |last| last.max(time)));
        }
        let dissected = if self.options.tunnels { wire::dissect_inner(frame) } else { wire::dissect(frame) };
        let wire_packets = match dissected {
            Dissected::Ip(packet) => self.packet(frame, &packet),
            Dissected::NonIp => {
                summary.non_ip_packets += 1;
                1
            }
            Dissected::Unusable { reason } => {
                *summary.skipped.entry(reason).or_default() += 1;
                1
            }
        };
        self.summary.wire_packets += wire_packets;
    }

    /// Counts an IP packet and gives the number of packets on the wire it stands for.
    #[inline]
    fn packet(&mut self, frame: &Frame, packet: &Packet) -> u64 {
        self.protocols[usize::from(packet.protocol)] += 1;
        let is_super = packet.ip_bytes > self.options.mtu;
        self.summary.super_packets += u64::from(is_super);
        if packet.longer_than_frame {
            *self.summary.notes.entry("ip_length_above_frame_length").or_default() += 1;
        }
        match &packet.transport {
            Transport::Tcp(segment) => self.segment(frame, packet, segment, is_super),
            Transport::Udp(datagram) => self.datagram(frame, packet, datagram, is_super),
            other => {
                let reason = match other {
                    Transport::Unusable { reason } => Some(*reason),
                    Transport::Fragment if self.fragment(frame, packet, is_super) => None,
                    Transport::Fragment => Some("ip_fragment_without_transport_header"),
                    _ => None,
                };
                if let Some(reason) = reason {
                    *self.summary.skipped.entry(reason).or_default() += 1;
                }
                u64::from(packet.ip_bytes.div_ceil(self.options.mtu.max(1)).max(1))
            }
        }
    }

    #[inline]
    fn segment(&mut self, frame: &Frame, packet: &Packet, segment: &Segment, is_super: bool) -> u64 {
        let (key, sender_is_low) = Key::of_packet(packet, segment.source_port, segment.destination_port);
        let mut found = self.find(key);
        if segment.has(SYN) {
            found = found.filter(|&at| !self.live[at as usize].is_over_for(segment, sender_is_low));
        }
        let at = found.unwrap_or_else(|| {
            let from_sender = connection::sender_is_originator(segment);
            self.open(Live::new(key, Protocol::Tcp, sender_is_low == from_sender))
        });
        self.last = Some((key, at));
        if packet.fragment_id.is_some() {
            self.first_fragment(packet, at, sender_is_low);
        }
        let live = &mut self.live[at as usize];
        if segment.has(SYN) && !segment.has(ACK) {
            let (own, peer) = live.sides(sender_is_low);
            // Whoever's SYN came first began; a SYN captured late still says so.
            if peer.counts.syn_segments == 0 || own.syn_sequence.is_none() && peer.acknowledged.is_some() {
                live.originator_is_low = sender_is_low;
            }
        }
        live.at(frame.time_ns);
        let mtu = self.options.mtu;
        let (own, peer) = live.sides(sender_is_low);
        if segment.has(ACK) {
            peer.acknowledged_by_peer(segment.acknowledgment);
        }
        own.segment(segment, peer);
        let wire_packets = if is_super { own.tcp_wire_packets(segment, packet.ip_bytes, mtu, peer) } else { 1 };
        count(&mut own.counts, frame, packet, is_super, wire_packets);
        wire_packets
    }

    #[inline]
    fn datagram(&mut self, frame: &Frame, packet: &Packet, datagram: &Datagram, is_super: bool) -> u64 {
        let (key, sender_is_low) = Key::of_packet(packet, datagram.source_port, datagram.destination_port);
        let timeout_ns = self.options.udp_timeout_ns;
        let found = self.find(key).filter(|&at| match (frame.time_ns, self.live[at as usize].end_ns) {
            (Some(time), Some(end)) => time.saturating_sub(end) <= timeout_ns,
            _ => true,
        });
        let at = found.unwrap_or_else(|| self.open(Live::new(key, Protocol::Udp, sender_is_low)));
        self.last = Some((key, at));
        if packet.fragment_id.is_some() {
            self.first_fragment(packet, at, sender_is_low);
        }
        let wire_packets = if is_super {
            let headers_bytes = packet.ip_bytes - datagram.payload_bytes;
            let per_packet = self.options.mtu.saturating_sub(headers_bytes).max(1);
            u64::from(datagram.payload_bytes.div_ceil(per_packet).max(1))
        } else {
            1
        };
        let live = &mut self.live[at as usize];
        live.at(frame.time_ns);
        let (own, _) = live.sides(sender_is_low);
        own.counts.payload_bytes += u64::from(datagram.payload_bytes);
        count(&mut own.counts, frame, packet, is_super, wire_packets);
        wire_packets
    }

    /// Counts a later fragment for the connection of its first one; false where that is not known.
    #[cold]
    fn fragment(&mut self, frame: &Frame, packet: &Packet, is_super: bool) -> bool {
        let Some((at, sender_is_low)) = fragments::Datagram::of(packet).and_then(|key| self.fragments.owner(&key))
        else {
            return false;
        };
        *self.summary.notes.entry("ip_fragment_joined").or_default() += 1;
        let live = &mut self.live[at as usize];
        live.at(frame.time_ns);
        let (own, _) = live.sides(sender_is_low);
        if packet.protocol == udp::PROTOCOL {
            own.counts.payload_bytes += u64::from(packet.transport_bytes);
        }
        count(&mut own.counts, frame, packet, is_super, 1);
        true
    }

    #[cold]
    fn first_fragment(&mut self, packet: &Packet, at: u32, sender_is_low: bool) {
        if let Some(key) = fragments::Datagram::of(packet) {
            self.fragments.remember(key, (at, sender_is_low));
        }
    }

    #[inline]
    fn find(&self, key: Key) -> Option<u32> {
        match self.last {
            Some((last, at)) if last == key => Some(at),
            _ => self.index.get(&key).copied(),
        }
    }

    fn open(&mut self, live: Live) -> u32 {
        let at = self.live.len() as u32;
        self.index.insert(live.key, at);
        self.live.push(live);
        at
    }

    /// Closes the books; `origin` is what the file said besides its packets.
    pub fn finish(self, origin: Origin) -> Capture {
        let mut summary = self.summary;
        summary.interfaces = origin.interfaces;
        summary.dropped_packets = origin.dropped_packets;
        for (reason, count) in origin.skipped {
            *summary.skipped.entry(reason).or_default() += count;
        }
        summary.protocols = (0u8..=255).zip(self.protocols).filter(|(_, count)| *count > 0).collect();
        Capture { connections: self.live.into_iter().map(Live::finish).collect(), summary }
    }
}

#[inline]
fn count(counts: &mut DirectionCounts, frame: &Frame, packet: &Packet, is_super: bool, wire_packets: u64) {
    counts.packets += 1;
    counts.bytes += u64::from(packet.ip_bytes);
    counts.frame_bytes += u64::from(frame.original_bytes);
    counts.super_packets += u64::from(is_super);
    counts.wire_packets += wire_packets;
}
