//! One connection: who began it, when, what each side sent, and whether a segment still belongs to it.

use std::net::IpAddr;

use super::direction::{Counts, Direction};
use super::key::Key;
use crate::wire::tcp::{Segment, ACK, FIN, RST, SYN};

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Protocol {
    Tcp,
    Udp,
}

impl Protocol {
    pub fn name(self) -> &'static str {
        match self {
            Protocol::Tcp => "tcp",
            Protocol::Udp => "udp",
        }
    }
}

/// A finished row.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Connection {
    pub protocol: Protocol,
    pub originator_address: IpAddr,
    pub originator_port: u16,
    pub responder_address: IpAddr,
    pub responder_port: u16,
    /// Earliest and latest packet; `None` where the capture holds no times.
    pub start_ns: Option<i64>,
    pub end_ns: Option<i64>,
    /// SYN and FIN from both sides.
    pub complete: bool,
    /// A RST from either side.
    pub reset: bool,
    pub originator: Counts,
    pub responder: Counts,
}

impl Connection {
    pub fn duration_s(&self) -> Option<f64> {
        Some(self.end_ns?.saturating_sub(self.start_ns?) as f64 / 1e9)
    }
}

/// A connection while packets come.
#[derive(Debug)]
pub(super) struct Live {
    pub key: Key,
    pub protocol: Protocol,
    pub originator_is_low: bool,
    pub start_ns: Option<i64>,
    pub end_ns: Option<i64>,
    /// Indexed by whether the sender is the key's low end.
    pub sides: [Direction; 2],
}

impl Live {
    pub fn new(key: Key, protocol: Protocol, originator_is_low: bool) -> Self {
        Live { key, protocol, originator_is_low, start_ns: None, end_ns: None, sides: Default::default() }
    }

    #[inline]
    pub fn at(&mut self, time_ns: Option<i64>) {
        if let Some(time) = time_ns {
            self.start_ns = Some(self.start_ns.map_or(time, |start| start.min(time)));
            self.end_ns = Some(self.end_ns.map_or(time, |end| end.max(time)));
        }
    }

    /// The sender's side, and the other.
    #[inline]
    pub fn sides(&mut self, sender_is_low: bool) -> (&mut Direction, &mut Direction) {
        let [high, low] = &mut self.sides;
        if sender_is_low {
            (low, high)
        } else {
            (high, low)
        }
    }

    /// Whether a SYN opens another connection between the same endpoints.
    ///
    /// The same initial number is the same SYN again. Another one is a new connection: hosts reuse a port
    /// only once they hold the old connection for closed, whether the capture has its FINs or not.
    pub fn is_over_for(&mut self, segment: &Segment, sender_is_low: bool) -> bool {
        let is_over = self.is_over();
        let (own, peer) = self.sides(sender_is_low);
        match own.syn_sequence {
            Some(sequence) if sequence == segment.sequence => false,
            Some(_) => true,
            // A SYN captured after what it leads to.
            None if own.follows(segment.sequence) => false,
            None if segment.has(ACK) => match peer.syn_sequence {
                // Answers the SYN that this connection began with.
                Some(sequence) => segment.acknowledgment != sequence.wrapping_add(1) && is_over,
                None => is_over || own.has_data(),
            },
            // Answered already, so its SYN came before; or both ends open at once.
            None => {
                let answered = peer.syn_sequence.is_some()
                    && peer.acknowledged.is_some_and(|number| number == segment.sequence.wrapping_add(1));
                let simultaneous =
                    peer.syn_sequence.is_some() && peer.acknowledged.is_none() && own.counts.packets == 0;
                !answered && !simultaneous
            }
        }
    }

    /// A FIN or RST has been seen.
    fn is_over(&self) -> bool {
        self.sides.iter().any(|side| side.counts.fin_segments + side.counts.rst_segments > 0)
    }

    pub fn finish(self) -> Connection {
        let (low, high) = self.key.ends();
        let [high_side, low_side] = self.sides;
        let (originator, responder, originator_counts, responder_counts) = if self.originator_is_low {
            (low, high, low_side.counts, high_side.counts)
        } else {
            (high, low, high_side.counts, low_side.counts)
        };
        let both = |count: fn(&Counts) -> u64| count(&originator_counts) > 0 && count(&responder_counts) > 0;
        Connection {
            protocol: self.protocol,
            originator_address: originator.0,
            originator_port: originator.1,
            responder_address: responder.0,
            responder_port: responder.1,
            start_ns: self.start_ns,
            end_ns: self.end_ns,
            complete: both(|counts| counts.syn_segments) && both(|counts| counts.fin_segments),
            reset: originator_counts.rst_segments + responder_counts.rst_segments > 0,
            originator: originator_counts,
            responder: responder_counts,
        }
    }
}

/// Whether the sender of a connection's first segment began it: no, if it is a SYN's answer.
pub(super) fn sender_is_originator(segment: &Segment) -> bool {
    !(segment.has(SYN) && segment.has(ACK)) || segment.has(RST) || segment.has(FIN)
}
