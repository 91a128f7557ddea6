//! What the ends of an exchange wait for: their timers, as their own packets show them.
//!
//! A packet that is sent again tells why, by what came before it:
//!
//! - **retransmission timeout** (RFC 6298): nothing of the connection moved for as long as the timer is at least, 200 ms in Linux
//!   (the RFC has 1 s). A SYN is never sent again for another reason.
//! - **fast retransmission** (RFC 5681, 3.2; RFC 8985 where there is SACK): duplicate acknowledgments ask for just this packet.
//!   What is sent again after it in the same recovery is no wait of its own (RFC 6582).
//! - **tail loss probe** (RFC 8985, 7): the last packet sent again sooner than by a timeout, though nothing asks for it.
//!
//! An acknowledgment alone that comes 30 ms or more after what it acknowledges was held back: a **delayed acknowledgment** (RFC 1122,
//! 4.2.3.2; 40 ms in Linux, 200 ms elsewhere). Where the other end goes on to send at once when it comes, sooner than it had been
//! silent, it had held its own packet back for that: **Nagle's algorithm** (RFC 896; RFC 1122, 4.2.3.4).
//!
//! Timers run in hosts, so that those of one are to be read where its own packets are captured: at the other end a packet whose first
//! sending was lost is not sent again. Limits: with one packet in flight a probe is sent no sooner than a timeout and counts as one;
//! a timer set to less than 200 ms counts as a probe or not at all.

use super::mark::Mark;
use crate::wire::tcp::{ACK, FIN, RST, SYN};

/// Least wait of a timeout. Linux waits 200 ms or more, which its link sees to a few milliseconds.
pub const TIMEOUT_NS: i64 = 190_000_000;
/// Least wait of an acknowledgment that was held back.
pub const DELAYED_NS: i64 = 30_000_000;
/// Waits kept of an exchange; further ones are not counted.
const MAX_WAITS: usize = 64;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    RetransmissionTimeout,
    TailLossProbe,
    FastRetransmission,
    DelayedAcknowledgment,
    /// A delayed acknowledgment for which the other end held its next packet back.
    Nagle,
}

impl Kind {
    pub fn name(self) -> &'static str {
        match self {
            Kind::RetransmissionTimeout => "retransmission_timeout",
            Kind::TailLossProbe => "tail_loss_probe",
            Kind::FastRetransmission => "fast_retransmission",
            Kind::DelayedAcknowledgment => "delayed_acknowledgment",
            Kind::Nagle => "nagle",
        }
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Wait {
    pub kind: Kind,
    /// Whose timer it is: who sends again, or who held an acknowledgment back.
    pub of_client: bool,
    /// The packet that ended it.
    pub end_ns: i64,
    /// Since its sender last got ahead: by a packet of its own with payload, or by an acknowledgment of one. Of an acknowledgment: since
    /// the packet that it is of.
    pub wait_ns: i64,
}

/// What one end has sent.
#[derive(Debug, Clone, Copy, Default)]
struct Side {
    /// Of its payload, FIN and SYN.
    has_sent: bool,
    sent_ns: i64,
    /// Behind its last byte, and its FIN.
    end: i64,
    /// Up to here the other end has acknowledged.
    acknowledged: i64,
    duplicates: u32,
    /// It last got ahead.
    ahead_ns: i64,
    /// Something of the connection last came or went that starts its timer anew.
    event_ns: i64,
    /// What is sent again before this belongs to a recovery that has begun.
    recovers_to: i64,
}

/// Both ends of a connection.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Sides {
    client: Side,
    server: Side,
    /// The last packet was an acknowledgment that had been held back, and so was the other end's next packet if it comes at once.
    held_back: Option<Wait>,
}

impl Sides {
    /// Takes a packet; `wait` takes what it ends.
    pub fn packet(&mut self, mark: &Mark, waits: &mut Vec<Wait>) {
        let Some(now) = mark.time_ns else { return };
        let has = |flag| mark.flags & flag != 0;
        let (own, other) = match mark.from_client {
            true => (&mut self.client, &mut self.server),
            false => (&mut self.server, &mut self.client),
        };
        let takes_numbers = mark.payload_bytes > 0 || has(SYN) || has(FIN);
        let end = mark.position.saturating_add(i64::from(mark.payload_bytes)).saturating_add(i64::from(has(FIN)));
        let wait = |kind, since: i64| Wait {
            kind,
            of_client: mark.from_client,
            end_ns: now,
            wait_ns: now.saturating_sub(since),
        };
        let mut ended = None;
        let held_back = self.held_back.take();
        if takes_numbers && mark.is_repeat {
            let is_timeout = has(SYN) || now.saturating_sub(own.event_ns) >= TIMEOUT_NS;
            let is_asked_for = own.duplicates > 0 && mark.position == own.acknowledged;
            let kind = match () {
                () if !own.has_sent => None,
                () if is_timeout => Some(Kind::RetransmissionTimeout),
                () if mark.position < own.recovers_to => None,
                () if is_asked_for => Some(Kind::FastRetransmission),
                () if end >= own.end && own.duplicates == 0 => Some(Kind::TailLossProbe),
                () => None,
            };
            ended = kind.map(|kind| wait(kind, own.ahead_ns));
            if kind.is_some_and(|kind| kind != Kind::TailLossProbe) {
                own.recovers_to = own.end;
            }
        }
        if let (true, false, Some(position)) = (has(ACK), has(RST), mark.acknowledges) {
            let is_alone = !takes_numbers;
            if position > other.acknowledged {
                if is_alone && position >= other.end && now.saturating_sub(other.sent_ns) >= DELAYED_NS {
                    let is_due = other.has_sent && other.event_ns == other.sent_ns;
                    ended = ended.or(is_due.then(|| wait(Kind::DelayedAcknowledgment, other.sent_ns)));
                }
                (other.acknowledged, other.duplicates, other.ahead_ns) = (position, 0, now);
            } else if is_alone && position == other.acknowledged && other.end > position {
                other.duplicates += 1;
            }
            other.event_ns = now;
        }
        if takes_numbers {
            own.has_sent = true;
            (own.sent_ns, own.event_ns, own.ahead_ns) = (now, now, now);
            own.end = own.end.max(end);
            if let Some(held) = held_back.filter(|held| held.of_client != mark.from_client && !mark.is_repeat) {
                let is_at_once = now.saturating_sub(held.end_ns) < held.wait_ns;
                if let Some(last) =
                    waits.last_mut().filter(|last| **last == held && is_at_once && mark.payload_bytes > 0)
                {
                    last.kind = Kind::Nagle;
                }
            }
        }
        if let Some(wait) = ended.filter(|_| waits.len() < MAX_WAITS) {
            waits.push(wait);
            self.held_back = (wait.kind == Kind::DelayedAcknowledgment).then_some(wait);
        }
    }
}
