//! Stalls of TCP connections: time in which something is unacknowledged and nothing goes on, for longer than [`TIMEOUTS`]
//! retransmission timeouts. Frames in, a row for each stall.
//!
//! A connection goes on with new data (or a SYN or FIN) or a new acknowledgment of any, either way, and where a closed receive
//! window opens. Retransmissions, duplicate acknowledgments, keep-alives and window probes are no progress. So a stall
//! lasts from the last progress to the next. Nothing stalls where all is acknowledged: a server that takes long over an answer,
//! or a connection that is kept alive, is idle. The exception is a closed window into which the sender probes: what waits
//! has not been sent.
//!
//! Two timeouts: the first retransmission comes after one, and is not answered for as long again. A segment that is lost once
//! is no stall, and neither is an acknowledgment that is delayed as long as Linux may (200 ms).
//!
//! Selective acknowledgments are left aside. After a RST nothing is looked for. What the capture lost looks unacknowledged, if
//! it was an acknowledgment and nothing came after it. One pass; memory: `flow::tracking`'s connections of 0.3 KiB, and the rows.
//!
//! | file | what |
//! |---|---|
//! | `timeout` | the retransmission timeout |
//! | `side` | one direction |

mod side;
mod timeout;

use std::net::IpAddr;

pub use timeout::{INITIAL_NS, LEAST_NS, MOST_NS};

use super::Reader;
use crate::capture::{self, Counts, Ended, Frame};
use crate::flow::tracking::{Followed, Tracking};
use crate::wire::tcp::{Segment, RST};
use crate::wire::{self, Dissected, Transport};
use side::{Content, Side, Since};

/// A stall is longer than so many retransmission timeouts.
pub const TIMEOUTS: i64 = 2;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Reason {
    Unanswered,
    /// The receive window of the end that was to acknowledge was 0.
    ZeroWindow,
}

/// What a stall ended by.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum EndedBy {
    Acknowledgment,
    Data,
    /// A closed window opened.
    Window,
    Reset,
    /// The capture ended in it, or its connection had to be forgotten for room.
    CaptureEnd,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Stall {
    pub originator_address: IpAddr,
    pub originator_port: u16,
    pub responder_address: IpAddr,
    pub responder_port: u16,
    /// Number in the capture, from 1, of the connection's first packet.
    pub first_packet: u64,
    pub start_ns: i64,
    pub duration_ns: i64,
    /// The end that waits. Where both do, the one that sent again more often, then the one with more unacknowledged.
    pub originator_waits: bool,
    /// Of the one that waits: sequence numbers, so that a SYN and a FIN count as 1.
    pub unacknowledged_bytes: u64,
    /// Segments as captured, of the one that waits.
    pub retransmissions: u64,
    pub probes: u64,
    /// Packets of the other end.
    pub returned_packets: u64,
    pub timeout_ns: i64,
    pub reason: Reason,
    pub ended_by: EndedBy,
}

#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Stalls {
    /// In the order of their starts.
    pub rows: Vec<Stall>,
    pub packets: u64,
    /// Connections finished before their end was seen, to bound memory.
    pub connections_finished_early: u64,
    /// Packets and records that are of no connection, by reason.
    pub skipped: Counts,
}

/// A connection while packets come; sides are indexed by whether they are the key's low end.
#[derive(Debug, Default)]
struct Live {
    sides: [Side; 2],
    /// When it last went on.
    progress_ns: Option<i64>,
    is_reset: bool,
}

impl Live {
    fn timeout_ns(&self) -> i64 {
        let [high, low] = &self.sides;
        timeout::timeout_ns([&high.round_trips, &low.round_trips], high.is_opening() || low.is_opening())
    }

    /// The side that waits, by its index.
    fn waiting(&self) -> Option<usize> {
        let waits = |at: &usize| {
            let (own, peer) = (&self.sides[*at], &self.sides[1 - at]);
            own.unacknowledged_bytes() > 0 || peer.since.was_closed && own.since.probes > 0
        };
        let weight = |at: &usize| (self.sides[*at].since.retransmissions, self.sides[*at].unacknowledged_bytes());
        [0, 1].into_iter().filter(waits).max_by_key(weight)
    }

    fn goes_on(&mut self, time_ns: i64) {
        self.progress_ns = Some(self.progress_ns.map_or(time_ns, |last| last.max(time_ns)));
        for side in &mut self.sides {
            side.since = Since { was_closed: side.is_closed(), ..Since::default() };
        }
    }
}

/// Takes frames one by one.
#[derive(Default)]
pub struct Analyzer {
    tunnels: bool,
    connections: Tracking<Live>,
    last_ns: Option<i64>,
    done: Stalls,
}

impl Analyzer {
    /// With `tunnels`, the innermost packet counts (docs/captures.md).
    pub fn new(tunnels: bool) -> Self {
        Analyzer { tunnels, ..Analyzer::default() }
    }

    #[inline]
    fn segment(&mut self, time_ns: i64, packet: &wire::Packet, segment: &Segment) {
        let (done, last_ns) = (&mut self.done, self.last_ns);
        let (followed, sender_is_low) =
            self.connections.segment(done.packets, packet, segment, |followed| done.take(followed, last_ns));
        if followed.state.is_reset {
            return;
        }
        let own = usize::from(sender_is_low);
        let live = &mut followed.state;
        let peer_is_closed = live.sides[1 - own].is_closed();
        let content = live.sides[own].content(segment, peer_is_closed);
        let acknowledged = live.sides[1 - own].newly_acknowledged(segment);
        let opens = live.sides[own].window(segment);
        live.sides[own].since.packets += 1;
        let ended_by = match (segment.has(RST), acknowledged, content) {
            (true, ..) => EndedBy::Reset,
            (_, Some(_), _) => EndedBy::Acknowledgment,
            (_, None, Content::New(_)) => EndedBy::Data,
            _ if opens => EndedBy::Window,
            _ => {
                let side = &mut live.sides[own];
                match content {
                    Content::Repeated => {
                        side.since.retransmissions += 1;
                        side.repeated();
                    }
                    Content::Probe => side.since.probes += 1,
                    Content::New(_) | Content::Nothing => {}
                }
                return;
            }
        };
        // The packet that ends a stall is not of it.
        live.sides[own].since.packets -= 1;
        let timeout_ns = live.timeout_ns();
        done.rows.extend(stall(followed, time_ns, timeout_ns, ended_by));
        let live = &mut followed.state;
        live.is_reset = ended_by == EndedBy::Reset;
        if let Some(position) = acknowledged {
            live.sides[1 - own].acknowledged(time_ns, position, TIMEOUTS * timeout_ns);
        }
        match content {
            Content::New(end) => live.sides[own].sent(time_ns, end),
            Content::Repeated => live.sides[own].repeated(),
            Content::Probe | Content::Nothing => {}
        }
        live.goes_on(time_ns);
    }
}

fn stall(followed: &Followed<Live>, until_ns: i64, timeout_ns: i64, ended_by: EndedBy) -> Option<Stall> {
    let live = &followed.state;
    let start_ns = live.progress_ns?;
    let duration_ns = until_ns.saturating_sub(start_ns);
    if duration_ns <= TIMEOUTS * timeout_ns {
        return None;
    }
    let at = live.waiting()?;
    let (side, peer) = (&live.sides[at], &live.sides[1 - at]);
    let (low, high) = followed.key.ends();
    let (originator, responder) = if followed.originator_is_low { (low, high) } else { (high, low) };
    Some(Stall {
        originator_address: originator.0,
        originator_port: originator.1,
        responder_address: responder.0,
        responder_port: responder.1,
        first_packet: followed.first_packet,
        start_ns,
        duration_ns,
        originator_waits: (at == 1) == followed.originator_is_low,
        unacknowledged_bytes: side.unacknowledged_bytes(),
        retransmissions: side.since.retransmissions,
        probes: side.since.probes,
        returned_packets: peer.since.packets,
        timeout_ns,
        reason: if peer.since.was_closed { Reason::ZeroWindow } else { Reason::Unanswered },
        ended_by,
    })
}

impl Stalls {
    /// What a connection still waits for.
    fn take(&mut self, followed: &mut Followed<Live>, last_ns: Option<i64>) {
        if let Some(last_ns) = last_ns.filter(|_| !followed.state.is_reset) {
            let timeout_ns = followed.state.timeout_ns();
            self.rows.extend(stall(followed, last_ns, timeout_ns, EndedBy::CaptureEnd));
        }
    }
}

impl Reader for Analyzer {
    type Tables = Stalls;

    #[inline]
    fn frame(&mut self, frame: &Frame) {
        self.done.packets += 1;
        let dissected = wire::dissect_within(frame, self.tunnels);
        let reason = match (&dissected, frame.time_ns) {
            (Dissected::Ip(_), None) => "packet_without_time",
            (Dissected::Ip(packet), Some(time_ns)) => {
                self.last_ns = Some(self.last_ns.map_or(time_ns, |last| last.max(time_ns)));
                match &packet.transport {
                    Transport::Tcp(segment) => return self.segment(time_ns, packet, segment),
                    Transport::Udp(_) | Transport::Other => "not_tcp",
                    Transport::Fragment => "ip_fragment_without_transport_header",
                    Transport::Unusable { reason } => reason,
                }
            }
            (Dissected::NonIp { kind }, _) => kind,
            (Dissected::Unusable { reason }, _) => reason,
        };
        *self.done.skipped.entry(reason).or_default() += 1;
    }

    fn finish(self, ended: Ended) -> Stalls {
        let (mut done, last_ns) = (self.done, self.last_ns);
        done.connections_finished_early = self.connections.finished_early;
        self.connections.finish(|followed| done.take(followed, last_ns));
        done.rows.sort_by_key(|row| (row.start_ns, row.first_packet));
        capture::add(&mut done.skipped, ended.origin.skipped);
        done
    }
}
