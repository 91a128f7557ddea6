//! What a capture tells somebody who only watches: of each host what its SYNs give away (as p0f reads them), and blocks of
//! packets as numbers (`windows`).
//!
//! | file | what |
//! |---|---|
//! | `signature` | a SYN in p0f's notation |
//! | `host` | one host's features over all its connections |
//! | `windows` | blocks of 4 to 16384 packets |
//! | `tls` | the hellos of TLS as JA3, JA3S and JA4 |
//! | `slope`, `moments` | the rate of timestamps; moments of delays |
//!
//! TCP alone, one pass. Memory: 32,768 connections (see `flow::tracking`), [`MAX_HOSTS`] hosts of 8 KiB at most, what waits of
//! hellos (64 MiB, see `flow::reassembly`), and the blocks.

mod host;
mod moments;
mod signature;
mod slope;
pub mod tls;
mod windows;

use std::collections::HashMap;

pub use host::{Feature, Host, Role};
pub use signature::Signature;
pub use windows::{Window, BLOCKS, LENGTHS};

use super::Reader;
use crate::capture::{self, Counts, Ended, Frame, LinkType};
use crate::flow::reassembly::MAX_WAITING_BYTES;
use crate::flow::tracking::{Followed, Tracking};
use crate::wire::tcp::{captured_options, timestamp, Segment, ACK, FIN, PSH, RST, SYN};
use crate::wire::{self, Dissected, Packet, Transport};
use host::Profile;
use slope::Line;
use tls::{First, CLIENT_HELLO, SERVER_HELLO};
use windows::{Blocks, Seen};

/// Hosts that are told apart, each role for itself. SYNs of further ones are counted as skipped.
pub const MAX_HOSTS: usize = 4096;
/// Where a SYN was not captured, a packet is full from this on: Ethernet's MTU.
const FULL_IP_BYTES: u32 = 1500;

#[derive(Debug, Clone, Default, PartialEq)]
pub struct Observed {
    /// By role; those with the most SYNs first.
    pub hosts: Vec<Host>,
    /// By direction (to the server first), length and block.
    pub windows: Vec<Window>,
    /// SYNs that say nothing, by reason.
    pub skipped: Counts,
}

#[derive(Debug, Default)]
struct Side {
    max_segment_bytes: Option<u16>,
    /// Whether its SYN was seen, with the scale that it offered.
    scale: Option<Option<u8>>,
    last_id: Option<u16>,
    /// After the highest number sent.
    end: Option<u32>,
    line: Line,
    timestamps: u64,
    hello: First,
}

/// A connection while packets come; sides are indexed by whether they are the key's low end.
#[derive(Debug, Default)]
struct Live {
    syn_ns: Option<i64>,
    is_answered: bool,
    /// Whether the low end sent the last packet, and when.
    last: Option<(bool, i64)>,
    sides: [Side; 2],
}

type Hosts = HashMap<(Role, u128, bool), Profile, foldhash::fast::RandomState>;

/// Takes frames one by one.
pub struct Observer {
    /// Look into tunnels (docs/captures.md): the innermost packet counts.
    tunnels: bool,
    packets: u64,
    connections: Tracking<Live>,
    hosts: Hosts,
    /// Bytes of hellos that may still wait.
    spare: usize,
    /// To the client, to the server.
    blocks: [Blocks; 2],
    windows: Vec<Window>,
    skipped: Counts,
}

impl Default for Observer {
    fn default() -> Self {
        Observer {
            tunnels: false,
            packets: 0,
            connections: Tracking::default(),
            hosts: Hosts::default(),
            spare: MAX_WAITING_BYTES,
            blocks: Default::default(),
            windows: Vec::new(),
            skipped: Counts::default(),
        }
    }
}

impl Observer {
    /// With `tunnels`, the innermost packet counts (docs/captures.md).
    pub fn new(tunnels: bool) -> Self {
        Observer { tunnels, ..Observer::default() }
    }

    #[inline]
    fn segment(&mut self, frame: &Frame, packet: &Packet, segment: &Segment) {
        let Observer { hosts, spare, .. } = self;
        let (followed, sender_is_low) =
            self.connections.segment(self.packets, packet, segment, |followed| ends_of(followed, hosts, spare));
        let from_originator = sender_is_low == followed.originator_is_low;
        let connection = followed.first_packet;
        let live = &mut followed.state;
        let (own, peer) = (usize::from(sender_is_low), usize::from(!sender_is_low));
        // Who answers has a signature of its own, and where both open at once, nobody answers.
        let is_originator = if segment.has(SYN) { !segment.has(ACK) } else { from_originator };
        let role = if is_originator { Role::Originator } else { Role::Responder };
        let name = (role, packet.addresses.numbers().0, packet.addresses.is_v6());
        if signature::opens(segment) {
            let scale = match signature::read(frame.data, packet, segment) {
                Ok(read) if hosts.contains_key(&name) || hosts.len() < MAX_HOSTS => {
                    let asked = segment.has(ACK).then_some(live.sides[peer].max_segment_bytes).flatten();
                    hosts.entry(name).or_default().syn(&read, asked, frame.time_ns, source_mac(frame));
                    Some(read.signature.window_scale)
                }
                Ok(read) => {
                    *self.skipped.entry("too_many_hosts").or_default() += 1;
                    Some(read.signature.window_scale)
                }
                Err(reason) => {
                    *self.skipped.entry(reason).or_default() += 1;
                    None
                }
            };
            live.sides[own].scale = scale;
            live.sides[own].max_segment_bytes = segment.max_segment_bytes;
            answer(live, segment, frame.time_ns, hosts.get_mut(&name));
        }
        let side = &mut live.sides[own];
        let kind = hello_of(from_originator);
        if let Some(ended) = side.hello.segment(kind, frame, packet, segment, spare) {
            if let Some(profile) = hosts.get_mut(&name) {
                profile.hello(kind, &ended);
            }
        }
        if let (Some(id), Some(profile)) = (packet.ip_id.filter(|_| !segment.has(SYN)), hosts.get_mut(&name)) {
            profile.identifications.add(side.last_id.replace(id), id);
        }
        let ticks = timestamp(captured_options(packet.transport_data(frame.data), segment));
        let last_end = side.follow(segment);
        let Some(time_ns) = frame.time_ns else { return };
        // A reset has the timestamp of what it answers.
        if let Some(ticks) = ticks.filter(|_| !segment.has(RST)) {
            side.line.add(time_ns, ticks);
            side.timestamps += 1;
        }
        let turn = live.last.replace((sender_is_low, time_ns)).filter(|(was_low, _)| *was_low != sender_is_low);
        let payload_bytes = segment.payload_bytes;
        let seen = Seen {
            time_ns,
            connection,
            ip_bytes: packet.ip_bytes,
            is_full: live.is_full(own, packet, segment),
            is_pushed: segment.has(PSH),
            is_pure_ack: payload_bytes == 0 && segment.has(ACK) && segment.flags & (SYN | FIN | RST) == 0,
            is_retransmitted: payload_bytes > 0
                && last_end.is_some_and(|end| (segment.sequence.wrapping_sub(end) as i32) < 0),
            turn_ns: turn.map(|(_, last_ns)| time_ns.saturating_sub(last_ns).max(0)),
            window: live.window(own, segment),
            ip_id: packet.ip_id,
            timestamp: ticks.filter(|_| !segment.has(RST)),
        };
        self.blocks[usize::from(from_originator)].add(seen, from_originator, &mut self.windows);
    }
}

impl Side {
    /// Notes what was sent; gives the number after the highest before.
    #[inline]
    fn follow(&mut self, segment: &Segment) -> Option<u32> {
        let numbers = u32::from(segment.has(SYN)) + u32::from(segment.has(FIN));
        let end = segment.sequence.wrapping_add(segment.payload_bytes).wrapping_add(numbers);
        let before = self.end;
        match before {
            Some(last) if (end.wrapping_sub(last) as i32) <= 0 && !segment.has(SYN) => {}
            _ => self.end = Some(end),
        }
        before.filter(|_| !segment.has(SYN))
    }
}

impl Live {
    /// Whether a packet carries all that one may.
    #[inline]
    fn is_full(&self, own: usize, packet: &Packet, segment: &Segment) -> bool {
        let most = match [self.sides[own].max_segment_bytes, self.sides[1 - own].max_segment_bytes] {
            [Some(one), Some(other)] => Some(one.min(other)),
            [one, other] => one.or(other),
        };
        let options = u32::from(segment.header_bytes).saturating_sub(20);
        match most {
            _ if segment.payload_bytes == 0 => false,
            Some(most) => segment.payload_bytes + options >= u32::from(most),
            None => packet.ip_bytes >= FULL_IP_BYTES,
        }
    }

    /// RFC 7323: windows are scaled if both sides offered it, never in a SYN.
    #[inline]
    fn window(&self, own: usize, segment: &Segment) -> Option<u64> {
        let window = u64::from(segment.window);
        if segment.has(SYN) {
            return Some(window);
        }
        Some(match (self.sides[own].scale?, self.sides[1 - own].scale?) {
            (Some(scale), Some(_)) => window << scale.min(14),
            _ => window,
        })
    }
}

/// The time from a SYN to its answer, of a connection with one of each.
fn answer(live: &mut Live, segment: &Segment, time_ns: Option<i64>, responder: Option<&mut Profile>) {
    match (segment.has(ACK), live.syn_ns) {
        (false, None) => live.syn_ns = time_ns,
        // Sent again: which one is answered is not known.
        (false, Some(_)) => live.is_answered = true,
        (true, Some(asked_ns)) if !live.is_answered => {
            live.is_answered = true;
            if let (Some(time), Some(profile)) = (time_ns, responder) {
                profile.answer_s.add(time.saturating_sub(asked_ns).max(0) as f64 / 1e9);
            }
        }
        (true, _) => {}
    }
}

/// The TLS message that an end begins with.
fn hello_of(is_originator: bool) -> u8 {
    if is_originator {
        CLIENT_HELLO
    } else {
        SERVER_HELLO
    }
}

/// Hands what is known at a connection's end to its hosts: timestamps, and hellos that are not whole.
fn ends_of(followed: &mut Followed<Live>, hosts: &mut Hosts, spare: &mut usize) {
    let (low, high) = followed.key.ends();
    for (is_low, (address, _)) in [(true, low), (false, high)] {
        let is_originator = is_low == followed.originator_is_low;
        let role = if is_originator { Role::Originator } else { Role::Responder };
        let number = match address {
            std::net::IpAddr::V4(address) => u128::from(u32::from(address)),
            std::net::IpAddr::V6(address) => u128::from(address),
        };
        let side = &mut followed.state.sides[usize::from(is_low)];
        let kind = hello_of(is_originator);
        let ended = side.hello.end(kind, spare);
        if let Some(profile) = hosts.get_mut(&(role, number, address.is_ipv6())) {
            profile.timestamps(side.line.slope(), side.timestamps);
            if let Some(ended) = ended {
                profile.hello(kind, &ended);
            }
        }
    }
}

fn source_mac(frame: &Frame) -> Option<[u8; 6]> {
    (frame.link == LinkType::ETHERNET).then(|| frame.data.get(6..12)?.first_chunk().copied()).flatten()
}

impl Reader for Observer {
    type Tables = Observed;

    #[inline]
    fn frame(&mut self, frame: &Frame) {
        self.packets += 1;
        if let Dissected::Ip(packet) = wire::dissect_within(frame, self.tunnels) {
            if let Transport::Tcp(segment) = &packet.transport {
                self.segment(frame, &packet, segment);
            }
        }
    }

    fn finish(mut self, ended: Ended) -> Observed {
        let (hosts, spare) = (&mut self.hosts, &mut self.spare);
        self.connections.finish(|followed| ends_of(followed, hosts, spare));
        let finished = self
            .hosts
            .iter()
            .filter_map(|((role, number, is_v6), of)| of.finish(*role, wire::address(*number, *is_v6)));
        let mut hosts: Vec<Host> = finished.collect();
        hosts.sort_unstable_by_key(|host| (host.role, std::cmp::Reverse(host.syns), host.address));
        self.windows.sort_unstable_by_key(|window| (!window.client_to_server, window.packets, window.block));
        capture::add(&mut self.skipped, ended.origin.skipped);
        Observed { hosts, windows: self.windows, skipped: self.skipped }
    }
}
