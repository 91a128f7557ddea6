//! One side of a connection: what it sent, and for TCP where its numbers stand.

use super::content::{Content, Missed};
use super::state::State;
use crate::wire::tcp::{Segment, FIN, RST, SYN};

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Counts {
    pub packets: u64,
    /// IP headers and all that follows them.
    pub ip_bytes: u64,
    /// Frames' original lengths.
    pub frame_bytes: u64,
    /// Bytes after the transport's header, repeated ones included.
    pub payload_bytes: u64,
}

/// Letters that are written once for each new sequence number.
#[derive(Debug, Clone, Copy)]
pub(super) enum Control {
    /// With or without an ACK.
    Syn,
    Fin,
    Rst,
}

/// Letters that are written once.
#[derive(Debug, Clone, Copy)]
pub(super) enum Once {
    Ack,
    Data,
    Inconsistent,
    MultiFlag,
}

/// Letters that are written at the 1st, 10th, 100th, ... time.
#[derive(Debug, Clone, Copy)]
pub(super) enum Counted {
    Checksum,
    Gap,
    Retransmission,
    ZeroWindow,
}

/// A larger jump of a SYN's or RST's number, or to an acknowledgment of 0, is ignored.
const MAX_JUMP: u64 = 1 << 20;

#[derive(Debug, Clone, Default)]
pub struct Side {
    pub counts: Counts,
    /// Acknowledged by the peer, and not in the capture file: Zeek's missed bytes.
    pub missed_bytes: u64,
    /// The missed bytes that no packet in the file carried, cut by a snap length or not.
    pub unseen_bytes: u64,
    state: State,
    previous: State,
    has_closed: bool,
    has_fin: bool,
    /// Bit n: letter n of [`Once`].
    once: u8,
    /// Bit n: letter n of [`Control`] was written with the number in its place.
    controls: u8,
    control_sequences: [u32; 3],
    counted: [u32; 4],
    /// The SYN's number, or what it would have been.
    base: u32,
    /// Positions (from `base`, unwrapped) after the last number sent, and of the peer's highest acknowledgment.
    sent: i64,
    acknowledged: i64,
    seen: Content,
    /// What of it is in the file; kept apart from `seen` once a segment was cut by the snap length.
    held: Content,
    is_cut: bool,
}

impl Side {
    #[inline]
    pub fn state(&self) -> State {
        self.state
    }

    pub(super) fn base(&self) -> u32 {
        self.base
    }

    #[inline]
    pub(super) fn has_closed(&self) -> bool {
        self.has_closed
    }

    pub(super) fn previous(&self) -> State {
        self.previous
    }

    pub(super) fn enter(&mut self, state: State) {
        self.previous = self.state;
        self.state = state;
        self.has_closed |= matches!(state, State::Closed | State::Reset);
    }

    /// Payload bytes by sequence numbers: those that the peer acknowledged count, captured or not.
    pub fn size(&self) -> u64 {
        let octets = self.sent.max(self.acknowledged) - 1 - i64::from(self.has_fin);
        octets.max(0) as u64
    }

    #[inline]
    pub(super) fn count(&mut self, ip_bytes: u32, frame_bytes: u32, payload_bytes: u32) {
        self.counts.packets += 1;
        self.counts.ip_bytes += u64::from(ip_bytes);
        self.counts.frame_bytes += u64::from(frame_bytes);
        self.counts.payload_bytes += u64::from(payload_bytes);
    }

    pub(super) fn begin(&mut self, base: u32) {
        self.base = base;
        (self.sent, self.acknowledged) = (0, 0);
        self.seen = Content::from(1);
        self.is_cut = false;
    }

    /// Another SYN of a side: its number counts as the first from now on.
    fn begin_again(&mut self, base: u32) {
        if self.base == base {
            (self.sent, self.acknowledged) = (0, 0);
        } else {
            self.begin(base);
        }
    }

    /// The position of a sequence number, by way of the highest known.
    #[inline]
    fn position(&self, sequence: u32) -> i64 {
        let known = self.sent.max(self.acknowledged);
        let ahead = sequence.wrapping_sub(self.base.wrapping_add(known as u32)) as i32;
        known.saturating_add(i64::from(ahead))
    }

    /// Takes the numbers of a segment that this side sent, before its state changes; true if its payload had been
    /// sent before. `is_whole` says that the payload was wholly captured.
    #[inline]
    pub(super) fn send(&mut self, segment: &Segment, is_whole: bool) -> bool {
        let (syn, rst) = (segment.has(SYN), segment.has(RST));
        let is_first = self.state == State::Inactive;
        if is_first {
            self.begin(if syn { segment.sequence } else { segment.sequence.wrapping_sub(1) });
        } else if syn && self.takes_another_syn(segment.sequence) {
            self.begin_again(segment.sequence);
        }
        self.has_fin |= segment.has(FIN);
        let start = self.position(segment.sequence);
        let payload_bytes = if rst { 0 } else { i64::from(segment.payload_bytes) };
        let data = start.saturating_add(i64::from(syn));
        let end = data.saturating_add(payload_bytes + i64::from(segment.has(FIN)));
        let is_retransmission = payload_bytes > 0 && !is_first && end <= self.sent;
        let is_believed = self.state != State::Reset && (!(syn || rst) || end.abs_diff(self.sent) <= MAX_JUMP);
        if is_believed {
            self.sent = self.sent.max(end);
            if payload_bytes > 0 {
                self.hold(data, data.saturating_add(payload_bytes), is_whole);
            }
        }
        is_retransmission
    }

    #[cold]
    fn takes_another_syn(&self, sequence: u32) -> bool {
        match self.state {
            State::SynSent | State::SynAckSent => sequence != self.base,
            State::Established | State::Partial => true,
            State::Reset => self.previous == State::Inactive,
            State::Inactive | State::Closed => false,
        }
    }

    #[inline]
    fn hold(&mut self, start: i64, end: i64, is_whole: bool) {
        if !is_whole && !self.is_cut {
            self.is_cut = true;
            self.held = self.seen.clone();
        }
        let unseen = self.seen.add(start, end);
        self.unseen_bytes += unseen;
        self.missed_bytes += match (self.is_cut, is_whole) {
            (false, _) => unseen,
            (true, true) => self.held.add(start, end),
            (true, false) => 0,
        };
    }

    /// The peer acknowledges; gives how many gaps that shows.
    #[inline]
    pub(super) fn acknowledge(&mut self, acknowledgment: u32, counts_gaps: bool) -> u32 {
        if self.state == State::Inactive {
            // Nothing of this side was seen: this is where it stands.
            self.begin(acknowledgment.wrapping_sub(1));
            return 0;
        }
        let position = self.position(acknowledgment);
        let is_jump = position.abs_diff(self.sent.max(self.acknowledged)) > MAX_JUMP;
        if position <= self.acknowledged || acknowledgment == 0 && is_jump {
            return 0;
        }
        self.acknowledged = position;
        let data_end = if self.has_fin && position >= self.sent { position - 1 } else { position };
        let unseen = self.seen.acknowledge(data_end);
        let missed = if self.is_cut { self.held.acknowledge(data_end) } else { unseen };
        if !counts_gaps || missed == Missed::default() {
            return 0;
        }
        self.unseen_bytes += unseen.bytes;
        self.missed_bytes += missed.bytes;
        missed.holes
    }

    #[inline]
    pub(super) fn first(&mut self, letter: Once) -> bool {
        let bit = 1 << letter as u8;
        let is_first = self.once & bit == 0;
        self.once |= bit;
        is_first
    }

    #[inline]
    pub(super) fn is_new(&mut self, letter: Control, sequence: u32) -> bool {
        let bit = 1 << letter as u8;
        let last = &mut self.control_sequences[letter as usize];
        let is_new = self.controls & bit == 0 || *last != sequence;
        self.controls |= bit;
        *last = sequence;
        is_new
    }

    #[inline]
    pub(super) fn is_shown(&mut self, letter: Counted) -> bool {
        let count = &mut self.counted[letter as usize];
        *count = count.saturating_add(1);
        super::history::is_shown(*count)
    }

    /// Had, or has, a beginning that was seen and answered.
    pub(super) fn was_established(&self) -> bool {
        match self.state {
            State::Established => true,
            State::Closed => self.previous == State::Established,
            _ => false,
        }
    }
}
