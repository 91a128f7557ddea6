//! One direction: what was sent, what of it is acknowledged, and what has happened since anything last went on.

use super::timeout::RoundTrips;
use crate::wire::tcp::{Segment, ACK, FIN, RST, SYN};

/// What is farther ahead than the largest window (RFC 7323, 2.3) is no segment of this connection.
const MAX_AHEAD: i64 = 1 << 30;

#[derive(Debug, Default)]
pub(super) struct Side {
    /// Sequence number of position 0.
    base: Option<u32>,
    /// After the highest sent.
    end: i64,
    acknowledged: i64,
    has_syn: bool,
    /// This side's receive window is 0.
    closed: bool,
    pub round_trips: RoundTrips,
    pub since: Since,
}

/// What one side did since the connection last went on.
#[derive(Debug, Default, Clone, Copy)]
pub(super) struct Since {
    pub packets: u64,
    pub retransmissions: u64,
    /// Of a closed window, or whether the other end is alive.
    pub probes: u64,
    /// Its receive window was 0 at some time.
    pub was_closed: bool,
}

/// What a segment does beyond its arrival.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Content {
    /// Ends at this position.
    New(i64),
    Repeated,
    Probe,
    Nothing,
}

impl Side {
    pub fn unacknowledged_bytes(&self) -> u64 {
        self.end.saturating_sub(self.acknowledged).max(0) as u64
    }

    /// Its SYN is not acknowledged.
    pub fn is_opening(&self) -> bool {
        self.has_syn && self.acknowledged < 1
    }

    pub fn is_closed(&self) -> bool {
        self.closed
    }

    /// Position of a sequence number: the line goes on where the 32 bits wrap.
    fn position(&self, base: u32, sequence: u32) -> i64 {
        let ahead = sequence.wrapping_sub(base.wrapping_add(self.end as u32)) as i32;
        self.end.saturating_add(i64::from(ahead))
    }

    /// What of the segment is new; `peer_is_closed` says whether the receiver's window is.
    #[inline]
    pub fn content(&mut self, segment: &Segment, peer_is_closed: bool) -> Content {
        let (syn, fin) = (segment.has(SYN), segment.has(FIN));
        let base = *self.base.get_or_insert(segment.sequence);
        self.has_syn |= syn && base == segment.sequence;
        let start = self.position(base, segment.sequence);
        let bytes = i64::from(segment.payload_bytes) + i64::from(syn) + i64::from(fin);
        let end = start.saturating_add(bytes);
        if start > self.end.saturating_add(MAX_AHEAD) {
            return Content::Nothing;
        }
        let is_bare = !syn && !fin && !segment.has(RST);
        if is_bare && start == self.acknowledged - 1 && bytes <= 1 {
            return Content::Probe;
        }
        if is_bare && bytes == 1 && start == self.end && peer_is_closed {
            return Content::Probe;
        }
        match bytes {
            0 => Content::Nothing,
            _ if end > self.end => Content::New(end),
            _ => Content::Repeated,
        }
    }

    #[inline]
    pub fn sent(&mut self, time_ns: i64, end: i64) {
        self.round_trips.sent(time_ns, end, self.acknowledged);
        self.end = end;
    }

    pub fn repeated(&mut self) {
        self.round_trips.repeated(self.end);
    }

    /// The position that the peer acknowledges, where that is more than before.
    #[inline]
    pub fn newly_acknowledged(&mut self, segment: &Segment) -> Option<i64> {
        if !segment.has(ACK) {
            return None;
        }
        let Some(base) = self.base else {
            // What came before the capture.
            self.base = Some(segment.acknowledgment);
            return None;
        };
        let position = self.position(base, segment.acknowledgment);
        (position > self.acknowledged && position <= self.end.saturating_add(MAX_AHEAD)).then_some(position)
    }

    /// Up to `position`, which the capture may not have seen sent.
    #[inline]
    pub fn acknowledged(&mut self, time_ns: i64, position: i64, most_ns: i64) {
        self.acknowledged = position;
        self.end = self.end.max(position);
        self.round_trips.acknowledged(time_ns, position, most_ns);
    }

    /// Takes the receive window that the segment offers; whether it opens.
    #[inline]
    pub fn window(&mut self, segment: &Segment) -> bool {
        if !segment.has(ACK) || segment.has(RST) {
            return false;
        }
        let was_closed = std::mem::replace(&mut self.closed, segment.window == 0);
        self.since.was_closed |= self.closed;
        was_closed && !self.closed
    }
}
